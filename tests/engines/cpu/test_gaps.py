"""A state describes the samples correctly after every refinement, whatever came before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines import Order
from evomeans.engines.cpu.assignment import locate_center, renew_gaps, score, shrink_gaps
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.layout import BEST, CLOSEST, FAR, MORE, State, remember_center
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.frame import Frame
from oracles import FloatArray, assert_true_state, squared_distances, squares_in_tiles
from problems import (
    KINDS,
    STARTS,
    Problem,
    make_samples,
    make_weights,
    offspring,
    without_shrinking,
)

pytestmark = pytest.mark.usefixtures("_compiled_kernels")


def assert_family_true(engine: CpuEngine, problem: Problem, X: Any, generations: int) -> None:
    """Founders, and offspring of offspring that inherit the gaps of their parents."""
    rng = np.random.default_rng(problem.seed)
    mother, father = engine.refine(problem.starts(engine, 2))
    assert_true_state(engine, X, mother.handle.solution.state, mother.centers)
    assert_true_state(engine, X, father.handle.solution.state, father.centers)
    for _ in range(generations):
        (child,) = engine.refine([offspring(mother, father, rng)])
        assert_true_state(engine, X, child.handle.solution.state, child.centers)
        mother, father = (child, mother) if rng.random() < 0.7 else (father, child)


# ---- refinements -----------------------------------------------------------------------------


def make_awkward(kind: str, n: int, d: int, dtype: type, rng: np.random.Generator) -> NDArray[Any]:
    """Make samples of all kinds, or clusters far smaller than the tiles they stand in."""
    if kind == "specks":
        places = rng.normal(size=(int(rng.integers(2, 8)), d))
        size = 1e-6 if dtype is np.float64 else 1e-4
        return (places[rng.integers(len(places), size=n)] + size * rng.normal(size=(n, d))).astype(
            dtype
        )
    return make_samples(kind, n, d, dtype, rng)


@st.composite
def tiled_problems(draw, dtype: type, weighted: bool) -> Problem:
    """From one sample to many tiles, up to 40 features and 30 clusters."""
    n = draw(st.sampled_from([1, 5, 40, 63, 64, 65, 130, 200, 500, 1200]))
    d = draw(st.sampled_from([1, 2, 2, 3, 5, 8, 17, 40]))
    k = draw(st.integers(1, min(n, 30)))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    X = make_awkward(draw(st.sampled_from([*KINDS, "specks"])), n, d, dtype, rng)
    weights = make_weights(n, rng) if weighted else None
    return Problem(X, weights, k, draw(st.sampled_from(STARTS)), seed)


@settings(without_shrinking, max_examples=75)
@given(st.data())
def test_states_are_true_after_every_refinement(dtype, weighted, data) -> None:
    """Founders, repairs of empty clusters, and three generations, on all kinds of samples."""
    problem = data.draw(tiled_problems(dtype, weighted))
    engine = CpuEngine(problem.X, problem.weights)
    assert_family_true(engine, problem, problem.X, 3)


@pytest.mark.parametrize(
    ("n", "d", "k"), [(6000, 2, 30), (4000, 10, 20), (2000, 40, 12), (3000, 1, 25)]
)
@pytest.mark.parametrize("kind", ["normal", "blobs", "outliers"])
def test_states_stay_true_over_generations(dtype, kind, n, d, k) -> None:
    """Twelve generations of what a search does, on data with many tiles."""
    rng = np.random.default_rng(n)
    X = make_samples(kind, n, d, dtype, rng)
    assert_family_true(CpuEngine(X), Problem(X, None, k, "samples", n), X, 12)


@pytest.mark.parametrize("where", ["one point", "far away"])
def test_states_are_true_after_repairs_of_empty_clusters(dtype, weighted, where) -> None:
    """All clusters but one begin empty, with and without a parent; the gaps outlast the repairs."""
    rng = np.random.default_rng(1)
    X = make_samples("normal", 900, 3, dtype, rng)
    weights = make_weights(900, rng) if weighted else None
    engine = CpuEngine(X, weights)
    founders = Problem(X, weights, 9, where, 1).starts(engine, 4)
    for start in founders:
        (first,) = engine.refine([start])
        assert (first.cluster_weights > 0.0).all()
        assert_true_state(engine, X, first.handle.solution.state, first.centers)
        again = Order(start.centers, rng.random(), rng.random(), parent=first.handle)
        (second,) = engine.refine([again])
        assert_true_state(engine, X, second.handle.solution.state, second.centers)


@pytest.mark.usefixtures("eager_threads")
def test_states_are_true_however_many_threads_share_the_tiles(dtype) -> None:
    X = make_samples("normal", 3000, 3, dtype, np.random.default_rng(3))
    engine = CpuEngine(X, n_jobs=3)
    assert engine._workspace(12).team.n_threads == 3
    assert_family_true(engine, Problem(X, None, 12, "samples", 3), X, 5)


@pytest.mark.parametrize(("n", "d", "k"), [(50, 6, 4), (900, 30, 12), (700, 3, 20)])
def test_states_of_sparse_samples_are_true(dtype, weighted, n, d, k) -> None:
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)).astype(dtype)
    S = sp.csr_matrix(X)
    weights = make_weights(n, rng) if weighted else None
    assert_family_true(CpuEngine(S, weights), Problem(X, weights, k, "samples", n), S, 6)


@pytest.mark.parametrize("removed", range(4))
def test_a_tile_that_is_all_one_cluster_notices_when_its_centre_leaves_and_returns(
    dtype, removed
) -> None:
    """Nothing but this centre is near: its samples are lost to the others, and won back."""
    rng = np.random.default_rng(4)
    places = np.array([[0.0, 0.0], [8.0, 1.0], [0.0, 9.0], [7.0, 9.0]])
    X = (np.repeat(places, 2 * WIDTH, axis=0) + 0.1 * rng.normal(size=(512, 2))).astype(dtype)
    engine = CpuEngine(X)
    (mother,) = engine.refine([Order(engine.samples_at(np.array([0.1, 0.3, 0.6, 0.9])))])
    assert mother.handle.solution.state.present.sum(axis=1).tolist() == [1] * 8
    for quantile in (0.1, 0.5, 0.9):
        start = Order(mother.centers, 1.0, quantile, removed, parent=mother.handle)
        (child,) = engine.refine([start])
        assert_true_state(engine, X, child.handle.solution.state, child.centers)
        # Everybody near is farther from all other centres: that is where the draw falls.
        assert child.inertia == pytest.approx(mother.inertia, rel=1e-9)


# ---- bounds have to be good for something ----------------------------------------------------


def test_clusters_far_apart_are_never_compared_again(dtype) -> None:
    """Nothing moves, or all centres move a little: the gaps say that nobody changes sides."""
    rng = np.random.default_rng(5)
    places = 10.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 3]])
    X = (places[rng.integers(5, size=2000)] + rng.normal(size=(2000, 2))).astype(dtype)
    engine = CpuEngine(X)
    (mother,) = engine.refine([Order(engine.frame.encode(places.astype(dtype)).astype(float))])
    before = engine.comparisons
    engine.refine([Order(mother.centers, parent=mother.handle)])
    assert engine.comparisons == before
    engine.refine([Order(mother.centers + 1e-3, parent=mother.handle)])
    assert engine.comparisons - before < 2000


def test_children_are_compared_with_a_part_of_the_centres_only(dtype) -> None:
    """A relocation concerns the tiles around two of thirty centres."""
    rng = np.random.default_rng(6)
    X = make_samples("normal", 6000, 2, dtype, rng)
    engine = CpuEngine(X)
    (mother,) = engine.refine(Problem(X, None, 30, "samples", 6).starts(engine))
    for _ in range(5):
        before = engine.comparisons
        (child,) = engine.refine([offspring(mother, mother, rng)])
        assert engine.comparisons - before < 0.3 * 6000 * 30 * child.n_iter


# ---- single steps ----------------------------------------------------------------------------


def one_tile(gaps: Any, present: Any, spread: float) -> State:
    state = State.allocate(WIDTH, len(gaps))
    state.labels[:] = 0
    state.gaps[0], state.present[0], state.spread[0] = gaps, present, spread
    return state


@settings(without_shrinking)
@given(st.integers(0, 2**16))
def test_gaps_shrink_by_no_less_than_the_centres_move(seed) -> None:
    """By the move of the centre and the largest move of a centre that is present."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 40))
    gaps = (rng.random(k) * 10.0 ** rng.integers(-6, 3, k)).astype(np.float32)
    present = (rng.random(k) < 0.3).astype(np.uint8)
    moves = rng.random(k) * 10.0 ** rng.integers(-6, 1, k)
    leaves = rng.random(k) < 0.1
    drift = moves.astype(np.float32) * MORE
    approached = np.where(leaves, np.float32(0.0), drift)
    state = one_tile(gaps, present, 3.0)
    used_up = shrink_gaps(state, 0, drift, approached)
    own = moves[present == 1].max(initial=0.0)
    lost = np.where(leaves, 0.0, moves) + own
    exact = gaps - lost
    assert (state.gaps[0][exact > 0.0] <= exact[exact > 0.0]).all()
    assert (state.gaps[0][exact <= 0.0] <= 0.0).all()
    assert (state.gaps[0] >= exact - 1e-5 * (gaps + lost)).all()
    assert used_up == (state.gaps[0] < 0.0).any()
    assert 3.0 + own <= state.spread[0] <= (3.0 + own) * 1.00001


