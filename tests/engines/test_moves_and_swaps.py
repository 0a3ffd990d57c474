"""Single moves and swaps only ever help, and what they end with is as good as it can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import Order, create_engine
from evomeans.engines.cpu.swaps.lists import UndoLog
from evomeans.engines.cpu.swaps.search import uniform
from evomeans.engines.protocol import Ability, LocalSearch
from limits import time_limit
from oracles import (
    assert_fixed_point,
    assert_same_bits,
    assert_true_state,
    cost_of,
    largest_gain,
    lowest_inertia,
)
from problems import (
    Problem,
    made,
    make_samples,
    make_weights,
    offspring,
    paired,
    problems,
    with_search,
    without_shrinking,
)

MOVES = LocalSearch(single_moves=True)
SWAPS = replace(MOVES, swaps=20)
MOVING = pytest.mark.parametrize("moving_engine", ["reference", "cpu"])


@pytest.fixture(scope="module", autouse=True)
def _compiled(_compiled_kernels) -> None:
    """Compile before the time limits of single examples begin to count."""
    for dtype in (np.float32, np.float64):
        engine = create_engine("cpu", np.eye(3, dtype=dtype), None)
        engine.refine([Order(np.eye(3)[:2], local_search=replace(MOVES, swaps=1))])


@paired
@MOVING
@settings(without_shrinking, max_examples=15)
@given(st.data())
def test_no_single_move_is_left_and_it_is_a_fixed_point_of_kmeans(
    moving_engine, dtype, weighted, data
) -> None:
    """By brute force over all moves, on all kinds of samples."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engine = problem.engine(moving_engine)
        (result,) = engine.refine(with_search(problem.starts(engine), MOVES))
        assert_fixed_point(engine, problem, result)
        if len(problem.X) <= 60 and (result.cluster_weights > 0).all():
            assert largest_gain(engine, problem, result.centers) <= 1e-9


@pytest.mark.parametrize("d", [2, 6])
def test_no_single_move_is_left_among_samples_of_many_tiles(d, weighted) -> None:
    """Also after children have inherited what was known of their parents."""
    rng = np.random.default_rng(d)
    problem = made(200, d, 15, weighted=weighted)
    engine = problem.engine("cpu")
    mother, father = engine.refine(with_search(problem.starts(engine, 2), MOVES))
    for _ in range(3):
        (child,) = engine.refine([offspring(mother, father, rng, local_search=MOVES)])
        assert largest_gain(engine, problem, child.centers) <= 1e-9
        assert_true_state(engine, problem.X, child.handle.solution.state, child.centers)
        father, mother = mother, child


@paired
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_the_cpu_engine_makes_the_moves_of_the_reference_engine(dtype, weighted, data) -> None:
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engines = [problem.engine(name) for name in ("cpu", "reference")]
        starts = with_search(problem.starts(engines[0], 2), MOVES)
        for result, expected in zip(*(one.refine(starts) for one in engines), strict=True):
            assert result.inertia == pytest.approx(expected.inertia, rel=1e-9)


@paired
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_neither_a_parent_nor_threads_change_a_bit(eager_threads, dtype, weighted, data) -> None:
    """Children with the memory of their parent and without, on one thread and on three."""
    problem = data.draw(problems(dtype, weighted))
    rng = np.random.default_rng(problem.seed)
    with time_limit(20):
        engine, team = problem.engine("cpu"), problem.engine("cpu", n_jobs=3)
        mother, father = engine.refine(with_search(problem.starts(engine, 2), MOVES))
        for _ in range(3):
            start = offspring(mother, father, rng, local_search=MOVES)
            (child,) = engine.refine([start])
            (orphan,) = engine.refine([replace(start, parent=None)])
            (shared,) = team.refine([replace(start, parent=None)])
            assert_same_bits(child, orphan)
            assert_same_bits(child, shared)
            father, mother = mother, child


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_samples_move_as_dense_ones_do(weighted) -> None:
    rng = np.random.default_rng(3)
    X = rng.poisson(0.5, size=(150, 12)).astype(float)
    weights = rng.integers(1, 5, size=150).astype(float) if weighted else None
    dense = create_engine("reference", X, weights)
    sparse = create_engine("cpu", csr_array(X), weights)
    for seed in range(5):
        chosen = X[np.random.default_rng(seed).choice(150, 10, replace=False)]
        results = [
            engine.refine([Order(engine.frame.encode(chosen), local_search=MOVES)])[0]
            for engine in (sparse, dense)
        ]
        assert results[0].inertia == pytest.approx(results[1].inertia, rel=1e-9)
        plain = sparse.refine([Order(sparse.frame.encode(chosen))])[0]
        assert results[0].inertia <= plain.inertia


