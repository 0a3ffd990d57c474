"""The four methods as estimators: known values, and what their parameters do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from evomeans.engines import Order
from lab.baselines import MSDCA, DCClust, DCDBundle, LMBMClust
from lab.baselines.engines import create_engine
from lab.baselines.nonsmooth.frame import NonsmoothBaseline
from problems import make_samples

METHODS = {
    "DCClust": DCClust(10),
    "MS-DCA": MSDCA(10),
    "DCD-Bundle": DCDBundle(10),
    "LMBM-Clust": LMBMClust(10, duplicates="described"),
}
IRIS = [152.348, 78.8514, 57.2285, 46.4462, 39.04, 34.2982, 29.9889, 27.7861, 25.8341]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_known_gaps_on_iris(name) -> None:
    """In percent of the optima for 2 to 10 clusters: the optimum for 3, one percent on average."""
    gaps = 100.0 * (METHODS[name].fit(load_iris().data).inertias_[1:] / IRIS - 1.0)
    assert gaps[1] == pytest.approx(0.0, abs=0.02)
    assert gaps.mean() < 1.0


def test_the_published_program_has_one_start() -> None:
    """And the description has several, which go deeper."""
    published = LMBMClust(7).fit(load_iris().data)
    described = LMBMClust(7, duplicates="described").fit(load_iris().data)
    assert [step.n_runs for step in published.path_] == [1] * 7
    assert max(step.n_runs for step in described.path_) > 5
    assert described.inertia_ < published.inertia_


@pytest.mark.parametrize("name", METHODS)
def test_the_solver_goes_downhill(name) -> None:
    """From any start, to a fixed point of K-means that is not above where K-means would begin."""
    X = make_samples("normal", 150, 3, np.float64, np.random.default_rng(0))
    engine = create_engine("cpu", X, None)
    start = Order(engine.rows(np.arange(5)))
    method: NonsmoothBaseline = METHODS[name]
    found = method._descend(engine, start)
    assert found.inertia < engine.assign(start.centers)[1]
    again = engine.refine([Order(found.centers)])[0]
    assert again.inertia == pytest.approx(found.inertia, rel=1e-12)


def test_filters_depend_on_the_number_of_samples() -> None:
    """Those of the published programs, where they are not given."""
    assert DCClust()._gammas(1000) == [0.1, 0.9, 2.0]
    assert DCClust()._gammas(4999) == [0.1, 0.9, 1.25]
    assert DCClust()._gammas(5000) == [0.9, 0.95, 1.25]
    assert MSDCA(gamma2=0.5)._gammas(20_000) == [0.9, 0.5, 1.05]
    assert DCDBundle()._gammas(60_000) == [0.95, 0.99, 1.025]
    assert DCDBundle()._gammas(100_000) == [0.975, 0.995, 1.025]

    class Samples:
        n_samples = 10_001

    assert LMBMClust()._filters(Samples()) == (500, 3, 4)
    Samples.n_samples = 1000
    assert LMBMClust()._filters(Samples()) == (500, 8, 9)


def test_lower_gammas_try_more_places() -> None:
    X = make_samples("normal", 100, 2, np.float64, np.random.default_rng(1))
    few, many = (DCDBundle(4, gamma2=gamma2).fit(X).n_iter_ for gamma2 in (1.0, 0.3))
    assert few < many
