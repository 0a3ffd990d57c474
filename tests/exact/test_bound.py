"""The inequality holds for any multipliers; star cuts and fixing are valid for all clusterings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof_problems import clusterings, problems

from evomeans.exact.cuts import (
    MOST_MEMBERS,
    Cuts,
    add_cuts,
    are_valid,
    grow_stars,
    no_cuts,
    searched,
    violated_cuts,
)
from evomeans.exact.points import WeightedPoints
from evomeans.exact.relaxation import Multipliers, Subproblem, pairs_to_fix, proven_bound


def random_multipliers(rng: np.random.Generator, problem: Subproblem, scale: float) -> Multipliers:
    """Multipliers that no solver would return."""
    n = problem.n
    size = scale * float(problem.costs.max())
    slack = size * rng.normal(size=(n, n))
    prices = size * rng.normal(size=12) * float(problem.weights.min())
    return Multipliers(slack, random_cuts(rng, n, 12), prices)


def random_cuts(rng: np.random.Generator, n: int, count: int) -> Cuts:
    cuts = np.full((count, MOST_MEMBERS + 1), -1, np.int32)
    for row in cuts:
        size = int(rng.integers(2, min(n, MOST_MEMBERS + 1) + 1))
        row[:size] = rng.permutation(n)[:size]
    return cuts


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.0, 1e-6, 1e-2, 1.0, 1e8]))
def test_any_multipliers_give_a_valid_bound(seed: int, scale: float) -> None:
    problem = next(problems(seed, 1, largest=7))
    node = Subproblem.of_points(problem.points, problem.k, 1.1 * problem.optimum)
    multipliers = random_multipliers(np.random.default_rng(seed), node, scale)
    assert proven_bound(node, multipliers) <= problem.optimum * (1 + 1e-13)


@pytest.mark.parametrize("spoilt", ["order", "values", "vectors"])
def test_a_faulty_eigenvalue_solver_does_not_raise_the_bound(
    spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results are checked, and what they are off by is subtracted."""
    solve = np.linalg.eigh

    def faulty(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, Q = solve(A)
        if spoilt == "order":
            return values[::-1], Q[:, ::-1]
        if spoilt == "values":
            return values + 0.01 * np.abs(values).max(), Q
        return values, np.roll(Q, 1, axis=1)

    for number, problem in enumerate(problems(40, 10, largest=7)):
        node = Subproblem.of_points(problem.points, problem.k, 1.1 * problem.optimum)
        multipliers = random_multipliers(np.random.default_rng(number), node, 1e-2)
        right = proven_bound(node, multipliers)
        with monkeypatch.context() as patch:
            patch.setattr(np.linalg, "eigh", faulty)
            assert proven_bound(node, multipliers) <= right + 1e-9 * abs(right)


def clustering_matrix(labels: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Y: sqrt(w_i w_j) / w(cluster) for pairs in one cluster."""
    together = labels[:, None] == labels
    return together * np.sqrt(np.outer(w, w)) / (together @ w)[:, None]


def test_inertia_is_the_product_of_costs_and_clustering() -> None:
    """<C, Y> is the inertia, also after groups were merged."""
    for problem in problems(20, 5):
        node = Subproblem.of_points(problem.points, problem.k, np.inf)
        for labels in list(clusterings(problem.points.n, problem.k))[:20]:
            Y = clustering_matrix(labels, node.weights)
            inertia = problem.points.inertia(labels)
            assert np.sum(node.costs * Y) == pytest.approx(inertia, rel=1e-10)
            pair = next(
                (a, b) for b in range(len(labels)) for a in range(b) if labels[a] == labels[b]
            )
            merged = node.merged(*pair)
            Y = clustering_matrix(np.delete(labels, pair[1]), merged.weights)
            assert np.sum(merged.costs * Y) == pytest.approx(inertia, rel=1e-10)


def test_no_clustering_violates_a_star_cut() -> None:
    rng = np.random.default_rng(0)
    w = rng.random(7) + 0.1
    for labels in list(clusterings(7, 3))[::5]:
        Y = clustering_matrix(labels, w)
        for _ in range(20):
            B, sizes = np.zeros((7, 7)), np.zeros((7, 7))
            add_cuts(B, sizes, 1 / np.sqrt(w), random_cuts(rng, 7, 1), np.ones(1))
            assert np.sum(B * Y) <= 1e-12


def violated_matrix(seed: int) -> np.ndarray:
    Z = np.random.default_rng(seed).random((20, 20)) ** 4
    Z = (Z + Z.T) / 2
    np.fill_diagonal(Z, 0.6)
    return Z


def test_found_cuts_are_violated_as_much_as_they_claim() -> None:
    """The finder returns real cuts, each violated by more than the threshold."""
    n, Z = 20, violated_matrix(1)
    cuts = violated_cuts(Z, 1e-3)
    assert len(cuts) > 100
    assert are_valid(cuts, n)
    assert {int(np.sum(row >= 0)) for row in cuts} >= {2, 3, 5}
    for row in cuts:
        assert violation(Z, row[0], row[1:][row[1:] >= 0]) > 1e-3 * (1 - 1e-9)


def test_thorough_search_misses_no_cut_of_three_members() -> None:
    """Where pair and triangle cuts hold; by brute force."""
    rng = np.random.default_rng(3)
    n, least, n_violated = 10, 1e-3, 0
    for _ in range(30):
        Z = np.triu(rng.uniform(0.15, 0.6, (n, n)), 1)
        Z[0, 1:] = rng.uniform(0.3, 0.6, n - 1)
        Z += Z.T
        Z[0, 0] = max(violation(Z, 0, np.array(two)) for two in combinations(range(1, n), 2))
        worst = max(violation(Z, 0, np.array(three)) for three in combinations(range(1, n), 3))
        cuts = searched(grow_stars, Z, least, 0, 1)
        assert are_valid(cuts, n)
        found = [violation(Z, 0, row[1:][row[1:] >= 0]) for row in cuts]
        assert all(value > least * (1 - 1e-9) for value in found)
        if worst > least:
            assert max(found) >= worst * (1 - 1e-9)
            n_violated += 1
    assert n_violated > 5


def violation(Z: np.ndarray, i: int, members: np.ndarray) -> float:
    """How much the star cut of i and these members is violated."""
    pairs = np.triu(Z[np.ix_(members, members)], 1).sum()
    return float(Z[i, members].sum() - pairs - Z[i, i])


@pytest.mark.parametrize("count", [2, 3])
def test_threads_find_the_same_cuts(count: int) -> None:
    """Also with fewer groups than ranges that threads share."""
    Z = violated_matrix(2)
    alone = violated_cuts(Z, 1e-3)
    with ThreadPoolExecutor(count) as pool:
        assert np.array_equal(violated_cuts(Z, 1e-3, pool), alone)


@pytest.mark.parametrize(
    "row", [[0, 0, -1], [0, -1, 1], [-1, 1, 2], [0, 9, -1], [0, 1, 1], [0, -2, -2], [0, -1, -1]]
)
def test_what_is_not_a_star_cut_is_refused(row: list[int]) -> None:
    """A repeated member would make the inequality false."""
    cuts = np.full((1, MOST_MEMBERS + 1), -1, np.int32)
    cuts[0, : len(row)] = row
    assert not are_valid(cuts, 5)
    assert are_valid(no_cuts(), 5)


def test_fixed_pairs_are_apart_in_every_better_clustering() -> None:
    """Brute force over all clusterings cheaper than the cutoff, for random multipliers."""
    fixed = 0
    for number, problem in enumerate(problems(30, 60, largest=7)):
        rng = np.random.default_rng(number)
        cutoff = problem.optimum * (1 + 0.5 * rng.random())
        node = Subproblem.of_points(problem.points, problem.k, cutoff)
        slack = np.abs(random_multipliers(rng, node, 0.3).slack) * (rng.random(node.K.shape) < 0.3)
        multipliers = Multipliers(np.maximum(slack, slack.T), no_cuts(), np.zeros(0))
        pairs = pairs_to_fix(node, multipliers, proven_bound(node, multipliers)) | node.apart
        fixed += int(pairs.sum())
        for labels in clusterings(problem.points.n, problem.k):
            if problem.points.inertia(labels) < cutoff:
                assert not (pairs & (labels[:, None] == labels)).any()
    assert fixed > 50


@pytest.mark.parametrize("unit", [1e-150, 1e-20, 1.0, 1e100])
def test_bounds_follow_the_units(unit: float) -> None:
    """Tiny and huge units change nothing but the exponent."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 3))
    plain, scaled = WeightedPoints.of_samples(X), WeightedPoints.of_samples(unit * X)
    bounds = [
        points.in_data_units(
            proven_bound(Subproblem.of_points(points, 2, np.inf), Multipliers.none(points.n))
        )
        for points in (plain, scaled)
    ]
    assert bounds[1] == pytest.approx(bounds[0] * unit * unit, rel=1e-9)


def test_duplicates_and_weights_are_the_same_problem() -> None:
    """Three equal samples are one point of weight 3."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-0.0, 0.0], [4.0, 1.0]])
    repeated = WeightedPoints.of_samples(X)
    weighted = WeightedPoints.of_samples(X[[0, 1, 5]], np.array([2.0, 3.0, 1.0]))
    assert np.array_equal(repeated.values, weighted.values)
    assert np.array_equal(
        np.ldexp(repeated.weights, repeated.weight_exponent),
        np.ldexp(weighted.weights, weighted.weight_exponent),
    )


def test_samples_without_weight_do_not_count() -> None:
    points = WeightedPoints.of_samples(np.array([[0.0], [1.0], [9.0]]), np.array([1.0, 0.0, 2.0]))
    assert points.n == 2
    assert points.places.tolist() == [0, -1, 1]


def test_far_pairs_are_not_together_in_the_optimum() -> None:
    """An outlier is kept apart from all others, and the optimum agrees."""
    n_apart = 0
    for problem in problems(7, 30):
        node = Subproblem.of_points(problem.points, problem.k, problem.optimum)
        n_apart += int(node.apart.sum())
        assert not (node.apart & (problem.labels[:, None] == problem.labels)).any()
    assert n_apart > 0
