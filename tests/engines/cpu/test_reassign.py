"""One assignment from what was known before: the labels that float64 would give, ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Refinement
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.kernels import Move
from evomeans.engines.cpu.layout import Solution
from evomeans.engines.frame import Frame
from oracles import FloatArray, assert_true_state, in_frame, squared_distances, squares_in_tiles
from problems import KINDS, Problem, make_samples, make_weights

pytestmark = pytest.mark.usefixtures("_compiled_kernels")


def plain_frame(n_features: int) -> Frame:
    """Make a frame that changes nothing, so that tests know what is exact."""
    return Frame(np.zeros(n_features), 0)


def reassigned(engine: CpuEngine, known: Solution, target: FloatArray) -> Solution:
    """Assign the samples to other centres, beginning from what is known of some."""
    found = Solution.allocate(engine.n_samples, *target.shape)
    engine._workspace(len(target)).run(known, found, target, Move(inherit=True, steps=0))
    return found


def founder(engine: CpuEngine, problem: Problem) -> Refinement:
    return engine.refine(problem.starts(engine))[0]


# ---- any move --------------------------------------------------------------------------------


def moved(centers: FloatArray, rng: np.random.Generator) -> FloatArray:
    """All of them a little, some of them far, onto each other, or in another order."""
    k, d = centers.shape
    centers = centers.copy()
    kind = rng.integers(5)
    if kind == 0:
        centers += 10.0 ** rng.uniform(-8.0, 0.0) * rng.normal(size=(k, d))
    elif kind == 1:
        some = rng.random(k) < 0.2
        centers[some] = rng.uniform(-1.0, 1.0, size=(np.count_nonzero(some), d))
    elif kind == 2:
        centers[rng.integers(k)] = centers[rng.integers(k)]
    elif kind == 3:
        centers = rng.permutation(centers)
    else:
        centers[rng.integers(k)] += 50.0
    return centers


@settings(phases=[Phase.explicit, Phase.generate], max_examples=200)
@given(
    st.integers(0, 2**16),
    st.sampled_from(KINDS),
    st.sampled_from([10, 64, 65, 300, 1000]),
    st.sampled_from([1, 2, 5, 24]),
)
def test_states_are_true_after_moves_of_all_kinds(dtype, seed, kind, n, d) -> None:
    """Eight moves, each from the state that the one before has left."""
    rng = np.random.default_rng(seed)
    X = make_samples(kind, n, d, dtype, rng)
    weights = make_weights(n, rng) if rng.random() < 0.5 else None
    engine = CpuEngine(X, weights)
    k = int(rng.integers(1, min(n, 16), endpoint=True))
    mother = founder(engine, Problem(X, weights, k, "samples", seed))
    known = mother.handle.solution
    for _ in range(8):
        known = reassigned(engine, known, moved(known.centers, rng))
        assert_true_state(engine, X, known.state, known.centers)


def test_sums_follow_the_labels_however_samples_moved(dtype, weighted) -> None:
    """After twenty moves they are those of a fresh assignment to the last bit, and NumPy's."""
    rng = np.random.default_rng(1)
    X = make_samples("normal", 500, 3, dtype, rng)
    weights = make_weights(500, rng) if weighted else None
    engine = CpuEngine(X, weights)
    mother = founder(engine, Problem(X, weights, 7, "samples", 1))
    known = mother.handle.solution
    for _ in range(20):
        known = reassigned(engine, known, moved(known.centers, rng))
    labels, _ = engine.assign(known.centers)
    assert_array_equal(engine._workspace(7).centers.sums.sum(axis=0), known.sums)
    values = (known.sums[:, 0] + known.sums[:, 1] / engine.samples.limb) / engine.samples.scales
    terms = np.insert(in_frame(engine.frame, X), 3, 1.0, axis=1)
    terms *= np.ones((500, 1)) if weights is None else weights[:, None]
    expected = np.zeros((7, 4))
    np.add.at(expected, labels, terms)
    assert_allclose(values, expected, rtol=0.0, atol=1e-12 * np.abs(terms).sum())


