"""Many rows: what can be told of them as they are, and their order, which comes when it pays.

To put rows into order takes as long as dozens of looks at all of them. It pays for K-means, but not
for drawing a sample, nor for the labels of an answer when time is up.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Samples
from evomeans.engines.cpu.order import ROWS_AT_A_TIME
from evomeans.engines.cpu.predict import set_squared_distances
from evomeans.engines.frame import Frame
from evomeans.engines.nearest import labels
from evomeans.engines.protocol import Abandoned
from evomeans.engines.threads import side_by_side
from evomeans.typing import FloatArray


class DeferredSamples:
    """Samples that are prepared when they are first needed. Workers share one of these.

    Parameters
    ----------
    prepare : callable
        Returns the samples, neighbours put together if its argument ``in_order`` says so. It calls
        its argument ``check`` from time to time, which raises Abandoned to end the preparation.
    in_order : bool
        Whether to put neighbours together.
    """

    def __init__(self, prepare: Callable[..., Samples], *, in_order: bool) -> None:
        self._prepare = prepare
        self._in_order = in_order
        self._lock = Lock()
        self.samples: Samples | None = None
        """None until they are prepared."""
        self.was_abandoned = False
        """Whether their preparation was ended once."""

    def get(self, check: Callable[[], None]) -> Samples:
        """Return the samples; prepare them if nobody has."""
        with self._lock:
            if self.samples is None:
                try:
                    self.samples = self._prepare(check=check, in_order=self._in_order)
                except Abandoned:
                    self.was_abandoned = True
                    raise
            return self.samples

    def get_soon(self) -> Samples:
        """Return the samples, without an order if they are not prepared."""
        with self._lock:
            if self.samples is None:
                self.samples = self._prepare(in_order=False)
            return self.samples


def closest_in_turn(
    X: NDArray[Any], frame: Frame, centers: FloatArray, n_jobs: int
) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the closest centre of every row, and the squared distance to it, in the frame.

    Parameters
    ----------
    X : (n, d) array
        In data units.
    frame : Frame
    centers : (k, d) array
        In the frame.
    n_jobs : int
        Threads at most.
    """
    found, squares = np.empty(len(X), np.int32), np.empty(len(X))
    same = Frame(np.zeros(X.shape[1]), 0)
    factors = same.factors(X.dtype)

    def look(begin: int) -> None:
        part = slice(begin, begin + ROWS_AT_A_TIME)
        # A copy: kernels would be compiled again for rows that cannot be written to.
        rows = frame.encode(X[part])
        found[part] = labels(rows, centers, same)
        set_squared_distances(rows, *factors, centers, found[part], squares[part])

    side_by_side(look, range(0, len(X), ROWS_AT_A_TIME), n_jobs)
    return found, squares