@MOVING
def test_a_fixed_point_of_kmeans_that_is_none_of_hartigans(moving_engine) -> None:
    """0, 4 | 7 is one of K-means; 4 leaves its cluster of two for the farther one: 0 | 4, 7."""
    engine = create_engine(moving_engine, np.array([[0.0], [4.0], [7.0]]), None)
    centers = engine.frame.encode(np.array([[2.0], [7.0]]))
    (plain,) = engine.refine([Order(centers)])
    (moved,) = engine.refine([Order(centers, local_search=MOVES)])
    assert plain.inertia == pytest.approx(8.0)
    assert moved.inertia == pytest.approx(4.5)
    assert_array_equal(np.sort(moved.cluster_weights), [1.0, 2.0])


@MOVING
def test_weights_decide_about_moves(moving_engine) -> None:
    """4 leaves 0 for 7 if the sample there weighs little, and stays if it is heavy."""
    X, centers = np.array([[0.0], [4.0], [7.0]]), np.array([[2.0], [7.0]])
    for weight, expected in ((1.0, 4.5), (9.0, 8.0)):
        engine = create_engine(moving_engine, X, np.array([1.0, 1.0, weight]))
        (result,) = engine.refine([Order(engine.frame.encode(centers), local_search=MOVES)])
        assert result.inertia == pytest.approx(expected)


@pytest.mark.parametrize("exponent", [-1000, -300, -130, 130, 300, 900])
def test_the_size_of_weights_does_not_matter(exponent) -> None:
    """Far outside of single precision, too."""
    rng = np.random.default_rng(5)
    X, weights = rng.normal(size=(300, 3)), rng.integers(1, 5, size=300).astype(float)
    inertias = []
    for factor in (1.0, 2.0**exponent):
        engine = create_engine("cpu", X, factor * weights)
        (result,) = engine.refine([Order(engine.frame.encode(X[:25]), local_search=MOVES)])
        inertias.append(result.inertia / factor)
    assert inertias[0] == pytest.approx(inertias[1], rel=1e-12)


@MOVING
def test_rounding_moves_nobody_back_and_forth(moving_engine) -> None:
    """Near-duplicates, some of which weigh nearly all: distances as small as means are exact."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 2)), 3, axis=0) + 1e-6 * rng.normal(size=(180, 2))
    weights = np.where(rng.random(180) < 0.05, 1e12, rng.random(180))
    engine = create_engine(moving_engine, X, weights)
    for seed in range(30 if moving_engine == "cpu" else 2):
        chosen = X[np.random.default_rng(seed).choice(180, 40, replace=False)]
        (result,) = engine.refine([Order(engine.frame.encode(chosen), local_search=MOVES)])
        assert result.n_iter < 1000


@MOVING
def test_moves_only_ever_lower_the_inertia(moving_engine) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    engine = create_engine(moving_engine, X, None)
    lower = 0
    for seed in range(5):
        chosen = X[np.random.default_rng(seed).choice(120, 12, replace=False)]
        start = Order(engine.frame.encode(chosen))
        (plain,), (moved,) = engine.refine([start]), engine.refine(with_search([start], MOVES))
        assert moved.inertia <= plain.inertia
        lower += moved.inertia < 0.999 * plain.inertia
    assert lower >= 3


# ---- swaps ---------------------------------------------------------------------------------------


def refine_both(engine, start: Order, count: int = 20):
    """Refine without swaps, and with them."""
    (without,) = engine.refine([replace(start, local_search=MOVES)])
    (result,) = engine.refine([replace(start, local_search=replace(MOVES, swaps=count))])
    return without, result


# ---- what they lead to -----------------------------------------------------------------------


@paired
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_swaps_cost_nothing_and_leave_nothing_to_kmeans_or_single_moves(
    dtype, weighted, data
) -> None:
    """On all kinds of samples: a fixed point of both, never above the one without swaps."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engine = problem.engine("cpu")
        without, result = refine_both(engine, *problem.starts(engine))
        assert result.inertia <= without.inertia
        assert_fixed_point(engine, problem, result)
        assert_true_state(engine, problem.X, result.handle.solution.state, result.centers)
        if len(problem.X) <= 30 and (result.cluster_weights > 0).all():
            assert largest_gain(engine, problem, result.centers) <= 1e-9


