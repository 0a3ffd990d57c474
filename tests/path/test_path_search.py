"""The path: what it does next, what it learns, and what has to hold at its end."""

from __future__ import annotations

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
from evomeans.search import SearchObserver, StopReason
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


def followed(
    engine="cpu",
    ks=range(2, 9),
    n_jobs=1,
    stop_after=None,
    interrupt_after=None,
    state=None,
    observers=(),
    **more,
):
    state = state or PathState([1, *ks], [1])
    records = []

    def observe(record):
        records.append(record)
        interrupt.requested = record.number == interrupt_after
        return record.number == stop_after

    with DeferredInterrupt() as interrupt:
        reason = follow_path(
            create_engine(engine, X, None, n_jobs=n_jobs),
            state,
            PathSettings(**more),
            observers=[observe, *observers],
            interrupt=interrupt,
        )
    return state, reason, records


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
    diary = Diary()
    _, reason, _ = followed(ks=[2, 3], observers=[diary])
    assert reason is StopReason.AGREEMENT
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


def test_populations_that_were_united_count_as_one():
    entry = Entry([found(3, 28.0)], alone=[29.0, 30.0, 28.0])
    assert entry.n_agreeing(TOLERANCE) == 1
    entry.alone.append(28.0)
    assert entry.n_agreeing(TOLERANCE) == 2


def test_members_are_distinct_and_sorted():
    entry = Entry()
    entry.add([found(3, 30.0), found(3, 28.0, seed=1), found(3, 28.0, seed=1)])
    entry.add([found(3, 29.0, seed=2)])
    assert [one.inertia for one in entry.members] == [28.0, 29.0, 30.0]


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
        part, reason, _ = followed(stop_after=stop)
        assert reason is StopReason.OBSERVER
        assert part.n_steps == stop
        rest, reason, _ = followed(state=part)
        assert reason is StopReason.AGREEMENT
        assert same(whole, rest)


def test_an_interrupted_step_leaves_no_trace():
    """What it found is given up, so that the path can continue with the same numbers."""
    whole, _, _ = followed()
    state, reason, _ = followed(interrupt_after=4)
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
    from evomeans.search import PAPER

    state, reason, _ = followed("reference", ks=[2, 3, 4], strategy=PAPER)
    assert reason is StopReason.AGREEMENT
    fast, _, _ = followed(ks=[2, 3, 4])
    for k in (2, 3, 4):
        assert state.entries[k].best.inertia == pytest.approx(fast.entries[k].best.inertia, 1e-2)


def inertia(X, centers):
    return ((X[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum()


def solution(X, labels):
    k = labels.max() + 1
    centers = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    return Individual(centers, 0.0, np.bincount(labels).astype(float), 0.5)


def test_merging_costs_are_what_merging_costs():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(40, 3)), np.arange(40) % 5
    one = solution(X, labels)

    def around_means(codes):
        return sum(((X[codes == j] - X[codes == j].mean(axis=0)) ** 2).sum() for j in set(codes))

    costs = merging_costs(one.centers, one.cluster_weights)
    for cost, (a, b) in zip(costs, combinations(range(5), 2), strict=True):
        merged = np.where(labels == b, a, labels)
        assert_allclose(cost, around_means(merged) - around_means(labels), rtol=1e-9)


@pytest.mark.parametrize("nth", [0, 1, 9, 50])
def test_the_nth_cheapest_pair_is_merged_at_its_mean(nth):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(40, 3)), np.arange(40) % 5
    one = solution(X, labels)
    costs = merging_costs(one.centers, one.cluster_weights)
    place = np.argsort(costs)[min(nth, 9)]
    a, b = list(combinations(range(5), 2))[place]
    centers, weights = merge_pair(one.centers, one.cluster_weights, nth)
    assert_allclose(centers[a], X[(labels == a) | (labels == b)].mean(axis=0))
    assert centers.shape == (4, 3)
    assert weights.sum() == 40


def test_clusters_without_weight_are_merged_without_trace():
    centers = np.array([[0.0], [5.0], [9.0]])
    merged, weights = merge_pair(centers, np.array([2.0, 0.0, 0.0]))
    assert merged.tolist() == [[0.0], [9.0]] or merged.tolist() == [[0.0], [5.0]]
    assert weights.tolist() == [2.0, 0.0]
    halves, _ = merge_pair(centers, np.zeros(3))
    assert np.isfinite(halves).all()


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**1000])
def test_extreme_weights_merge_the_same_pair(factor) -> None:
    """Their products would overflow, or all be zero."""
    rng = np.random.default_rng(0)
    centers, weights = rng.normal(size=(6, 2)), rng.uniform(1.0, 2.0, 6)
    expected, _ = merge_pair(centers, weights)
    merged, _ = merge_pair(centers, weights * factor)
    assert_allclose(merged, expected, rtol=0.0)


def test_the_gain_of_a_division_is_what_it_gains():
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(10, 2)) + 8])
    offsets = X - X.mean(axis=0)
    gain, halves = divide(offsets, offsets[-1])
    groups = [offsets[:30], offsets[30:]]
    assert_allclose(halves, [one.mean(axis=0) for one in groups])
    left = sum(((one - one.mean(axis=0)) ** 2).sum() for one in groups)
    assert_allclose(gain, (offsets**2).sum() - left, rtol=1e-9)


def test_the_cluster_that_gains_most_is_divided():
    """Three clouds, two of which share a centre."""
    rng = np.random.default_rng(3)
    clouds = [rng.normal(scale=0.3, size=(30, 2)) + place for place in ([0, 0], [6, 0], [0, 40])]
    X = np.vstack(clouds)
    shared = np.array([np.vstack(clouds[:2]).mean(axis=0), clouds[2].mean(axis=0)])
    grown = divide_best(X, shared, np.random.default_rng(0))
    assert_allclose(inertia(X, grown), inertia(X, np.array([one.mean(axis=0) for one in clouds])))


def test_samples_on_their_centres_cannot_be_divided():
    X = np.array([[0.0, 0.0], [1.0, 1.0]] * 3)
    grown = divide_best(X, X[:2], np.random.default_rng(0))
    assert grown.shape == (3, 2)
    assert inertia(X, grown) == 0.0


@pytest.mark.parametrize("k", [4, 6, 9])
def test_neighbours_need_not_be_next_to_each_other(k):
    """Several centres are added or removed where k has gaps; founders only depend on draws."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 3))
    engine = ReferenceEngine(X, None)
    small, large = solution(X, np.arange(90) % 3), solution(X, np.arange(90) % 10)
    for founding in (Taught((small,)), Taught((large,))):
        draws = [founding.draw(90, k, np.random.default_rng(7)) for _ in range(2)]
        placed = founding.place(engine, draws)
        assert [one.shape for one in placed] == [(k, 3)] * 2
        assert (placed[0] == placed[1]).all()
        assert (founding.place(engine, draws[:1])[0] == placed[0]).all()
