"""What crossovers ask about the samples: how much weight clusters have, alone or in common."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import Engine

FloatArray = NDArray[np.float64]


class _Weighted(Protocol):
    """An engine that shows the weights of its samples; None means equal ones."""

    weights: FloatArray | None


def partition(engine: Engine, centers: FloatArray) -> NDArray[np.intp]:
    """Return the index of the closest centre of every sample."""
    return np.asarray(engine.assign(centers)[0]).astype(np.intp)


def overlap(
    engine: Engine, first: NDArray[np.intp], second: NDArray[np.intp], k: int
) -> FloatArray:
    """Return the weight that each two clusters of two partitions have in common, shape (k, k)."""
    return _total_weights(engine, first * k + second, k * k).reshape(k, k)


def joint_weights(engine: Engine, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the weights of clusters around the centres of two solutions, shape (2, k)."""
    labels = partition(engine, np.concatenate([first, second]))
    return _total_weights(engine, labels, 2 * len(first)).reshape(2, -1)


def _total_weights(engine: Engine, cells: NDArray[np.intp], count: int) -> FloatArray:
    weights: Any = cast(_Weighted, engine).weights
    return np.bincount(cells, weights, count).astype(np.float64)
