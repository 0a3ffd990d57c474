"""Samples on their leading directions, and the way back: means of clusters in all features.

With hundreds of features, nearly all of what tells clusters apart lies in some dozens of
directions. K-means on these takes a fraction of the time, and the means of its clusters, in all
features, are a start that a few iterations of K-means improve further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evomeans.engines.cpu.order import leading_directions, polled
from evomeans.engines.cpu.samples import ROWS_IN_DOUBLE
from evomeans.engines.frame import Frame
from evomeans.engines.nearest import one_blas_thread
from evomeans.engines.workers import side_by_side
from evomeans.typing import FloatArray, Labels


def project(
    X: NDArray[Any], frame: Frame, n_directions: int, n_jobs: int, check: Callable[[], None]
) -> NDArray[Any]:
    """Return dense samples on their leading directions.

    ``X`` is in data units. ``check`` is called from time to time, and raises an error if the
    samples are needed no more.
    """
    result = np.empty((len(X), n_directions), X.dtype)
    with one_blas_thread:
        directions = leading_directions(frame.encode(polled(X)), n_directions, check)
        directions = directions.astype(X.dtype)

        def fill(first: int) -> None:
            check()
            part = slice(first, first + ROWS_IN_DOUBLE)
            np.matmul(frame.encode(X[part]), directions, out=result[part])

        side_by_side(fill, range(0, len(X), ROWS_IN_DOUBLE), n_jobs)
    return result


def cluster_means(
    X: NDArray[Any], weights: FloatArray | None, frame: Frame, labels: Labels, others: FloatArray
) -> FloatArray:
    """Return the means of clusters in the frame; of those without weight, the ``others`` (k, d)."""
    k, n_samples = len(others), len(X)
    own = np.ones(n_samples) if weights is None else weights
    sums = np.zeros(others.shape)
    for first in range(0, n_samples, ROWS_IN_DOUBLE):
        part = slice(first, min(first + ROWS_IN_DOUBLE, n_samples))
        size = part.stop - first
        members = csr_array((own[part], labels[part], np.arange(size + 1)), shape=(size, k))
        sums += members.T @ frame.encode(X[part]).astype(np.float64)
    totals = np.bincount(labels, own, k)
    counted = totals > 0.0
    means = others.copy()
    means[counted] = sums[counted] / totals[counted, None]
    return means
