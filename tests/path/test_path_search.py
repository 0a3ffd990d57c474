"""The path: what it does next, what it learns, and what has to hold at its end."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evomeans.engines import create_engine
from evomeans.engines.protocol import Order
from evomeans.engines.reference import ReferenceEngine
from evomeans.path import (
    Entry,
    PathSettings,
    PathState,
    Step,
    Taught,
    divide,
    divide_best,
    follow_path,
    learn,
    merge_pair,
    merging_costs,
)
from evomeans.search import PAPER, SearchObserver, StopReason
from evomeans.search.population import Individual
from evomeans.search.stopping import DeferredInterrupt

TOLERANCE = 1e-5
X = np.random.default_rng(0).normal(size=(150, 3))


def found(k, inertia, seed=0):
    centers = np.random.default_rng([k, seed]).normal(size=(k, 2))
    return Individual(centers, inertia, np.full(k, 10.0 + seed), 0.5)


def brought(state, step, inertia):
    """Let a step bring a solution of this inertia."""
    return learn(state, step, [found(step.k, inertia)], 5, TOLERANCE, 0.0)


def swept(up, down):
    """Return a state after both sweeps, with these inertias for 2, 3, … clusters."""
    ks = list(range(2, 2 + len(up)))
    state = PathState([1, *ks], [1])
    brought(state, Step("mean", 1), 100.0)
    for k in ks:
        brought(state, Step("up", k, k - 1 if k > 2 else 0), up[k - 2])
    for k in reversed(ks):
        brought(state, Step("down", k, k + 1 if k < ks[-1] else 0), down[k - 2])
    return state


def followed(engine="cpu", ks=range(2, 9), n_jobs=1, state=None, observers=(), **more):
    """Follow a path, or continue one; return its state, why it ended, and the records."""
    state, records = state or PathState([1, *ks], [1]), []
    with DeferredInterrupt() as interrupt:
        reason = follow_path(
            create_engine(engine, X, None, n_jobs=n_jobs),
            state,
            PathSettings(**more),
            observers=[records.append, *(partial(one, interrupt) for one in observers)],
            interrupt=interrupt,
        )
    return state, reason, records


def stop_after(number):
    return lambda interrupt, record: record.number == number


def interrupt_after(number):
    return lambda interrupt, record: setattr(interrupt, "requested", record.number == number)


class Diary(SearchObserver):
    """Writes down what it is told."""

    def __init__(self):
        self.told = []

    def on_start(self, state):
        self.told.append(("start", state.n_steps))

    def on_solution(self, record):
        self.told.append(("step", record.k, record.improvement > 0.0))

    def on_best(self, record):
        self.told.append(("best", record.k))

    def on_end(self):
        self.told.append(("end",))


def test_observers_of_a_path_may_have_verbs():
    """The best of its k is a step that is the first for it, or improves on those before it."""
    diary, engine = Diary(), create_engine("cpu", X, None, n_jobs=1)
    with DeferredInterrupt() as interrupt:
        state = PathState([1, 2, 3], [1])
        follow_path(engine, state, PathSettings(), observers=[diary], interrupt=interrupt)
    first = [("step", 1, False), ("best", 1), ("step", 2, False), ("best", 2)]
    assert diary.told[:5] == [("start", 0), *first]
    assert diary.told[-1] == ("end",)
    steps = [one for one in diary.told if one[0] == "step"]
    n_best = sum(one[0] == "best" for one in diary.told)
    assert n_best == 3 + sum(improved for _, _, improved in steps)


def test_first_up_then_down():
    """Each step of a sweep begins with what the one before it has found."""
    state, steps = PathState([1, 2, 3, 5], [1]), []
    while (step := state.next_step(TOLERANCE, 0)) is not None and len(steps) < 7:
        steps.append((step.kind, step.k, step.source))
        brought(state, step, 100.0 / step.k)
    up = [("up", 2, 0), ("up", 3, 2), ("up", 5, 3)]
    down = [("down", 5, 0), ("down", 3, 5), ("down", 2, 3)]
    assert steps == [("mean", 1, 0), *up, *down]
    assert step is None


def test_nothing_is_left_where_sweeps_agree():
    assert swept([50, 30, 20], [50, 30 * (1 + 1e-6), 20]).next_step(TOLERANCE, 5) is None


def test_those_that_disagree_are_united_and_neighbours_hear_of_it():
    """The sweep up was better at k = 3: the sweep down has to learn it at k = 2."""
    state = swept([50, 29, 20], [50, 30, 20])
    assert state.next_step(TOLERANCE, 0) == Step("combine", 3)
    brought(state, Step("combine", 3), 29)
    assert state.next_step(TOLERANCE, 0) == Step("merge", 2, 3)
    brought(state, Step("merge", 2, 3), 55)
    # What 4 began with on the way up was this very solution.
    assert state.next_step(TOLERANCE, 0) is None
    assert state.entries[3].n_agreeing(TOLERANCE) == 1
    assert state.next_step(TOLERANCE, 1) == Step("fresh", 3)
    brought(state, Step("fresh", 3), 29.5)
    assert state.next_step(TOLERANCE, 1) is None
    brought(state, Step("fresh", 3), 29)
    assert state.entries[3].n_agreeing(TOLERANCE) == 2


def test_a_neighbour_that_teaches_something_is_heard_by_others():
    state = swept([50, 29, 20], [50, 30, 20])
    brought(state, Step("combine", 3), 28)
    assert state.next_step(TOLERANCE, 0) == Step("merge", 2, 3)
    record = brought(state, Step("merge", 2, 3), 49)
    assert record.improvement == pytest.approx(1 / 50)
    # Two agreed at 50, and they were wrong.
    assert state.entries[2].n_agreeing(TOLERANCE) == 1
    assert state.next_step(TOLERANCE, 0) == Step("combine", 2)


def test_members_are_distinct_and_sorted_and_those_that_reach_the_best_agree():
    entry = Entry(alone=[29.0, 30.0, 28.0])
    entry.add([found(3, 30.0), found(3, 28.0, seed=1), found(3, 28.0, seed=1)])
    entry.add([found(3, 29.0, seed=2)])
    assert [one.inertia for one in entry.members] == [28.0, 29.0, 30.0]
    assert entry.n_agreeing(TOLERANCE) == 1
    entry.alone.append(28.0)
    assert entry.n_agreeing(TOLERANCE) == 2


def test_the_path_is_consistent_at_its_end():
    """It falls strictly, and no merger of one solution, once refined, beats the next."""
    state, reason, records = followed(confirmations=1)
    assert reason is StopReason.AGREEMENT
    assert records[-1].n_known == 8
    best = {k: entry.best for k, entry in state.entries.items()}
    assert all(best[b].inertia < best[a].inertia for a, b in pairwise(sorted(best)))
    engine = create_engine("cpu", X, None, n_jobs=1)
    for k in range(2, 8):
        merged, _ = merge_pair(best[k + 1].centers, best[k + 1].cluster_weights)
        (refined,) = engine.refine([Order(merged)])
        assert best[k].inertia <= refined.inertia * (1 + TOLERANCE)


def same(a, b):
    return all(
        a.entries[k].best.inertia == b.entries[k].best.inertia
        and (a.entries[k].best.centers == b.entries[k].best.centers).all()
        for k in a.ks
    )


def test_bits_depend_neither_on_threads_nor_on_interruptions():
    whole, _, records = followed()
    threads, _, _ = followed(n_jobs=3)
    assert same(whole, threads)
    for stop in (1, 5, len(records) - 1):
        part, reason, _ = followed(observers=[stop_after(stop)])
        assert reason is StopReason.OBSERVER
        assert part.n_steps == stop
        rest, reason, _ = followed(state=part)
        assert reason is StopReason.AGREEMENT
        assert same(whole, rest)


def test_an_interrupted_step_leaves_no_trace():
    """What it found is given up, so that the path can continue with the same numbers."""
    whole, _, _ = followed()
    state, reason, _ = followed(observers=[interrupt_after(4)])
    assert reason is StopReason.INTERRUPTED
    assert state.n_steps == 4
    assert same(whole, followed(state=state)[0])


def test_added_numbers_of_clusters_join_the_path():
    state, _, _ = followed(ks=[2, 3, 6])
    before = {k: state.entries[k].best.inertia for k in state.ks}
    state.ks = sorted([*state.ks, 4, 9])
    state, reason, records = followed(state=state)
    assert reason is StopReason.AGREEMENT
    assert sorted(state.entries) == [1, 2, 3, 4, 6, 9]
    assert all(state.entries[k].best.inertia <= before[k] for k in before)
    assert {record.k for record in records} >= {4, 9}
    inertias = [state.entries[k].best.inertia for k in state.ks]
    assert all(b < a for a, b in pairwise(inertias))


def test_however_little_time_there_is_every_k_has_a_solution():
    state, reason, _ = followed(max_time=1e-9)
    assert reason is StopReason.MAX_TIME
    assert sorted(state.entries) == state.ks


def test_the_reference_engine_and_the_papers_operators_do_it_too():
    state, reason, _ = followed("reference", ks=[2, 3, 4], strategy=PAPER)
    assert reason is StopReason.AGREEMENT
    fast, _, _ = followed(ks=[2, 3, 4])
    inertias = [[one.entries[k].best.inertia for k in (2, 3, 4)] for one in (state, fast)]
    assert_allclose(*inertias, rtol=1e-2)


def inertia(X, centers):
    return ((X[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum()


def around_means(X, labels):
    return sum(((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in set(labels))


def solution(X, labels):
    k = labels.max() + 1
    centers = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    return Individual(centers, 0.0, np.bincount(labels).astype(float), 0.5)


def test_merging_costs_are_what_merging_costs():
    """And the nth cheapest pair is merged at its mean, or the last one."""
    rows, labels = X[:40], np.arange(40) % 5
    one = solution(rows, labels)
    given = one.centers, one.cluster_weights
    costs, pairs = merging_costs(*given), list(combinations(range(5), 2))
    for cost, (a, b) in zip(costs, pairs, strict=True):
        after = around_means(rows, np.where(labels == b, a, labels))
        assert_allclose(cost, after - around_means(rows, labels), rtol=1e-9)
    for nth in (0, 1, 9, 50):
        a, b = pairs[np.argsort(costs)[min(nth, 9)]]
        centers, weights = merge_pair(*given, nth)
        assert_allclose(centers[a], rows[(labels == a) | (labels == b)].mean(axis=0))
        assert centers.shape == (4, 3)
        assert weights.sum() == 40


def test_clusters_without_weight_are_merged_without_trace():
    centers = np.array([[0.0], [5.0], [9.0]])
    merged, weights = merge_pair(centers, np.array([2.0, 0.0, 0.0]))
    assert merged.tolist() == [[0.0], [9.0]] or merged.tolist() == [[0.0], [5.0]]
    assert weights.tolist() == [2.0, 0.0]
    halves, _ = merge_pair(centers, np.zeros(3))
    assert np.isfinite(halves).all()


def test_extreme_weights_merge_the_same_pair() -> None:
    """Their products would overflow, or all be zero."""
    weights = np.random.default_rng(0).uniform(1.0, 2.0, 6)
    expected, _ = merge_pair(X[:6], weights)
    for factor in (2.0**-1000, 2.0**1000):
        assert_allclose(merge_pair(X[:6], weights * factor)[0], expected, rtol=0.0)


def test_the_gain_of_a_division_is_what_it_gains():
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(10, 2)) + 8])
    offsets = X - X.mean(axis=0)
    gain, halves = divide(offsets, offsets[-1])
    assert_allclose(halves, [one.mean(axis=0) for one in (offsets[:30], offsets[30:])])
    left = around_means(offsets, np.arange(40) // 30)
    assert_allclose(gain, (offsets**2).sum() - left, rtol=1e-9)


def test_the_cluster_that_gains_most_is_divided():
    """Three clouds, two of which share a centre."""
    rng = np.random.default_rng(3)
    clouds = [rng.normal(scale=0.3, size=(30, 2)) + place for place in ([0, 0], [6, 0], [0, 40])]
    X = np.vstack(clouds)
    shared = np.array([np.vstack(clouds[:2]).mean(axis=0), clouds[2].mean(axis=0)])
    grown = divide_best(X, shared, np.random.default_rng(0))
    assert_allclose(inertia(X, grown), around_means(X, np.arange(90) // 30))
    # Samples on their centres cannot be divided.
    twice = divide_best(shared, shared, np.random.default_rng(0))
    assert twice.shape == (3, 2)
    assert inertia(shared, twice) == 0.0


@pytest.mark.parametrize("k", [4, 6, 9])
def test_neighbours_need_not_be_next_to_each_other(k):
    """Several centres are added or removed where k has gaps; founders only depend on draws."""
    rows = X[:90]
    engine = ReferenceEngine(rows, None)
    for given in (3, 10):
        founding = Taught((solution(rows, np.arange(90) % given),))
        draws = [founding.draw(90, k, np.random.default_rng(7)) for _ in range(2)]
        placed = founding.place(engine, draws)
        assert [one.shape for one in placed] == [(k, 3)] * 2
        assert (placed[0] == placed[1]).all()
        assert (founding.place(engine, draws[:1])[0] == placed[0]).all()
