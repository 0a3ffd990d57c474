"""How near the nonsmooth methods come to proven optima."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.best_known import best_known
from benchmarks.data import load
from evomeans.baselines import MSDCA, DCClust, DCDBundle, LMBMClust

# Average gaps in percent that are allowed for 2 to 10 clusters, and the largest one.
METHODS = {
    "DCClust": (DCClust(10), 1.0, 2.0),
    "MS-DCA": (MSDCA(10), 1.0, 2.5),
    "DCD-Bundle": (DCDBundle(10), 1.0, 2.5),
    "LMBM-Clust described": (LMBMClust(10, duplicates="described"), 1.0, 2.0),
    # One start for each centre is not enough for one percent.
    "LMBM-Clust": (LMBMClust(10), 2.0, 4.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_german_towns(name) -> None:
    """On average within one percent; MS-MGKM, with K-means and more starts, is at 0.5."""
    method, average, largest = METHODS[name]
    inertias = method.fit(load("german_towns")).inertias_[1:]
    optima = np.array([best_known("german_towns", m).value for m in range(2, 11)])
    gaps = 100.0 * (inertias / optima - 1.0)
    assert gaps.mean() < average
    assert gaps.max() < largest
    assert gaps.min() > -1e-3