@settings(without_shrinking)
@given(st.integers(0, 2**16))
def test_new_gaps_are_on_the_safe_side_of_scores_that_are_off(seed) -> None:
    """Scores off by up to the error that is stated: gaps and spread are bounds all the same."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    points, centers = rng.normal(size=(WIDTH, 2)), rng.normal(size=(k, 2))
    centers[0] = points[0] + 1e-4
    centers[1] = points[0] - 1e-4
    truth = squared_distances(points, centers)
    labels, own = truth.argmin(axis=1), np.sqrt(truth.min(axis=1))
    squares = np.sum(points**2, axis=1, dtype=np.float64)
    error = np.float32(1e-5)
    # Half of the error; the other half is for what single precision adds here.
    off = rng.uniform(-error / 2, error / 2, truth.shape)
    scores = (truth - squares[:, None] + off).T.astype(np.float32, order="C")
    work = CpuEngine(points)._workspace(k).work
    lanes, work.samples.squares[:] = work.scratch.lanes[0], squares
    work.scratch.scores[0], work.scratch.chosen[0] = scores, range(k)
    lanes[CLOSEST], lanes[BEST] = labels, scores[labels, np.arange(WIDTH)]
    state = one_tile(np.zeros(k), np.zeros(k), 0.0)
    renew_gaps(work, state, 0, 0, k, error)
    for j in range(k):
        others = labels != j
        exact = np.min(np.sqrt(truth[others, j]) - own[others], initial=float(FAR))
        assert exact - 0.02 <= state.gaps[0, j] <= exact
    assert own.max() <= state.spread[0] <= own.max() + 0.02


# ---- the error of a score --------------------------------------------------------------------


@jit
def compute_scores(samples, centers, scratch, tile, chosen):
    for a in range(chosen.shape[0]):
        j = scratch.chosen[0, a] = chosen[a]
        remember_center(samples.rows, centers.exact, j)
        offset = scratch.offsets[0, a]
        scratch.away[0, a] = locate_center(samples, tile, centers.exact, j, offset)
    score(samples, tile, scratch, 0, chosen.shape[0])


def assert_scores_within_their_error(
    engine: CpuEngine, X: Any, centers: FloatArray, step: int = 1
) -> None:
    """‖x‖² + score is ‖x − c‖² up to roundoff · (‖c‖ + radius)², relative to the middle.

    Only every ``step``-th centre is compared.
    """
    workspace = engine._workspace(len(centers))
    samples, workspace.centers.exact[:] = workspace.samples, centers
    chosen = np.arange(0, len(centers), step, dtype=np.int32)
    exact = squares_in_tiles(engine, X, centers[chosen])
    for tile in range(len(samples.radii)):
        compute_scores(samples, workspace.centers, workspace.scratch, tile, chosen)
        scores = workspace.scratch.scores[0, : len(chosen)].T.astype(float)
        computed = samples.squares[tile].astype(float)[:, None] + scores
        # Sparse samples have no middles: the origin it is.
        middle = samples.middles[tile] if len(samples.middles) else np.zeros(X.shape[1])
        extent = np.linalg.norm(centers[chosen] - middle, axis=1) + samples.radii[tile]
        assert (np.abs(computed - exact[tile]) <= float(samples.roundoff) * extent**2).all()


@pytest.mark.parametrize("d", [1, 2, 7, 40, 200])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_scores_are_as_good_as_they_are_said_to_be(dtype, d, offset) -> None:
    """Tiles of radius one at the origin or far from it; centres on, near and far from samples."""
    rng = np.random.default_rng(d)
    X = (offset + rng.normal(size=(3 * WIDTH - 7, d))).astype(dtype)
    engine = CpuEngine(X, frame=Frame(np.zeros(d), 0))
    near = X[:10].astype(float)
    far = offset + 1e3 * rng.normal(size=(5, d))
    centers = np.concatenate([near, near + 1e-6, near + 0.3 * rng.normal(size=near.shape), far])
    assert_scores_within_their_error(engine, X, centers)
    assert_scores_within_their_error(engine, X, centers[:1])


@pytest.mark.parametrize("step", [1, 6])
def test_scores_of_sparse_samples_are_as_good_as_they_are_said_to_be(dtype, step) -> None:
    """Compared with all centres and with one in six of them."""
    rng = np.random.default_rng(0)
    S = sp.random(200, 30, 0.2, "csr", dtype, random_state=0)
    engine = CpuEngine(S)
    drawn = engine.samples_at(rng.random(9))
    centers = np.concatenate([drawn, drawn + 1e-6, rng.normal(size=(7, 30))])
    assert_scores_within_their_error(engine, S, centers, step)
