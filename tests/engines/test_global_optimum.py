"""On tiny data the search reaches the global optimum of all partitions."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines import create_engine
from evomeans.search import SearchSettings, solve
from oracles import lowest_inertia, squared_distances
from problems import make_samples

KINDS = ("normal", "integers", "duplicates", "blobs")
CASES = {"reference": 3, "cpu": 20, "gpu": 2, "dask": 2}
SETTINGS = SearchSettings(patience=100)


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_reaches_the_global_optimum(engine_name, weighted, kind) -> None:
    """Up to 12 samples and 4 clusters, with ties and duplicates, against all partitions."""
    for seed in range(CASES[engine_name]):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        k, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        n = int(rng.integers(k, 13))
        X = make_samples(kind, n, d, np.float64, rng)
        weights = rng.integers(1, 4, n) + rng.choice([0.0, 0.5], n) if weighted else None
        engine = create_engine(engine_name, X, weights)
        result = solve(engine, k, SETTINGS, np.random.default_rng(seed))
        w = np.ones(n) if weights is None else weights
        optimum = lowest_inertia(X, w, k)
        scale = lowest_inertia(X, w, 1)
        assert result.best.inertia == pytest.approx(optimum, rel=1e-9, abs=1e-20 * scale), seed
        # The answer is a real solution: its centres have this inertia in the units of the data.
        squares = squared_distances(X, engine.frame.decode(result.best.centers))
        assert w @ squares.min(axis=1) == pytest.approx(optimum, rel=1e-9, abs=1e-20 * scale)


def test_the_oracle_agrees_with_a_plain_enumeration() -> None:
    """All label vectors of six samples, one by one."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(6, 2)), rng.random(6)
    for k in (1, 2, 3):
        lowest = np.inf
        for code in range(k**6):
            labels = code // k ** np.arange(6) % k
            cost = 0.0
            for j in range(k):
                own = labels == j
                if own.any():
                    mean = np.average(X[own], axis=0, weights=w[own])
                    cost += w[own] @ np.sum((X[own] - mean) ** 2, axis=1)
            lowest = min(lowest, cost)
        assert lowest_inertia(X, w, k) == pytest.approx(lowest, rel=1e-12)
