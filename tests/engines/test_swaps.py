"""Swaps: they only ever help, and what they end with is as good as any other refinement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    make_samples,
    make_weights,
    offspring,
    paired,
    problems,
    without_shrinking,
)


@pytest.fixture(scope="module", autouse=True)
def _compiled(_compiled_kernels) -> None:
    """Compile before the time limits of single examples begin to count."""
    for dtype in (np.float32, np.float64):
        engine = create_engine("cpu", np.eye(3, dtype=dtype), None)
        engine.refine([Order(np.eye(3)[:2], local_search=LocalSearch(single_moves=True, swaps=1))])


def swapping(starts: list[Order], count: int = 20) -> list[Order]:
    wanted = LocalSearch(single_moves=True, swaps=count)
    return [replace(start, local_search=wanted) for start in starts]


def refine_both(engine, start: Order, count: int = 20):
    """Refine without swaps, and with them."""
    (start,) = swapping([start], count)
    (without,) = engine.refine([replace(start, local_search=LocalSearch(single_moves=True))])
    (result,) = engine.refine([start])
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
        engine = create_engine("cpu", problem.X, problem.weights)
        (start,) = problem.starts(engine)
        without, result = refine_both(engine, start)
        assert result.inertia <= without.inertia
        assert_fixed_point(engine, problem, result)
        assert_true_state(engine, problem.X, result.handle.solution.state, result.centers)
        if len(problem.X) <= 30 and (result.cluster_weights > 0).all():
            assert largest_gain(engine, problem, result.centers) <= 1e-9


@pytest.mark.parametrize("d", [2, 6])
def test_swaps_help_among_samples_of_many_tiles(d, weighted) -> None:
    """Also children who have inherited what was known of their parents."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(400, d))
    weights = rng.integers(0, 4, size=400).astype(float) if weighted else None
    problem = Problem(X, weights, 25, "samples", 0)
    engine = create_engine("cpu", X, weights)
    mother, father = engine.refine(swapping(problem.starts(engine, 2)))
    helped = 0
    for _ in range(4):
        without, child = refine_both(engine, offspring(mother, father, rng), 100)
        helped += child.inertia < 0.999 * without.inertia
        assert child.inertia <= without.inertia
        assert_fixed_point(engine, problem, child)
        assert_true_state(engine, X, child.handle.solution.state, child.centers)
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
    (founder,) = engine.refine(
        [Order(engine.frame.encode(X[:20]), local_search=LocalSearch(single_moves=True))]
    )
    inertias = [
        engine.refine(swapping([Order(founder.centers, 1.0, quantile)], 10))[0].inertia
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


def check(X, weights, k: int, seed: int, count: int = 40):
    """Refine from samples with and without swaps, and check what has to hold for both."""
    problem = Problem(X, weights, k, "samples", seed)
    engine = create_engine("cpu", X, weights)
    (start,) = problem.starts(engine)
    with time_limit(20):
        without, result = refine_both(engine, start, count)
    assert result.inertia <= without.inertia
    assert_fixed_point(engine, problem, result)
    return without, result


@paired
@pytest.mark.parametrize("kind", ["normal", "duplicates", "offset", "few distinct", "needle"])
@pytest.mark.parametrize("k", [1, 2, 12, 29, 30])
def test_any_number_of_clusters_up_to_one_per_sample(kind, dtype, weighted, k) -> None:
    """Also large offsets, and fewer distinct samples than clusters."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = make_samples(kind, 30, 2, dtype, rng)
        without, result = check(X, make_weights(30, rng) if weighted else None, k, seed)
        if k == 1:
            assert_same_bits(without, result)


@pytest.mark.parametrize("exponent", [3, 6, 9])
@pytest.mark.parametrize("kind", ["normal", "blobs", "duplicates"])
def test_very_unequal_weights(kind, dtype, exponent) -> None:
    """From 10⁻⁹ to 10⁹: a sample may have all but nothing of its cluster's weight."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = make_samples(kind, 120, 2, dtype, rng)
        weights = 10.0 ** rng.uniform(-exponent, exponent, 120)
        check(X, weights, 15, seed, 100)


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


def test_samples_without_weight_change_nothing() -> None:
    """As good as if they were not there, wherever they are."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    weights = rng.integers(1, 4, 200).astype(float)
    ghosts = np.vstack([X, rng.normal(size=(50, 2)) * 0.5])
    engine = create_engine("cpu", X, weights)
    haunted = create_engine("cpu", ghosts, np.append(weights, np.zeros(50)), frame=engine.frame)
    helped = 0
    for quantile in (0.2, 0.5, 0.8):
        start = Order(engine.frame.encode(X[:15]), 1.0, quantile)
        without, result = refine_both(haunted, start, 60)
        helped += result.inertia < without.inertia
        plain = engine.assign(result.centers)[1]
        assert result.inertia == pytest.approx(plain, rel=1e-12)
        assert result.cluster_weights.sum() == weights.sum()
    assert helped >= 2


# ---- the slow and obvious twin ---------------------------------------------------------------


def test_the_reference_engine_swaps_too(weighted) -> None:
    """It only ever helps, and ends where neither K-means nor single moves find anything."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    problem = Problem(X, make_weights(60, rng) if weighted else None, 8, "samples", 5)
    engine = create_engine("reference", X, problem.weights)
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
