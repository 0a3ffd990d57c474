"""What two searches must have in common to be the same search."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import Engine, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.search import SearchSettings
from evomeans.search.levels import level_sizes
from evomeans.storage.state_file import Problem


def describe_problem(
    engine: Engine,
    X: Any,
    sample_weight: NDArray[np.float64] | None,
    n_clusters: int,
    settings: SearchSettings,
    init: Sequence[NDArray[np.float64]],
) -> Problem:
    """Describe everything that determines the course of a search except its random numbers.

    Large arrays are given by their digests. Criteria that only end a search are left out, and so is
    the number of threads: a search may be continued with others.
    """
    frame = engine.frame
    samples, weights = _digests(engine, X, sample_weight)
    # It may change if it only ends a search.
    wait = settings.longest_wait(n_clusters) if settings.strategy.agreement > 1 else None
    return {
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "dtype": str(X.dtype),
        "layout": "csr" if is_sparse(X) else "blocks" if is_dask(X) else "dense",
        "samples": samples,
        "sample_weight": weights,
        "n_clusters": int(n_clusters),
        "init": digest(*init) if init else None,
        "min_population": settings.min_population,
        "max_population": settings.max_population,
        "roulette_power": settings.roulette_power,
        "strategy": settings.strategy.identity,
        "n_iter_no_change": wait,
        "levels": str(level_sizes(settings, X.shape[0], n_clusters, engine.most_sampled)),
        "batch": engine.batch,
        "frame": digest(frame.shift, np.array(frame.exponent)),
    }


def _digests(engine: Any, X: Any, sample_weight: Any) -> tuple[str, str | None]:
    """Return the digests of the samples and of their weights."""
    if is_dask(X):
        # Block by block, because the sizes of the blocks determine the course too.
        samples, weights = engine.digests(digest)
        return digest(samples), None if weights is None else digest(weights)
    stored = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    return digest(*stored), None if sample_weight is None else digest(sample_weight)


def digest(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the types, shapes and values of arrays."""
    total = hashlib.sha256()
    for values in arrays:
        total.update(f"{values.dtype.str} {values.shape};".encode("ascii"))
        total.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return total.hexdigest()
