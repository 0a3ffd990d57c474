"""Clusters that change a sample at a time: always as if they were computed anew, and undone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.layout import SparseRows, count_tiles
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.swaps.lists import (
    ARRIVING,
    CHANGED,
    FRESH,
    GROUP,
    LEAVING,
    MOVED,
    WAITING,
    Clusters,
    UndoLog,
    add_fresh,
    fill,
    get_mean,
    refresh_squares,
    square_to,
)
from evomeans.engines.cpu.swaps.moves import (
    LARGE_CLUSTER,
    begin_cluster,
    dissolve,
    join,
    keep_changes,
    leave,
    may_leave,
    move_samples,
    retrace,
    take_back,
)
from evomeans.engines.cpu.swaps.search import (
    ANYWHERE,
    choose_cluster,
    find_neighbours,
    follow_up,
    halve_cluster,
    list_fresh,
    swap,
)
from evomeans.engines.protocol import Order
from oracles import squared_distances
from problems import make_samples, make_weights


@pytest.fixture(params=[pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def dtype(request: pytest.FixtureRequest) -> type[np.floating]:
    """Both precisions: the kernels here are compiled for either, and by no other test."""
    return request.param


@jit
def mean_of(rows, clusters, j, means):
    get_mean(rows, clusters, j, means, j)


@jit
def square_of(rows, i, clusters, j):
    return square_to(rows, i, clusters, j)


class Case(NamedTuple):
    """Clusters with the samples that fill them, in the order of the tiles.

    ``rows`` are the samples in the plainest form.
    """

    samples: object
    clusters: Clusters
    undo: UndoLog
    rows: np.ndarray
    weights: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """Where the centres are, which clusters of sparse samples keep in two factors."""
        found = np.empty((len(self.clusters.sizes), self.rows.shape[1]))
        for j in range(len(found)):
            mean_of(self.samples.rows, self.clusters, j, found)
        return found

    @property
    def costs(self) -> np.ndarray:
        """What every cluster costs, by the labels alone."""
        return np.array([cost(self, j) for j in range(len(self.clusters.sizes))])


def cost(case: Case, j: int) -> float:
    """Σ w‖x − mean‖² over the samples that a label puts into a cluster."""
    return cost_of(case, (case.clusters.labels == j) & (case.weights > 0))


def cost_of(case: Case, own: np.ndarray) -> float:
    if not own.any():
        return 0.0
    squares = squared_distances(case.rows[own], mean(case, own)[None])[:, 0]
    return float(case.weights[own] @ squares)


def mean(case: Case, own) -> np.ndarray:
    return np.average(case.rows[own], axis=0, weights=case.weights[own])


def filled(X, weights, k: int, rng: np.random.Generator) -> Case:
    """Fill clusters of any samples, at least one with weight in each."""
    samples = CpuEngine(X, weights)._workspace(k).samples
    n = X.shape[0]
    w = samples.weights if len(samples.weights) else np.ones(n)
    labels = rng.integers(0, k, n)
    labels[rng.permutation(np.flatnonzero(w))[:k]] = np.arange(k)
    return labelled(samples, w, labels, k, X.shape[1])


def labelled(samples, w: np.ndarray, labels: np.ndarray, k: int, d: int) -> Case:
    """Fill clusters by the labels of the places."""
    n, rows = len(labels), samples.rows
    is_sparse = isinstance(rows, SparseRows)
    if is_sparse:
        rows = sp.csr_array((rows.values, rows.columns, rows.starts), shape=(n, d)).toarray()
    rows = np.array(rows, float)
    tiles = np.zeros((count_tiles(n), WIDTH), np.uint16)
    tiles.ravel()[:n] = labels
    own = [(labels == j) & (w > 0) for j in range(k)]
    centers = np.array([np.average(rows[o], axis=0, weights=w[o]) for o in own])
    totals = np.array([w[o].sum() for o in own])
    clusters, undo = Clusters.allocate(n, k, d, is_sparse), UndoLog.allocate(n, k, d)
    fill(samples, clusters, undo, tiles, centers, totals)
    return Case(samples, clusters, undo, rows, w)


@st.composite
def cases(draw, dtype: type, weighted: bool, sparse: bool = False) -> Case:
    """Clusters of any shape, if ``sparse`` also of sparse samples: no fixed point of anything."""
    n, d = draw(st.sampled_from([9, 30, 64, 130])), draw(st.integers(1, 4))
    k = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = make_samples(draw(st.sampled_from(["normal", "blobs", "duplicates"])), n, d, dtype, rng)
    weights = None
    if weighted:
        weights = make_weights(n, rng)
        weights[:k] = 1.0
    if sparse and draw(st.booleans()):
        X = sp.csr_array(X * (rng.random(X.shape) < 0.6).astype(dtype))
    return filled(X, weights, k, rng)


def move(case: Case, i: int, target: int) -> float:
    """Move a sample, if it may leave its cluster, and return what the kernels say that changes."""
    samples, clusters, undo = case.samples, case.clusters, case.undo
    own, weight = clusters.labels[i], case.weights[i]
    if weight == 0.0 or own == target or not may_leave(clusters, own, weight):
        return 0.0
    change = leave(samples, clusters, undo, i, square_of(samples.rows, i, clusters, own))
    square = square_of(samples.rows, i, clusters, target)
    return change + join(samples, clusters, undo, i, target, square)


def move_some(data, case: Case) -> float:
    """Move samples of all kinds, and return what the kernels say that changes."""
    n, k = len(case.rows), len(case.clusters.sizes)
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, k - 1))
    moves = data.draw(st.lists(pairs, min_size=1, max_size=40))
    return sum(move(case, i, target) for i, target in moves)


def members(clusters: Clusters, j: int) -> list[int]:
    """List the samples of a cluster, forwards; backwards there have to be the same."""
    forwards, i = [], clusters.first[j]
    while i >= 0:
        assert len(forwards) < len(clusters.labels)
        assert clusters.before[i] == (forwards[-1] if forwards else -1)
        forwards.append(int(i))
        i = clusters.after[i]
    return forwards


def assert_consistent(case: Case) -> None:
    """All of it is what the labels say: lists, sizes, weights, means and errors."""
    clusters = case.clusters
    for j in range(len(clusters.sizes)):
        own = (clusters.labels == j) & (case.weights > 0)
        assert sorted(members(clusters, j)) == np.flatnonzero(own).tolist()
        assert clusters.sizes[j] == np.count_nonzero(own)
        assert clusters.weights[j] == pytest.approx(case.weights[own].sum(), rel=1e-12)
        assert_allclose(case.means[j], mean(case, own), rtol=0.0, atol=1e-12)
    if len(clusters.features):
        assert_array_equal(clusters.features, clusters.centers.T)
    # Errors are updated move by move, so a zero has the rounding of what was there before.
    rounding = 1e-14 * (case.weights @ (case.rows**2).sum(axis=1))
    atol = max(1e-12 * case.costs.sum(), rounding)
    assert_allclose(clusters.errors, case.costs, rtol=1e-9, atol=atol)


def assert_measured(case: Case, j: int) -> None:
    """Distances within a cluster, and the largest, are those to its centre."""
    clusters, own = case.clusters, members(case.clusters, j)
    squares = squared_distances(case.rows[own], case.means[j][None])[:, 0]
    assert_allclose(clusters.squares[own], squares, rtol=1e-12, atol=1e-14)
    assert clusters.max_squares[j] == clusters.squares[own].max()


def lowest_merging_costs(case: Case) -> np.ndarray:
    """Return the lowest cost of merging each cluster with another, computed from the labels."""
    clusters, labels = case.clusters, case.clusters.labels.copy()
    k, costs = len(clusters.sizes), case.costs
    united = np.full((k, k), np.inf)
    for a in range(k):
        for b in range(a):
            clusters.labels[labels == b] = a
            united[a, b] = united[b, a] = cost(case, a) - costs[a] - costs[b]
            clusters.labels[:] = labels
    return united.min(axis=1)


def assert_closed(undo: UndoLog) -> None:
    assert not undo.numbers[: GROUP + 1].any()
    assert not undo.is_changed.any()
    assert not undo.is_waiting.any()


def everything(clusters: Clusters) -> list[bytes | list[int]]:
    """All of it, lists as sets."""
    lists = [sorted(members(clusters, j)) for j in range(len(clusters.sizes))]
    others = [name for name in clusters._fields if name not in ("first", "after", "before")]
    return [*(getattr(clusters, name).tobytes() for name in others), *lists]


# ---- filled ----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.data())
def test_filled_clusters_are_what_the_labels_say(dtype, weighted, data) -> None:
    case = data.draw(cases(dtype, weighted, sparse=True))
    assert_consistent(case)
    for j in range(len(case.clusters.sizes)):
        assert_measured(case, j)
    assert_allclose(case.clusters.removal_costs, lowest_merging_costs(case), rtol=1e-9, atol=1e-12)
    assert_closed(case.undo)


# ---- changed a sample at a time --------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_moves_leave_what_the_labels_say_and_their_changes_add_up(dtype, weighted, data) -> None:
    case = data.draw(cases(dtype, weighted, sparse=True))
    before = case.costs.sum()
    change = move_some(data, case)
    assert_consistent(case)
    assert change == pytest.approx(case.costs.sum() - before, abs=1e-9 * before)
    for j in range(len(case.clusters.sizes)):
        assert refresh_squares(case.samples, case.clusters, j) == pytest.approx(
            cost(case, j), abs=1e-12
        )
        assert_measured(case, j)


@settings(max_examples=40)
@given(st.data())
def test_what_is_taken_back_has_never_been(dtype, weighted, data) -> None:
    """To the last bit, also when a second log follows a first whose changes were kept.

    The last moves can be undone alone before, and then all is as after the first ones.
    """
    case = data.draw(cases(dtype, weighted, sparse=True))
    if data.draw(st.booleans()):
        move_some(data, case)
        keep_changes(case.samples, case.clusters, case.undo)
        for j in range(len(case.clusters.sizes)):
            refresh_squares(case.samples, case.clusters, j)
    before = everything(case.clusters)
    move_some(data, case)
    if data.draw(st.booleans()):
        refresh_squares(case.samples, case.clusters, 0)
        move_some(data, case)
    if data.draw(st.booleans()):
        moved, labels = int(case.undo.numbers[MOVED]), case.clusters.labels.copy()
        move_some(data, case)
        retrace(case.samples, case.clusters, case.undo, moved)
        assert_array_equal(case.clusters.labels, labels)
        assert_consistent(case)
        assert (case.undo.numbers[MOVED], case.undo.numbers[WAITING]) == (moved, 0)
    take_back(case.samples, case.clusters, case.undo)
    assert everything(case.clusters) == before
    assert_closed(case.undo)


@settings(max_examples=40)
@given(st.data())
def test_swaps_that_follow_another_lower_what_it_left_and_can_be_taken_back(
    dtype, weighted, data
) -> None:
    case = data.draw(cases(dtype, weighted))
    samples, clusters, undo = case.samples, case.clusters, case.undo
    before, total = everything(clusters), case.costs.sum()
    undo.random[0] = data.draw(st.integers(0, 2**32))
    change = swap(samples, clusters, undo, choose_cluster(clusters, undo, ANYWHERE), ANYWHERE)
    if 0.0 <= change < np.inf:
        followed = follow_up(samples, clusters, undo, change)
        assert followed <= change
        assert_consistent(case)
        assert followed == pytest.approx(case.costs.sum() - total, rel=1e-9, abs=1e-9 * total)
    take_back(samples, clusters, undo)
    assert everything(clusters) == before


def test_followers_leave_room_in_the_log() -> None:
    """One that has no room for the samples of two clusters is not begun."""
    case = filled(np.arange(60.0)[:, None] ** 2, None, 6, np.random.default_rng(0))
    samples, clusters, undo = case.samples, case.clusters, case.undo
    undo.random[0] = 5
    change = swap(samples, clusters, undo, choose_cluster(clusters, undo, ANYWHERE), ANYWHERE)
    written = int(undo.numbers[MOVED])
    short = undo._replace(
        samples=undo.samples[: written + 50], origins=undo.origins[: written + 50]
    )
    undo.samples[written:] = -1
    assert follow_up(samples, clusters, short, change) == change
    assert (undo.samples[written:] == -1).all()


@settings(max_examples=25)
@given(st.data())
def test_move_factors_tell_how_much_farther_a_sample_may_go(dtype, data) -> None:
    """Of equal weights: exactly those gain by a move that are near enough to the other centre."""
    case = data.draw(cases(dtype, weighted=False))
    move_some(data, case)
    clusters = case.clusters
    squares = squared_distances(case.rows, case.means)
    sizes, own = clusters.sizes, clusters.labels
    for i in np.flatnonzero(sizes[own] > 1):
        saved = squares[i, own[i]] * sizes[own[i]] / (sizes[own[i]] - 1.0)
        gains = squares[i] * sizes / (sizes + 1.0) < saved * (1.0 - 1e-9)
        limit = clusters.move_factors[LEAVING, own[i]] * clusters.move_factors[ARRIVING]
        assert_array_equal(gains, squares[i] < limit * squares[i, own[i]] * (1.0 - 1e-9))


def test_fresh_clusters_are_those_that_moved_since_the_start() -> None:
    """And each is listed once, whatever changes afterwards."""
    rng = np.random.default_rng(0)
    engine = CpuEngine(rng.normal(size=(90, 2)), None)
    (parent,) = engine.refine([Order(rng.normal(size=(12, 2)))])
    child = parent.centers.copy()
    child[3] += 0.4
    workspace = engine._workspace(12)
    engine.refine([Order(child)])
    undo = UndoLog.allocate(90, 12, 2)
    list_fresh(undo, workspace.centers)
    fresh = undo.fresh[: undo.numbers[FRESH]].tolist()
    moved = (workspace.centers.exact != child).any(axis=1)
    assert sorted(fresh) == np.flatnonzero(moved).tolist()
    assert 0 < len(fresh) < 12
    for j in (*fresh, *range(12)):
        add_fresh(undo, j)
    assert undo.fresh[:12].tolist() == [*fresh, *(j for j in range(12) if j not in fresh)]


@settings(max_examples=25)
@given(st.data())
def test_what_is_kept_stays_and_closes_the_log(dtype, weighted, data) -> None:
    """Removal costs are computed anew for clusters that have changed, and are nowhere too high."""
    case = data.draw(cases(dtype, weighted))
    move_some(data, case)
    labels, undo = case.clusters.labels.copy(), case.undo
    changed = undo.changed[: undo.numbers[CHANGED]].copy()
    keep_changes(case.samples, case.clusters, undo)
    assert_closed(undo)
    assert_array_equal(case.clusters.labels, labels)
    assert_consistent(case)
    assert_allclose(
        case.clusters.removal_costs[changed],
        lowest_merging_costs(case)[changed],
        rtol=1e-7,
        atol=1e-12,
    )
    assert (case.clusters.removal_costs <= lowest_merging_costs(case) * (1.0 + 1e-7) + 1e-12).all()


@settings(max_examples=40)
@given(st.data())
def test_a_whole_swap_leaves_what_the_labels_say_and_can_be_taken_back(
    dtype, weighted, data
) -> None:
    """A cluster dissolved, one begun in its place, and all that follows from it."""
    case = data.draw(cases(dtype, weighted))
    samples, clusters, undo = case.samples, case.clusters, case.undo
    before, total = everything(clusters), case.costs.sum()
    removed = data.draw(st.integers(0, len(clusters.sizes) - 1))
    free = [
        i
        for i in np.flatnonzero(case.weights)
        if clusters.labels[i] != removed
        and may_leave(clusters, clusters.labels[i], case.weights[i])
    ]
    if not free:
        return
    neighbours = find_neighbours(samples, clusters, undo, removed)
    change = dissolve(samples, clusters, undo, removed, neighbours)
    assert change == pytest.approx(case.costs.sum() - total, rel=1e-9, abs=1e-9 * total)
    assert not (clusters.labels[case.weights > 0] == removed).any()
    chosen = data.draw(st.sampled_from(free))
    undo.group[0], undo.numbers[GROUP] = chosen, 1
    if data.draw(st.booleans()):
        halve_cluster(samples, clusters, undo, clusters.labels[chosen], chosen)
    change += begin_cluster(samples, clusters, undo, removed)
    if change == np.inf:
        take_back(samples, clusters, undo)
        assert everything(clusters) == before
        return
    assert_consistent(case)
    assert change == pytest.approx(case.costs.sum() - total, rel=1e-9, abs=1e-9 * total)
    settled = move_samples(samples, clusters, undo, change)
    assert settled <= change + 1e-9 * (change + total)
    assert_consistent(case)
    assert settled == pytest.approx(case.costs.sum() - total, rel=1e-9, abs=1e-9 * total)
    if data.draw(st.booleans()):
        take_back(samples, clusters, undo)
        assert everything(clusters) == before
    else:
        keep_changes(samples, clusters, undo)
        assert_consistent(case)
    assert_closed(undo)


@pytest.mark.parametrize(
    ("n_samples", "is_left"), [(6 * LARGE_CLUSTER, True), (6 * LARGE_CLUSTER - 1, False)]
)
def test_a_swap_of_large_clusters_leaves_small_gains_to_kmeans(n_samples, is_left) -> None:
    """Clusters still wait for a visit, and another round would gain something."""
    rng = np.random.default_rng(0)
    case = filled(rng.uniform(size=(n_samples, 2)), None, 6, rng)
    samples, clusters, undo = case.samples, case.clusters, case.undo
    change = dissolve(samples, clusters, undo, 0, find_neighbours(samples, clusters, undo, 0))
    undo.group[0], undo.numbers[GROUP] = members(clusters, 1)[0], 1
    change += begin_cluster(samples, clusters, undo, 0)
    settled = move_samples(samples, clusters, undo, change)
    assert settled < 0.0
    assert (undo.numbers[WAITING] > 0) == is_left
    assert_consistent(case)
    assert (move_samples(samples, clusters, undo, settled) < settled) == is_left


def test_a_swap_that_moves_too_many_samples_is_given_up_and_taken_back() -> None:
    """With an undo log that is full after the cluster has been dissolved."""
    rng = np.random.default_rng(0)
    X = make_samples("normal", 200, 2, np.float64, rng)
    case = filled(X, None, 6, rng)
    samples, clusters, undo = case.samples, case.clusters, case.undo
    before = everything(clusters)
    change = dissolve(samples, clusters, undo, 0, find_neighbours(samples, clusters, undo, 0))
    undo.group[0], undo.numbers[GROUP] = members(clusters, 1)[0], 1
    change += begin_cluster(samples, clusters, undo, 0)
    written = int(undo.numbers[MOVED]) + 3
    short = undo._replace(samples=undo.samples[:written], origins=undo.origins[:written])
    assert move_samples(samples, clusters, short, change) == np.inf
    take_back(samples, clusters, short)
    assert everything(clusters) == before
    assert_closed(short)


# ---- halves ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_a_half_gains_what_it_says(dtype, weighted, data) -> None:
    """It is a part of the cluster, and both sums of squares together are lower by the gain."""
    case = data.draw(cases(dtype, weighted, sparse=True))
    chosen = data.draw(st.sampled_from(np.flatnonzero(case.weights).tolist()))
    j = int(case.clusters.labels[chosen])
    gain = halve_cluster(case.samples, case.clusters, case.undo, j, chosen)
    assert gain >= 0.0
    if gain > 0.0:
        own = (case.clusters.labels == j) & (case.weights > 0)
        inside = np.isin(np.arange(len(own)), case.undo.group[: case.undo.numbers[GROUP]])
        assert 0 < inside.sum() < own.sum()
        assert not (inside & ~own).any()
        parted = cost_of(case, inside) + cost_of(case, own & ~inside)
        assert gain == pytest.approx(cost(case, j) - parted, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_two_clouds_in_many_noisy_features_are_parted(form) -> None:
    """Where a centre on a single sample would attract nobody else."""
    rng = np.random.default_rng(0)
    clouds = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 12)) + 2.5 * clouds[:, None] * (np.arange(12) < 6)
    X = np.concatenate([X, rng.normal(9.0, 1.0, (4, 12))])
    samples = CpuEngine(form(X))._workspace(2).samples
    case = labelled(samples, np.ones(84), (samples.order >= 80).astype(int), 2, 12)
    chosen = int(samples.places[3])
    assert halve_cluster(case.samples, case.clusters, case.undo, 0, chosen) > 0.0
    inside = np.isin(samples.places[:80], case.undo.group[: case.undo.numbers[GROUP]])
    assert max(np.mean(inside == clouds), np.mean(inside != clouds)) > 0.95


# ---- who may leave, and who waits ------------------------------------------------------------


def test_a_sample_stays_if_nothing_would_be_left_of_its_cluster() -> None:
    """Alone in it, or with nearly all its weight."""
    clusters = Clusters.allocate(6, 3, 1, sparse=False)
    clusters.sizes[:], clusters.weights[:] = [1, 2, 2], [1.0, 2.0, 1e12 + 1.0]
    assert not may_leave(clusters, 0, 1.0)
    assert may_leave(clusters, 1, 1.0)
    assert may_leave(clusters, 2, 1.0)
    assert not may_leave(clusters, 2, 1e12)
