"""Labels and distances that are computed when somebody asks for them, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import FloatArray


def lazy_labels(X: Any, centers: FloatArray, frame: Frame) -> Any:
    """Return the closest centre of every row, a Dask array in the chunks of ``X``.

    Parameters
    ----------
    X : dask array of shape (n, d)
        All columns in one chunk.
    centers : (k, d) array
        In the frame.
    frame : Frame
        One that holds ``X``.
    """
    given = {"centers": centers, "frame": frame}
    return X.map_blocks(label_chunk, drop_axis=1, meta=np.empty(0, np.int32), **given)


def lazy_distances(X: Any, centers: FloatArray, frame: Frame) -> Any:
    """Return the distances of every row to every centre, a Dask array; see :func:`lazy_labels`."""
    given = {"centers": centers, "frame": frame}
    chunks = X.chunks[0], (len(centers),)
    return X.map_blocks(measure_chunk, chunks=chunks, meta=np.empty((0, 0)), **given)


def label_chunk(X: NDArray[Any], centers: FloatArray, frame: Frame) -> NDArray[np.int32]:
    """Label the rows of one chunk."""
    if len(X) == 0:
        return np.empty(0, np.int32)
    return CpuEngine(X, frame=frame, searching=False).assign(centers)[0]


def measure_chunk(X: NDArray[Any], centers: FloatArray, frame: Frame) -> FloatArray:
    """Measure the distances of the rows of one chunk."""
    if len(X) == 0:
        return np.empty((0, len(centers)))
    return CpuEngine(X, frame=frame, searching=False).distances(centers)