@pytest.mark.parametrize("d", [2, 6])
def test_swaps_help_among_samples_of_many_tiles(d, weighted) -> None:
    """Also children who have inherited what was known of their parents."""
    problem, rng = made(400, d, 25, weighted=weighted), np.random.default_rng(d)
    engine = problem.engine("cpu")
    mother, father = engine.refine(with_search(problem.starts(engine, 2), SWAPS))
    helped = 0
    for _ in range(4):
        without, child = refine_both(engine, offspring(mother, father, rng), 100)
        helped += child.inertia < 0.999 * without.inertia
        assert child.inertia <= without.inertia
        assert_fixed_point(engine, problem, child)
        assert_true_state(engine, problem.X, child.handle.solution.state, child.centers)
        father, mother = mother, child
    assert largest_gain(engine, problem, child.centers) <= 1e-9
    assert helped >= 2


@pytest.mark.parametrize(("name", "n_draws"), [("cpu", 60), ("reference", 3)])
def test_swaps_get_out_where_kmeans_and_single_moves_are_stuck(dtype, name, n_draws) -> None:
    """Two centres share a cloud, and two clouds a centre: any draws set it right."""
    corners = np.array([[0.0, 0.0], [0.0, 100.0], [100.0, 0.0], [100.0, 100.0]])
    X = np.repeat(corners, 40, axis=0) + np.random.default_rng(0).normal(size=(160, 2))
    own = np.repeat(np.arange(4), 40)
    optimum = sum(cost_of(X, np.ones(len(X)), own == j) for j in range(4))
    engine = create_engine(name, X.astype(dtype), None)
    begin = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 100.0], [100.0, 50.0]])
    for quantile in np.arange(n_draws) / n_draws:
        without, result = refine_both(engine, Order(engine.frame.encode(begin), 1.0, quantile))
        assert without.inertia > 100.0 * optimum
        assert result.inertia == pytest.approx(optimum, rel=1e-5)
        assert result.cluster_weights.tolist() == [40.0] * 4


def test_many_swaps_find_most_optima_of_small_problems(weighted) -> None:
    """Against dynamic programming over all partitions of eight samples."""
    found, found_without = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, k = rng.normal(size=(8, 2)), int(rng.integers(2, 5))
        weights = rng.integers(1, 6, 8).astype(float) if weighted else None
        optimum = lowest_inertia(X, np.ones(8) if weights is None else weights, k)
        engine = create_engine("cpu", X, weights)
        without, result = refine_both(engine, Order(engine.frame.encode(X[:k]), 1.0, 0.3), 200)
        assert result.inertia >= optimum * (1.0 - 1e-9)
        found += result.inertia <= optimum * (1.0 + 1e-9)
        found_without += without.inertia <= optimum * (1.0 + 1e-9)
    assert found >= 36
    assert found_without <= found - 5


# ---- what they draw --------------------------------------------------------------------------


def test_other_quantiles_draw_other_swaps() -> None:
    X = np.random.default_rng(4).normal(size=(300, 2))
    engine = create_engine("cpu", X, None)
    (founder,) = engine.refine([Order(engine.frame.encode(X[:20]), local_search=MOVES)])
    inertias = [
        refine_both(engine, Order(founder.centers, 1.0, quantile), 10)[1].inertia
        for quantile in (0.0, 1e-9, 0.25, 0.5, 0.75, 1.0 - 2.0**-53)
    ]
    assert len(set(inertias)) >= 5


@pytest.mark.parametrize(
    ("seed", "expected"), [(0, 0xE220A8397B1DCDAF), (1234567, 6457827717110365317)]
)
def test_random_numbers_are_those_of_splitmix64(seed, expected) -> None:
    """The first 53 bits of what the authors' own program gives."""
    undo = UndoLog.allocate(1, 1, 1)
    undo.random[0] = seed
    assert uniform(undo) == (expected >> 11) * 2.0**-53


# ---- awkward weights and samples -------------------------------------------------------------


def check(problem: Problem, count: int = 40):
    """Refine from samples with and without swaps, and check what has to hold for both."""
    engine = problem.engine("cpu")
    with time_limit(20):
        without, result = refine_both(engine, *problem.starts(engine), count)
    assert result.inertia <= without.inertia
    assert_fixed_point(engine, problem, result)
    return without, result


