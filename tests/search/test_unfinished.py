"""Searches whose time is up before they have a solution."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from evomeans import (
    ConstrainedHGMeans,
    HGMeans,
    HGMeansPath,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from evomeans.engines.cpu import engine as cpu_engine
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.protocol import Order, Refinement
from evomeans.engines.reference import ReferenceEngine
from evomeans.engines.workers import Workers
from evomeans.path import find_mean
from evomeans.search import DEEP, PAPER, SearchSettings, StopReason, genetic, solve, stopping
from evomeans.search.founding import KMeansPlusPlus, ProjectedStart, QuickSeeding, QuickStart
from evomeans.search.stopping import DeferredInterrupt, Timing
from evomeans.storage.checkpoint import Checkpoint
from fakes import ScriptedClock, ScriptedEngine

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
            first, *others = starts
            reached = Refinement.stopped(first, first.centers + 0.25)
            return [reached, *map(Refinement.stopped, others)]
        self.begun += [start.centers for start in starts]
        return super().refine(starts)


def search(engine, settings, path=None, **more):
    """Search for three clusters, from where an earlier search has stopped if there is one."""
    kept = [] if path is None else [Checkpoint(path / "search.checkpoint", {})]
    rng = np.random.default_rng(0)
    return solve(engine, 3, settings, rng, observers=kept, clock=engine.clock, **more)


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


class LateSecond(Late):
    """Its second refinement ends only when it is abandoned, having reached some centres."""

    def __init__(self, reached, most):
        super().__init__()
        self.reached, self.most = reached, most

    def refine(self, starts):
        self.begun += [start.centers for start in starts]
        if len(self.begun) != 2:
            return ReferenceEngine.refine(self, starts)
        self.clock.now = 60.0
        assert self.abandoned.wait(20.0)
        return [Refinement.stopped(starts[0], self.reached, self.most)]


@pytest.mark.parametrize("is_better", [True, False])
def test_what_a_later_solution_has_reached_is_taken_if_it_is_known_to_be_better(
    tmp_path, is_better
) -> None:
    """It is made again if the search is continued, and is not mistaken for a fixed point."""
    plain = ReferenceEngine(X, None)
    # A bound below that of the first solution, and one that is above any.
    bound, solutions = (0.0 if is_better else 1e9), given(2)
    better = plain.refine([Order(one) for one in given(9)])
    better = min(better, key=lambda one: one.inertia)
    engine = LateSecond(better.centers, bound)
    found = search(engine, SHORT, tmp_path, initial=solutions)
    assert found.stop_reason == StopReason.MAX_TIME
    assert not found.is_unfinished
    assert len(found.history) == 1 + is_better
    assert (found.best.inertia == plain.assign(better.centers)[1]) == is_better
    assert found.best.inertia == found.history[-1].best
    result = search(engine, SETTINGS, tmp_path)
    assert_array_equal(engine.begun[1], engine.begun[2])
    assert result.best.inertia <= found.best.inertia


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


class SlowSeeding(CpuEngine):
    """Seeds for the first time only when it is abandoned; before, what a test wants happens.

    Parameters
    ----------
    happens : callable
        Called when seeding begins.
    """

    def __init__(self, happens):
        super().__init__(X)
        self.happens = happens
        self.begun = []

    def takes_long(self, n_clusters):
        return True

    def seed(self, quantiles):
        if self.begun:
            return super().seed(quantiles)
        self.begun.append(quantiles)
        self.happens()
        for _ in range(2_000):
            if self.is_abandoned:
                return super().seed(quantiles)
            time.sleep(0.01)
        raise AssertionError("nobody has abandoned the engine")


DEEP_SHORT = SearchSettings(3, 6, max_offspring=3, strategy=DEEP, max_time=1.0)


def is_complete(found, engine) -> bool:
    """Whether there are real clusters, and their inertia is that of all samples."""
    weights, inertia = engine.weigh(found.best.centers)
    return weights.min() > 0.0 and math.isclose(found.best.inertia, inertia, rel_tol=1e-12)


def test_seeding_ends_when_time_is_up() -> None:
    clock = ScriptedClock()
    engine = SlowSeeding(lambda: setattr(clock, "now", 60.0))
    found = solve(engine, 30, DEEP_SHORT, np.random.default_rng(0), clock=clock)
    assert found.is_unfinished
    assert found.stop_reason is StopReason.MAX_TIME
    assert is_complete(found, engine)


class SlowToLabel(CpuEngine):
    """Says that labels take so many seconds; once K-means begins on all samples, time is up.

    Parameters
    ----------
    seconds : float
    """

    def __init__(self, seconds):
        super().__init__(X)
        self.clock = ScriptedClock()
        self.seconds = seconds
        self.begun = []

    def labelling_seconds(self, n_clusters):
        return self.seconds

    def refine(self, starts):
        self.begun += [start.centers for start in starts]
        self.clock.now = 60.0
        return super().refine(starts)


@pytest.mark.parametrize(
    ("seconds", "max_time", "name"),
    [
        (0.3, 1.0, "quick start"),
        (100.0, 1.0, "quick start"),
        (0.01, 1.0, "k-means++"),
        (0.3, None, "k-means++"),
    ],
)
def test_k_means_on_few_samples_comes_first_if_seeding_would_take_too_long(
    seconds, max_time, name
) -> None:
    """Even if all the time is needed for labels."""
    engine = SlowToLabel(seconds)
    settings = replace(DEEP_SHORT, max_time=max_time)
    found = solve(engine, 5, settings, np.random.default_rng(0), clock=engine.clock)
    assert found.history[0].made_by == name
    assert is_complete(found, engine)
    rows = engine.frame.encode(X)
    is_sample = (engine.begun[0][:, None] == rows).all(axis=2).any(axis=1)
    assert is_sample.all() == (name == "k-means++")


def test_a_search_without_any_time_waits_for_nothing(monkeypatch) -> None:
    """A path makes dozens of them when its time is up, and moments add up."""
    waited = []
    is_done = Workers.is_done
    monkeypatch.setattr(
        Workers, "is_done", lambda own, task, t: waited.append(t) or is_done(own, task, t)
    )
    monkeypatch.setattr(SlowSeeding, "labelling_seconds", lambda own, n_clusters: 0.0)
    engine = SlowSeeding(lambda: None)
    clock, rng = ScriptedClock(), np.random.default_rng(0)
    found = solve(engine, 30, DEEP_SHORT, rng, clock=clock, spent=5.0)
    assert is_complete(found, engine)
    assert found.is_unfinished
    assert waited[0] == 0.0


def test_seeding_that_takes_its_share_of_the_time_is_hurried() -> None:
    """K-means follows, and the solution is not unfinished."""
    clock = ScriptedClock()
    engine = SlowSeeding(lambda: setattr(clock, "now", 0.7))
    found = solve(engine, 30, DEEP_SHORT, np.random.default_rng(0), clock=clock)
    assert not found.is_unfinished
    assert found.history[0].n_iter > 0
    assert is_complete(found, engine)


def test_ctrl_c_ends_seeding_with_an_answer() -> None:
    interrupt = DeferredInterrupt()
    engine = SlowSeeding(lambda: setattr(interrupt, "requested", True))
    settings = replace(DEEP_SHORT, max_time=None)
    found = solve(engine, 30, settings, np.random.default_rng(0), interrupt=interrupt)
    assert found.is_unfinished
    assert found.stop_reason is StopReason.INTERRUPTED
    assert is_complete(found, engine)


def test_time_for_labels_is_kept_in_reserve() -> None:
    class Reserving(ScriptedEngine):
        def labelling_seconds(self, n_clusters):
            return 4.0

    clock = ScriptedClock()
    engine = Reserving(range(50, 10, -1), clock=clock)
    settings = SearchSettings(2, 4, max_time=10.0, strategy=PAPER)
    result = solve(engine, 2, settings, np.random.default_rng(0), clock=clock)
    assert result.stop_reason is StopReason.MAX_TIME
    assert clock.now == 6.0


POINTS = np.random.default_rng(0).normal(size=(4_000, 20))


@pytest.mark.parametrize(
    "model",
    [
        HGMeans(60, subsample=None),
        SphericalHGMeans(60),
        TrimmedHGMeans(60, n_outliers=40),
        ConstrainedHGMeans(60, size_min=40, size_max=90),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_has_a_complete_answer_however_little_time_there_is(model) -> None:
    fitted = model.set_params(max_time=1e-9, random_state=0).fit(POINTS)
    assert fitted.stop_reason_ == StopReason.MAX_TIME
    sizes = np.bincount(fitted.labels_[fitted.labels_ >= 0], minlength=60)
    assert sizes.min() > 0
    if isinstance(model, ConstrainedHGMeans):
        assert sizes.min() >= 40
        assert sizes.max() <= 90
        squares = ((POINTS - fitted.cluster_centers_[fitted.labels_]) ** 2).sum()
        assert fitted.inertia_ == pytest.approx(squares)
    else:
        is_in_one = fitted.labels_ >= 0
        assert_array_equal(fitted.predict(POINTS)[is_in_one], fitted.labels_[is_in_one])
        if not isinstance(model, TrimmedHGMeans):
            assert -fitted.score(POINTS) == pytest.approx(fitted.inertia_)


def test_every_number_of_clusters_of_a_path_has_a_solution_however_little_time_there_is() -> None:
    path = HGMeansPath((2, 40), max_time=1e-9, random_state=0, select=None, criteria=()).fit(POINTS)
    assert path.stop_reason_ == StopReason.MAX_TIME
    assert path.k_values_.tolist() == list(range(2, 41))
    for k in (2, 17, 40):
        assert len(np.unique(path.at(k).labels_)) == k
        assert_array_equal(path.at(k).labels_, path.at(k).predict(POINTS))


def test_an_unfinished_answer_is_said_to_be_one(monkeypatch) -> None:
    """The search looks at the clock long before K-means can have ended."""
    monkeypatch.setattr(genetic, "MOMENT", 1e-3)
    monkeypatch.setattr(stopping, "LEAST_SECONDS", 0.0)
    X = np.random.default_rng(0).normal(size=(40_000, 10))
    with pytest.warns(ConvergenceWarning, match="max_time=1e-06 was up before the first run"):
        model = HGMeans(40, max_time=1e-6, random_state=0, subsample=None, n_jobs=1).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    assert -model.score(X) == pytest.approx(model.inertia_)


MANY = np.random.default_rng(5).normal(size=(40_000, 10))


def test_a_path_without_time_labels_the_samples_once_for_each_k(monkeypatch) -> None:
    looks = []
    assign = CpuEngine.assign

    def counted(engine, centers):
        looks.append((engine.n_samples, len(centers)))
        return assign(engine, centers)

    monkeypatch.setattr(CpuEngine, "assign", counted)
    path = HGMeansPath((3, 6), max_time=1e-3, random_state=0, criteria=(), select=None).fit(MANY)
    assert path.stop_reason_ == StopReason.MAX_TIME
    for k in range(3, 7):
        assert looks.count((len(MANY), k)) == 1
        assert_array_equal(path.at(k).labels_, path.at(k).predict(MANY))


def test_the_mean_of_all_samples_needs_no_order(monkeypatch) -> None:
    """To put them into order takes longer than there is time, and k = 1 still has the mean."""
    monkeypatch.setattr(cpu_engine, "VALUES_WORTH_DEFERRING", 1)
    engine = CpuEngine(MANY)
    order = engine._deferred._prepare

    def ordered(*, in_order, check=None):
        while in_order:
            check()
            time.sleep(0.001)
        return order(in_order=False)

    engine._deferred._prepare = ordered
    (mean,), _ = find_mean(engine, DeferredInterrupt(), 0.01)
    assert_allclose(engine.frame.decode(mean.centers), [MANY.mean(axis=0)])
    assert mean.inertia == pytest.approx(((MANY - MANY.mean(axis=0)) ** 2).sum())


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        (0.5, QuickSeeding()),
        (5.0, QuickSeeding()),
        (6.0, QuickStart),
        (np.inf, QuickStart),
    ],
)
def test_large_samples_have_a_quick_seeding_if_there_is_time_for_it(looks, expected) -> None:
    """Labels take 0.1 s, so there are 9 looks for all of it, 5.4 of them for the start."""
    engine = SlowToLabel(0.1)
    engine.quick_looks = lambda n_clusters, n_trials, n_directions: looks
    timing = Timing(engine, 5, 1.0, engine.clock, 0.0, DeferredInterrupt())
    found = timing.in_time(KMeansPlusPlus(greedy=True))
    assert found == expected or type(found) is expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.05, 0.95), (0.026, 0.26), (0.031, 0.31), (0.01, 0.13)]
)
def test_quick_steps_have_all_the_time_that_k_means_cannot_use(seconds, expected) -> None:
    """Six iterations take six looks, and their order 25 of them. Steps have ten, or 0.13 s."""
    engine = SlowToLabel(seconds)
    engine.frame = CpuEngine(np.random.default_rng(0).normal(size=(100, 40))).frame
    engine._deferred.samples = None
    timing = Timing(engine, 200, 1.0, engine.clock, 0.0, DeferredInterrupt())
    timing.in_time(KMeansPlusPlus(greedy=True))
    assert timing._hurries_at == pytest.approx(expected)


def test_a_hurry_that_cannot_come_is_not_waited_for() -> None:
    """Samples are put into order first: the search looks at the clock at its usual moments."""
    engine = SlowToLabel(0.001)
    engine._deferred.samples = None
    timing = Timing(engine, 5, 1.0, engine.clock, 0.0, DeferredInterrupt())
    engine.clock.now = 0.9
    assert timing.until_hurry == math.inf
    assert not timing.should_hurry()
    engine.samples  # noqa: B018
    assert timing.until_hurry == 0.0
    assert timing.should_hurry()
    assert timing.until_hurry == math.inf


def test_a_quick_start_that_is_abandoned_at_once_has_means_of_clusters() -> None:
    engine = CpuEngine(np.random.default_rng(4).normal(size=(9000, 160)))
    start = ProjectedStart()
    numbers = start.draw(9000, 20, np.random.default_rng(0))
    engine.abandon(True)
    (centers,) = start.place(engine, [numbers])
    drawn = engine.samples_at(numbers)
    assert_allclose(centers, engine.means(engine.assign(drawn)[0], drawn))


def test_a_search_may_begin_with_a_quick_seeding() -> None:
    engine, settings = SlowToLabel(0.3), replace(DEEP_SHORT, max_time=1.0)
    engine.quick_looks = lambda n_clusters, n_trials, n_directions: 1.0
    found = solve(engine, 5, settings, np.random.default_rng(0), clock=engine.clock)
    assert found.history[0].made_by == "quick start"
    assert is_complete(found, engine)
