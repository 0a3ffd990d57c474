"""What scikit-learn's KMeans makes of the same samples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

MOST_RUNS = 10
# In numbers of the table times clusters, for all runs and for one: a few seconds at most.
WORK, MOST_WORK = 10**8, 10**8
SAME = 1e-6
"""Relative; closer inertias are those of the same solution."""


def affordable_runs(shape: tuple[int, int], n_clusters: int, most: int = MOST_RUNS) -> int:
    """Return how many runs take no more than a few seconds; 0 if not even one does."""
    work = shape[0] * shape[1] * n_clusters
    return 0 if work > MOST_WORK else int(min(most, max(1, WORK // work)))


def kmeans_runs(
    X: Any, n_clusters: int, sample_weight: Any, inertia: float, n_runs: int
) -> dict[str, Any] | None:
    """Run KMeans with its default parameters from several seeds, and compare its inertias.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    n_clusters : int
    sample_weight : float or array-like of shape (n_samples,), optional
    inertia : float
        What the inertias are compared with.
    n_runs : int
        Their seeds are 0, 1, 2 and so on.

    Returns
    -------
    dict
        The number of ``runs``, their ``mean``, ``best`` and ``worst`` inertia, and how many were
        ``as_good``; None without runs.
    """
    if not n_runs:
        return None
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    weights = None if sample_weight is None else np.broadcast_to(sample_weight, X.shape[0])
    found = []
    # One thread, so that the same seeds give the same inertias on every machine.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_runs):
            rival = KMeans(n_clusters, n_init=1, random_state=seed)
            found.append(float(rival.fit(X, sample_weight=weights).inertia_))
    return {
        "runs": n_runs,
        "mean": float(np.mean(found)),
        "best": min(found),
        "worst": max(found),
        "as_good": sum(one <= inertia * (1 + SAME) for one in found),
    }
