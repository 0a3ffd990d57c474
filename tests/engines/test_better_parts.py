"""The better versions of all parts in which two solutions differ, against all choices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import Order, create_engine
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.rules import BETTER, MOST_SPARE
from limits import time_limit
from oracles import in_frame, squared_distances
from problems import Problem, paired, problems, without_shrinking

BOTH = pytest.mark.parametrize("guiding_engine", ["reference", "cpu"])
# The corners of a rectangle: halves side by side cost 4, one above the other 9.
CORNERS = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 0.0], [3.0, 2.0]])
GOOD, BAD = np.array([[0.0, 1.0], [3.0, 1.0]]), np.array([[1.5, 0.0], [1.5, 2.0]])


# Compiled before the time limits of single examples begin to count.
pytestmark = pytest.mark.usefixtures("_compiled_kernels")


def at(place: float, points) -> np.ndarray:
    """Points of a region; regions are far from each other."""
    return np.add(points, [place, 0.0])


def encoded(engine, *solutions):
    return [engine.frame.encode(np.vstack(solution)) for solution in solutions]


class Parts:
    """Two solutions and their parts, by the obvious way.

    Parameters
    ----------
    engine : Engine
        Tells which centre is the closest.
    problem : Problem
    solutions : two (k, d) arrays
    """

    def __init__(self, engine, problem, *solutions) -> None:
        k, w = len(solutions[0]), problem.w
        counted = np.flatnonzero(w)
        labels = [np.asarray(engine.assign(centers)[0])[counted] for centers in solutions]
        samples = in_frame(engine.frame, problem.X)[counted]
        self.errors = [
            np.bincount(own, w[counted] * squared_distances(samples, c)[range(len(own)), own], k)
            for own, c in zip(labels, solutions, strict=True)
        ]
        names = np.arange(2 * k)
        for a, b in set(zip(labels[0].tolist(), (labels[1] + k).tolist(), strict=True)):
            names[names == names[b]] = names[a]
        self.k, self.part = k, names
        self.names = np.unique(names)

    def total(self, gone, taken) -> float:
        return float(self.errors[0][~gone].sum() + self.errors[1][taken].sum())

    @property
    def better(self) -> float:
        """What the better one of both solutions costs."""
        return min(errors.sum() for errors in self.errors)

    def lowest(self) -> float:
        """Return what the best of all choices with k clusters costs."""
        best = np.inf
        for choice in product([False, True], repeat=len(self.names)):
            flags = np.isin(self.part, self.names[list(choice)])
            gone, taken = flags[: self.k], flags[self.k :]
            if np.count_nonzero(gone) == np.count_nonzero(taken):
                best = min(best, self.total(gone, taken))
        return best

    def check(self, found) -> None:
        """Whole parts, k clusters, and as good as the best choice, which None says is no gain."""
        lowest = self.lowest()
        if found is None:
            assert lowest >= self.better * BETTER * (1.0 - 1e-12)
            return
        gone, taken = found
        assert gone.dtype == taken.dtype == np.bool_
        assert np.count_nonzero(gone) == np.count_nonzero(taken)
        flags = np.concatenate(found)
        assert all(len(set(flags[self.part == name])) == 1 for name in self.names)
        assert self.total(gone, taken) == pytest.approx(lowest, rel=1e-9)
        assert lowest < self.better * (1.0 - 1e-10)


def put_together(first, second, found):
    gone, taken = found
    centers = first.copy()
    centers[gone] = second[taken]
    return centers


# ---- random solutions ------------------------------------------------------------------------


@paired
@BOTH
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_no_choice_of_parts_is_better(guiding_engine, dtype, weighted, data) -> None:
    """Two refined solutions of all kinds of samples."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engine = problem.engine(guiding_engine)
        one, two = engine.refine(problem.starts(engine, 2))
        parts = Parts(engine, problem, one.centers, two.centers)
        found = engine.better_parts(one.centers, two.centers)
        if len(parts.names) <= 10:
            parts.check(found)
        if found is not None:
            (child,) = engine.refine([Order(put_together(one.centers, two.centers, found))])
            assert child.inertia < min(one.inertia, two.inertia)


def regions(seed: int, count: int, weighted: bool, dtype=np.float64):
    """Return regions of 12 samples each, and two solutions that spread their clusters differently.

    Every region has one to four clusters in each of them; both have as many in all.
    """
    rng = np.random.default_rng(seed)
    places = 1000.0 * np.arange(count)
    samples = [at(place, rng.normal(size=(12, 2))) for place in places]
    X = np.vstack(samples).astype(dtype)
    first = rng.integers(1, 5, count)
    second = rng.permutation(first)
    solutions = [begin(samples, counts, rng) for counts in (first, second)]
    weights = rng.integers(0, 4, len(X)).astype(float) if weighted else None
    return Problem(X, weights, int(first.sum())), *solutions


