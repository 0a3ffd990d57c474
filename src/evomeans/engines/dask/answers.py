"""What samples in Dask are asked about given centres: labels, distances and inertia, by chunk.

Samples are Dask arrays with all columns in one chunk. Centres are (k, d) arrays in the frame.
Samples may lie outside the frame.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import nearest
from evomeans.engines.dask.blocks import Summary, summarize
from evomeans.engines.frame import Frame
from evomeans.engines.precision import check_total_weight
from evomeans.typing import FloatArray


def lazy_labels(X: Any, centers: FloatArray, frame: Frame) -> Any:
    """Return the closest centre of every row, a Dask array in the chunks of ``X``."""
    given = {"centers": centers, "frame": frame}
    return X.map_blocks(_label_chunk, drop_axis=1, meta=np.empty(0, np.int32), **given)


def lazy_distances(X: Any, centers: FloatArray, frame: Frame) -> Any:
    """Return the distances of every row to every centre, a Dask array in the dtype of ``X``."""
    given = {"centers": centers, "frame": frame}
    chunks = X.chunks[0], (len(centers),)
    return X.map_blocks(_measure_chunk, chunks=chunks, meta=np.empty((0, 0), X.dtype), **given)


def inertia(X: Any, sample_weight: Any, centers: FloatArray, frame: Frame) -> float:
    """Compute the weighted sum of squared distances to the closest centres, in data units.

    ``sample_weight`` is a Dask array in the chunks of ``X``, or None for equal weights.
    """
    from dask import compute, delayed

    chunks = X.to_delayed()[:, 0]
    weights = [None] * len(chunks) if sample_weight is None else sample_weight.to_delayed()
    measure = delayed(_inertia_of_chunk)
    parts = [
        measure(chunk, weight, centers, frame, number)
        for number, (chunk, weight) in enumerate(zip(chunks, weights, strict=True))
    ]
    results = compute(*parts)
    if sample_weight is not None:
        check_total_weight(sum(weight for _, weight in results))
    return math.fsum(inertia for inertia, _ in results)


def _label_chunk(
    X: NDArray[Any], centers: FloatArray, frame: Frame, block_id: tuple[int, ...]
) -> NDArray[np.int32]:
    if len(X) == 0:
        return np.empty(0, np.int32)
    _checked(X, None, block_id[0])
    return nearest.labels(X, centers, frame)


def _measure_chunk(
    X: NDArray[Any], centers: FloatArray, frame: Frame, block_id: tuple[int, ...]
) -> NDArray[Any]:
    if len(X) == 0:
        return np.empty((0, len(centers)), X.dtype)
    _checked(X, None, block_id[0])
    return nearest.distances(X, centers, frame)


def _inertia_of_chunk(
    X: NDArray[Any], sample_weight: Any, centers: FloatArray, frame: Frame, number: int
) -> tuple[float, float]:
    """Return inertia and weight."""
    summary = _checked(X, sample_weight, number)
    if summary.weight == 0.0 or not math.isfinite(summary.weight):
        return 0.0, summary.weight
    return nearest.inertia(X, sample_weight, centers, frame), summary.weight


def _checked(X: NDArray[Any], sample_weight: Any, number: int) -> Summary:
    summary = summarize(X, sample_weight)
    summary.check(number, summary.bad_row)
    return summary
