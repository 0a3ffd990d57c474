"""What crossovers ask about the samples: the weights of clusters, alone or in common."""

from __future__ import annotations

import numpy as np

from evomeans.baselines.engine import BaselineEngine, IndexArray
from evomeans.engines.protocol import FloatArray


def partition(engine: BaselineEngine, centers: FloatArray) -> IndexArray:
    """Return the index of the closest centre of every sample."""
    return np.asarray(engine.assign(centers)[0]).astype(np.intp)


def overlap(engine: BaselineEngine, first: IndexArray, second: IndexArray, k: int) -> FloatArray:
    """Return the weight that clusters i and j of two partitions have in common, shape (k, k)."""
    return _total_weights(engine, first * k + second, k * k).reshape(k, k)


def joint_weights(engine: BaselineEngine, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the weights of the clusters around the centres of two solutions, shape (2, k)."""
    labels = partition(engine, np.concatenate([first, second]))
    return _total_weights(engine, labels, 2 * len(first)).reshape(2, -1)


def _total_weights(engine: BaselineEngine, cells: IndexArray, count: int) -> FloatArray:
    return np.bincount(cells, engine.weights, count).astype(np.float64)