def begin(samples, counts, rng: np.random.Generator) -> np.ndarray:
    """Draw as many samples of every region as are wanted."""
    chosen = [rng.choice(12, count, replace=False) for count in counts]
    return np.vstack([own[rows] for own, rows in zip(samples, chosen, strict=True)])


def refine_from(engine, *solutions):
    """Refine solutions in data units."""
    return engine.refine([Order(engine.frame.encode(centers)) for centers in solutions])


@paired
@BOTH
@pytest.mark.parametrize("count", [2, 4, 7])
def test_parts_with_any_number_of_clusters_are_chosen_best(
    guiding_engine, dtype, weighted, count
) -> None:
    """Regions far from each other are parts, or several; most of the time both have better ones."""
    gains, unequal = 0, 0
    for seed in range(15):
        problem, *solutions = regions(seed, count, weighted, dtype)
        engine = problem.engine(guiding_engine)
        one, two = refine_from(engine, *solutions)
        parts = Parts(engine, problem, one.centers, two.centers)
        found = engine.better_parts(one.centers, two.centers, one.handle, two.handle)
        if len(parts.names) <= 11:
            parts.check(found)
        if found is not None:
            gains += 1
            flags = np.concatenate(found)
            both = np.repeat([-1, 1], parts.k)
            unequal += any(both[flags & (parts.part == name)].sum() for name in parts.names)
            (child,) = engine.refine([Order(put_together(one.centers, two.centers, found))])
            assert child.inertia < min(one.inertia, two.inertia)
    if count > 2:
        assert gains >= 8
        assert unequal >= 2


@paired
@pytest.mark.parametrize("count", [6, 20])
def test_the_engines_agree_about_many_parts(dtype, weighted, count) -> None:
    """Both find a gain, of the same size, or none."""
    agreed = 0
    for seed in range(10):
        problem, *solutions = regions(100 + seed, count, weighted, dtype)
        cpu, reference = problem.engine("cpu"), problem.engine("reference")
        one, two = (result.centers for result in refine_from(cpu, *solutions))
        parts = Parts(reference, problem, one, two)
        found, expected = (engine.better_parts(one, two) for engine in (cpu, reference))
        for centers in (one, two):
            assert_array_equal(cpu.assign(centers)[0], reference.assign(centers)[0])
        assert (found is None) == (expected is None)
        if found is not None:
            assert parts.total(*found) == pytest.approx(parts.total(*expected), rel=1e-12)
            agreed += 1
    assert agreed >= 7