@pytest.mark.slow
def test_labels_that_need_more_than_sixteen_bits() -> None:
    """70,000 centres, most of them far away; the closest have the highest indices.

    In one precision only: kernels for such labels are compiled for this test alone.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(70, 2)).astype(np.float32)
    engine = CpuEngine(X)
    centers = 5.0 + rng.random((70_000, 2))
    centers[-60:] = engine.samples_at(rng.random(60))
    labels, _ = engine.assign(centers)
    assert_array_equal(labels, squared_distances(in_frame(engine.frame, X), centers).argmin(axis=1))


# ---- ties ------------------------------------------------------------------------------------


def assert_lowest_of_the_closest(engine: CpuEngine, X: Any, known: Solution) -> int:
    """Labels equal those of exact arithmetic; return how many samples had a choice."""
    squares = squares_in_tiles(engine, X, known.centers)
    assert_array_equal(known.state.labels, squares.argmin(axis=2))
    closest = squares.min(axis=2)[:, :, None]
    return int(np.count_nonzero((squares == closest).sum(axis=2) > 1))


@pytest.mark.parametrize("d", [1, 2, 6])
def test_exact_ties_go_to_the_lowest_index_whatever_was_known(dtype, d) -> None:
    """Integers and half-integers, of which nothing is rounded: duplicates and points between."""
    rng = np.random.default_rng(d)
    ties = 0
    for n in (60, 500):
        X = rng.integers(-3, 4, size=(n, d)).astype(dtype)
        engine = CpuEngine(X, frame=plain_frame(d))
        mother = founder(engine, Problem(X, None, 9, "samples", n))
        known = mother.handle.solution
        target = rng.integers(-6, 7, size=(9, d)) / 2.0
        for _ in range(30):
            known = reassigned(engine, known, target)
            ties += assert_lowest_of_the_closest(engine, X, known)
            j = rng.integers(9, size=3)
            target[j] = rng.integers(-6, 7, size=(3, d)) / 2.0
    assert ties > 150


def test_copies_of_a_centre_win_nothing(dtype, weighted) -> None:
    """Of equal centres the first has all samples, also if it comes to stand there later."""
    rng = np.random.default_rng(3)
    X = make_samples("normal", 700, 4, dtype, rng)
    weights = make_weights(700, rng) if weighted else None
    engine = CpuEngine(X, weights)
    mother = founder(engine, Problem(X, weights, 6, "samples", 3))
    known = mother.handle.solution
    for i in range(6):
        for j in range(6):
            target = known.centers.copy()
            target[j] = target[i]
            child = reassigned(engine, known, target)
            assert_lowest_of_the_closest(engine, X, child)
            assert i == j or not (child.state.labels == max(i, j)).any()


@pytest.mark.parametrize("outlier", [1e6, 1e12, 1e18, 1e24, 1e30])
def test_samples_are_told_apart_beside_any_outlier(dtype, outlier) -> None:
    """Their squared distances, in units of the outlier's, leave the range of single precision."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2)).astype(dtype)
    X[0] = outlier
    engine = CpuEngine(X)
    mother = founder(engine, Problem(X, None, 8, "samples", 4))
    known = mother.handle.solution
    assert_true_state(engine, X, known.state, known.centers)
    centers = in_frame(engine.frame, X[:8])
    labels, _ = engine.assign(centers)
    assert_array_equal(labels, squared_distances(in_frame(engine.frame, X), centers).argmin(axis=1))


def test_samples_far_outside_of_the_frame_are_refused() -> None:
    """The kernels' constants for far and nowhere would mean nothing there."""
    with pytest.raises(ValueError, match="outside of the frame"):
        CpuEngine(np.array([[0.0], [1e9]]), frame=Frame(np.zeros(1), 0))


def test_moves_too_small_for_single_precision_are_moves() -> None:
    """K-means goes on to its fixed point where all that differs is 1e-50 of the extent."""
    rng = np.random.default_rng(6)
    X = np.stack([rng.integers(2, size=200), 1e-50 * rng.normal(size=200)], axis=1)
    engine = CpuEngine(X)
    mother = founder(engine, Problem(X, None, 6, "samples", 6))
    known = mother.handle.solution
    labels, _ = engine.assign(known.centers)
    means = [in_frame(engine.frame, X)[labels == j].mean(axis=0) for j in range(6)]
    assert_allclose(known.centers[:, 1], np.array(means)[:, 1], rtol=1e-9, atol=1e-62)
