"""K-means from many starts: every run is one, and the best is kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order
from fakes import ScriptedEngine
from lab.baselines import MultiStartKMeans
from lab.baselines.engines import create_engine
from lab.baselines.engines.cpu import BaselineCpuEngine

X = np.random.default_rng(0).normal(size=(400, 2)) + 20.0 * (np.arange(800).reshape(400, 2) % 7)


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_every_run_is_kmeans_to_its_end_from_a_start_of_its_own(init) -> None:
    """The starts are samples, the solutions fixed points, and no two starts are the same."""
    engine = create_engine("cpu", X, None)
    model = MultiStartKMeans(9, init=init, n_runs=12)
    starts = []

    class Watching(BaselineCpuEngine):
        def refine(self, begun):
            starts.extend(start.centers for start in begun)
            return super().refine(begun)

    rows = engine.samples_at((np.arange(400) + 0.5) / 400)
    for solution in model.solutions(Watching(X), np.random.default_rng(0)):
        (again,) = engine.refine([Order(solution.centers)])
        assert_array_equal(again.centers, solution.centers)
    assert len({start.tobytes() for start in starts}) == 12
    for start in starts:
        assert (start[:, None] == rows[None]).all(axis=2).any(axis=1).all()


def test_there_are_as_many_runs_as_wanted() -> None:
    engine = ScriptedEngine(np.arange(10.0) + 1.0)
    solutions = list(MultiStartKMeans(3, n_runs=10).solutions(engine, np.random.default_rng(0)))
    assert engine.calls == [1] * 10
    assert [solution.inertia for solution in solutions] == (np.arange(10.0) + 1.0).tolist()
    assert all(
        start.parent is None and start.local_search.max_iter is None for start in engine.starts
    )


def test_careful_seeding_is_worth_it_where_clusters_are_apart() -> None:
    """Of 30 runs, those from k-means++ are better on average."""
    means = {}
    for init in ("random", "k-means++"):
        model = MultiStartKMeans(7, init=init, n_runs=30, random_state=0).fit(X)
        means[init] = np.mean([record.inertia for record in model.history_])
    assert means["k-means++"] < 0.8 * means["random"]


def test_more_runs_continue_fewer() -> None:
    """The first runs of a longer search are those of a shorter one."""
    few, many = (MultiStartKMeans(5, n_runs=n, random_state=3).fit(X) for n in (4, 9))
    assert [r.inertia for r in few.history_] == [r.inertia for r in many.history_][:4]