@paired
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_handles_make_no_difference(dtype, weighted, data) -> None:
    """Given, forgotten, of one parent only, or those of another engine."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engine = CpuEngine(problem.X, problem.weights)
        stranger = CpuEngine(problem.X[::-1].copy(), None)
        forgetful = CpuEngine(problem.X, problem.weights, memory_budget=1)
        starts = problem.starts(engine, 2)
        one, two = engine.refine(starts)
        known = engine.better_parts(one.centers, two.centers, one.handle, two.handle)
        lost = [result.handle for result in forgetful.refine(starts)]
        others = [result.handle for result in stranger.refine(starts)]
        centers = one.centers, two.centers
        for same in (
            engine.better_parts(*centers),
            engine.better_parts(*centers, one.handle),
            engine.better_parts(*centers, None, two.handle),
            engine.better_parts(*centers, *others),
            forgetful.better_parts(*centers, *lost),
        ):
            assert_same_choice(same, known)


def assert_same_choice(found, expected) -> None:
    if expected is None:
        assert found is None
    else:
        for flags, wanted in zip(found, expected, strict=True):
            assert_array_equal(flags, wanted)


# ---- solutions made by hand ------------------------------------------------------------------


PAIRS = [[0.0, 0.0], [0.0, 1.0], [30.0, 0.0], [30.0, 1.0]]
SPLIT, WHOLE = [[0.0, 0.5], [30.0, 0.5]], [[15.0, 0.5]]
WASTED = [[0.0, 0.0], [0.0, 1.0], [30.0, 0.5]]


def rows(spare: int):
    """Return a case in which a wide row of samples wants the centres of a narrow one."""
    row = np.column_stack([np.arange(spare + 1.0), np.zeros(spare + 1)])
    wide, narrow = row * 5.0, row * 0.01
    one, another = [np.mean(wide, axis=0)], [np.mean(narrow, axis=0)]
    found = None if spare > MOST_SPARE else "1" * (spare + 2) + "00"
    return [wide, narrow, CORNERS], [one, narrow, GOOD], [wide, another, BAD], found, found


# Samples of each region; both solutions there; which centres of the first give way, which of the
# second replace them.
BY_HAND = {
    "each is better in one region": (
        [CORNERS, CORNERS], [GOOD, BAD], [BAD, GOOD], "0011", "0011"
    ),
    "whoever is first": ([CORNERS, CORNERS], [BAD, GOOD], [GOOD, BAD], "1100", "1100"),
    # The first wastes a centre on the third region that it lacks in the second.
    "a third region makes up for different numbers of clusters": (
        [CORNERS, PAIRS, PAIRS], [GOOD, WHOLE, WASTED], [BAD, SPLIT, SPLIT], "001110", "001110"
    ),
    # The second is better in one region only because it has more clusters there.
    "nothing makes up for them": ([PAIRS, PAIRS], [WHOLE, SPLIT], [SPLIT, WHOLE], None, None),
    "numbers of clusters differ by so many": rows(MOST_SPARE),
    "numbers of clusters differ by one more": rows(MOST_SPARE + 1),
    "the first is better everywhere": ([CORNERS, CORNERS], [GOOD, GOOD], [BAD, BAD], None, None),
    "the second is better everywhere": ([CORNERS, CORNERS], [BAD, BAD], [GOOD, GOOD], None, None),
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("case", BY_HAND)
def test_parts_made_by_hand(guiding_engine, case) -> None:
    *places, gone, taken = BY_HAND[case]
    X, *solutions = (
        np.vstack([at(1000 * nth, points) for nth, points in enumerate(regions)])
        for regions in places
    )
    engine = create_engine(guiding_engine, X, None)
    first, second = (engine.frame.encode(solution) for solution in solutions)
    found = engine.better_parts(first, second)
    if gone is None:
        assert found is None
        return
    assert ["".join("01"[flag] for flag in flags.tolist()) for flags in found] == [gone, taken]
    inertias = [engine.assign(one)[1] for one in (first, second)]
    assert engine.refine([Order(put_together(first, second, found))])[0].inertia < min(inertias)


@paired
@BOTH
@settings(without_shrinking, max_examples=15)
@given(st.data())
def test_equal_solutions_have_nothing_to_offer(guiding_engine, dtype, weighted, data) -> None:
    """Under any numbering."""
    problem = data.draw(problems(dtype, weighted))
    engine = problem.engine(guiding_engine)
    (one,) = engine.refine(problem.starts(engine))
    order = np.random.default_rng(problem.seed).permutation(problem.k)
    assert engine.better_parts(one.centers, one.centers, one.handle, one.handle) is None
    assert engine.better_parts(one.centers, one.centers[order], one.handle) is None


@BOTH
@pytest.mark.parametrize("weight", [0.0, 1e-3])
def test_samples_without_weight_connect_nothing(guiding_engine, weight) -> None:
    """One between two regions is nearer to the first for one parent, to the other for the other."""
    X = np.vstack([CORNERS, at(100, CORNERS), [[51.5, 1.0]]])
    engine = create_engine(guiding_engine, X, np.append(np.ones(8), weight))
    first, second = encoded(engine, [GOOD, at(100, BAD)], [BAD, at(100, GOOD)])
    assert engine.assign(first)[0][-1] == 1
    assert engine.assign(second)[0][-1] == 2
    found = engine.better_parts(first, second)
    assert_same_choice(found, None if weight else [np.array([False, False, True, True])] * 2)


@pytest.mark.parametrize("count", [5, 8])
def test_sparse_samples_have_the_parts_of_dense_ones(weighted, count) -> None:
    """With handles and without."""
    gains = 0
    for seed in range(10):
        problem, *solutions = regions(200 + seed, count, weighted)
        found = []
        for X in (problem.X, csr_array(problem.X)):
            engine = CpuEngine(X, problem.weights)
            one, two = refine_from(engine, *solutions)
            found.append(engine.better_parts(one.centers, two.centers, one.handle, two.handle))
            assert_same_choice(engine.better_parts(one.centers, two.centers), found[-1])
        assert_same_choice(found[1], found[0])
        gains += found[0] is not None
    assert gains >= 3


@pytest.mark.parametrize("engine_class", [CpuEngine, None], ids=["cpu", "reference"])
def test_with_many_clusters_labels_are_remembered_and_states_are_not(engine_class) -> None:
    """120 regions, in half of which each parent is better; they are numbered differently."""
    rng = np.random.default_rng(0)
    X = np.vstack([at(100 * r, CORNERS) for r in range(120)])
    engine = engine_class(X) if engine_class else create_engine("reference", X, None)
    is_good, order = rng.random(120) < 0.5, rng.permutation(240)
    first = [at(100 * r, GOOD if good else BAD) for r, good in enumerate(is_good)]
    second = [at(100 * r, BAD if good else GOOD) for r, good in enumerate(is_good)]
    first, second = encoded(engine, first, second)
    one, two = engine.refine([Order(first), Order(second[order])])
    if engine_class:
        assert one.handle.solution is None
        assert one.handle.labels is not None
    found = engine.better_parts(one.centers, two.centers, one.handle, two.handle)
    gone = np.repeat(~is_good, 2)
    assert_same_choice(found, [gone, gone[order]])
    assert_same_choice(engine.better_parts(one.centers, two.centers), found)
    child = put_together(one.centers, two.centers, found)
    assert engine.refine([Order(child)])[0].inertia == pytest.approx(120 * 4.0, rel=1e-6)
