"""Searches whose time is up before they have a solution."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from evomeans import HGMeans
from evomeans.engines.protocol import Abandoned
from evomeans.engines.reference import ReferenceEngine
from evomeans.search import PAPER, SearchSettings, StopReason, evolve, pipeline
from evomeans.storage.checkpoint import Checkpoint
from fakes import ScriptedClock

X = np.random.default_rng(0).normal(size=(200, 2))
SETTINGS = SearchSettings(3, 6, max_offspring=3, strategy=PAPER)
SHORT = replace(SETTINGS, max_time=1.0)


class Late(ReferenceEngine):
    """Its first refinement ends only when it is abandoned, a quarter from where it began.

    Parameters
    ----------
    batch : int
        How many starts it refines together.
    weights : array, optional
        Of the samples.
    """

    def __init__(self, batch=1, weights=None):
        super().__init__(X, weights)
        self.batch = batch
        self.clock = ScriptedClock()
        self.abandoned = threading.Event()
        self.begun = []

    def takes_long(self, n_clusters):
        return True

    def abandon(self, is_abandoned):
        if is_abandoned:
            self.abandoned.set()

    def refine(self, starts):
        if not self.abandoned.is_set():
            self.clock.now = 60.0
            assert self.abandoned.wait(20.0)
            raise Abandoned(starts[0].centers + 0.25)
        self.begun += [start.centers for start in starts]
        return super().refine(starts)


def search(engine, settings, path=None, **more):
    """Search for three clusters, from where an earlier search has stopped if there is one."""
    keeper = None if path is None else Checkpoint(path / "search.checkpoint", {})
    rng = np.random.default_rng(0)
    return evolve(engine, 3, settings, rng, keeper=keeper, clock=engine.clock, **more)


def given(count: int) -> list[np.ndarray]:
    """Return solutions to begin with, in the frame of the engine."""
    return list(np.random.default_rng(1).normal(size=(count, 3, 2)))


@pytest.mark.parametrize("weight", [None, 0.5])
def test_the_first_solution_is_taken_as_it_is(weight) -> None:
    weights = None if weight is None else np.full(len(X), weight)
    engine, (solution,) = Late(weights=weights), given(1)
    found = search(engine, SHORT, initial=[solution])
    assert found.is_unfinished
    assert found.stop_reason == StopReason.MAX_TIME
    assert_array_equal(found.best.centers, solution + 0.25)
    assert found.best.inertia == engine.assign(solution + 0.25)[1]
    assert found.best.cluster_weights.sum() == engine.total_weight


@pytest.mark.parametrize("batch", [1, 4, 8])
def test_a_search_that_is_continued_makes_all_solutions_that_were_given(tmp_path, batch) -> None:
    """Those of the round that time has ended, too. The first continues from where it was."""
    engine, solutions = Late(batch), given(5)
    begun = search(engine, SHORT, tmp_path, initial=solutions)
    assert [record.made_by for record in begun.history] == ["given"]
    result = search(engine, SETTINGS, tmp_path)
    assert_array_equal(engine.begun[:5], [solutions[0] + 0.25, *solutions[1:]])
    names = [record.made_by for record in result.history]
    assert names == ["given"] * 6 + ["random samples"] + ["matching"] * 3


@pytest.mark.parametrize("batch", [1, 8])
def test_solutions_from_a_sample_are_still_called_so(tmp_path, batch) -> None:
    """The first of them twice: as it was, and as it became. A row drawn twice is one of 49."""
    engine = Late(batch)
    search(engine, SHORT, tmp_path, levels=(50,))
    result = search(engine, SETTINGS, tmp_path, levels=(50,))
    names = [record.made_by for record in result.history]
    assert names == ["sample of 49"] * (1 + SETTINGS.min_population) + ["matching"] * 3


def test_a_solution_does_not_agree_with_what_it_was_when_time_was_up(tmp_path) -> None:
    """An independent start counts once, however far it had come."""
    engine, strategy = Late(), replace(PAPER, tolerance=1.0)
    alone = replace(SETTINGS, min_population=1, max_population=1, patience=2, strategy=strategy)
    search(engine, replace(alone, max_time=1.0), tmp_path)
    result = search(engine, alone, tmp_path)
    assert result.stop_reason == StopReason.NO_IMPROVEMENT
    assert [record.founder for record in result.history] == [True, True, False, False]
    assert result.n_rediscoveries == 0


def test_an_unfinished_answer_is_said_to_be_one(monkeypatch) -> None:
    """The search looks at the clock long before K-means can have ended."""
    monkeypatch.setattr(pipeline, "MOMENT", 1e-3)
    X = np.random.default_rng(0).normal(size=(40_000, 10))
    with pytest.warns(ConvergenceWarning, match="max_time=1e-06 was up before the first run"):
        model = HGMeans(40, max_time=1e-6, random_state=0, subsample=None, n_jobs=1).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    assert -model.score(X) == pytest.approx(model.inertia_)