@paired
@pytest.mark.parametrize("kind", ["normal", "duplicates", "offset", "few distinct", "needle"])
@pytest.mark.parametrize("k", [1, 2, 12, 29, 30])
def test_any_number_of_clusters_up_to_one_per_sample(kind, dtype, weighted, k) -> None:
    """Also large offsets, and fewer distinct samples than clusters."""
    for seed in range(3):
        problem = made(30, 2, k, kind=kind, dtype=dtype, weighted=weighted, seed=seed)
        without, result = check(problem)
        if k == 1:
            assert_same_bits(without, result)


@pytest.mark.parametrize("exponent", [3, 6, 9])
@pytest.mark.parametrize("kind", ["normal", "blobs", "duplicates"])
def test_very_unequal_weights(kind, dtype, exponent) -> None:
    """From 10⁻⁹ to 10⁹: a sample may have all but nothing of its cluster's weight."""
    for seed in range(5):
        weights = 10.0 ** np.random.default_rng(seed).uniform(-exponent, exponent, 120)
        problem = made(120, 2, 15, kind=kind, dtype=dtype, seed=seed)
        check(replace(problem, weights=weights), 100)


@pytest.mark.parametrize("large", ["distance", "weight"])
def test_what_rounding_leaves_of_something_large_is_no_gain(large) -> None:
    """A sample joins a cluster for a while that is 10¹⁰ away, or weighs 10¹⁸ as much."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        if large == "distance":
            X, weights, k = make_samples("needle", 10, 2, np.float64, rng), None, 6
        else:
            X, k = rng.normal(size=(60, 2)), 12
            weights = np.where(rng.random(60) < 0.1, 1e9, 1e-9)
        engine = create_engine("cpu", X, weights)
        (start,) = Problem(X, weights, k, "samples", seed).starts(engine)
        without, result = refine_both(engine, start, 60)
        assert result.inertia <= without.inertia


# ---- the slow and obvious twin ---------------------------------------------------------------


def test_the_reference_engine_swaps_too(weighted) -> None:
    """It only ever helps, and ends where neither K-means nor single moves find anything."""
    problem = made(60, 2, 8, weighted=weighted, seed=5)
    engine = problem.engine("reference")
    helped = 0
    for start in problem.starts(engine, 4):
        without, result = refine_both(engine, start, 10)
        assert result.inertia <= without.inertia
        helped += result.inertia < without.inertia
        assert_fixed_point(engine, problem, result)
        assert largest_gain(engine, problem, result.centers) <= 1e-9
    assert helped >= 2


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_samples_are_swapped_as_well_as_dense_ones(weighted) -> None:
    """Never worse than before, always a fixed point, and with about the same gain on average."""
    gains = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 30)) * (rng.random((150, 30)) < 0.3)
        weights = make_weights(len(X), rng) if weighted else None
        for samples in (X, csr_array(X)):
            engine = create_engine("cpu", samples, weights)
            start = Order(engine.frame.encode(X[:12]), 1.0, 0.3)
            plain, swapped = refine_both(engine, start, 60)
            (again,) = engine.refine([Order(swapped.centers)])
            assert again.inertia == pytest.approx(swapped.inertia, rel=1e-12)
            gains.append(1.0 - swapped.inertia / plain.inertia)
    assert min(gains) >= 0.0
    dense, sparse = np.mean(gains[::2]), np.mean(gains[1::2])
    assert dense > 0.005
    assert sparse == pytest.approx(dense, rel=0.5)


# ---- who makes none --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpu", "dask"])
def test_engines_without_swaps_or_single_moves_say_so_and_refuse_them(name, request) -> None:
    if name == "gpu":
        request.getfixturevalue("gpu_device")
    else:
        pytest.importorskip("dask")
    engine = create_engine(name, np.eye(4), None)
    for wanted in (LocalSearch(swaps=1), LocalSearch(single_moves=True)):
        (ability,) = wanted.needs
        assert ability not in engine.abilities
        with pytest.raises(NotImplementedError, match=f"cannot do {ability}"):
            engine.refine([Order(np.eye(4), local_search=wanted)])


def test_rows_that_are_nearly_empty_have_no_single_moves() -> None:
    """Centres have all features, and two of them would follow every move."""
    wide, narrow = csr_array(np.eye(40)), csr_array(np.eye(10))
    assert Ability.SINGLE_MOVES not in create_engine("cpu", wide, None).abilities
    assert Ability.SINGLE_MOVES in create_engine("cpu", narrow, None).abilities
