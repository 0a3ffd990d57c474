"""Prices in the plane: valid for any prices and any steps, and good ones from the search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from proof_problems import SmallProblem, random_problem, solved

from evomeans.exact.cases import Limits, ProofStep, StepKind
from evomeans.exact.certify import by_cases
from evomeans.exact.plane_boxes import least_value
from evomeans.exact.plane_prices import (
    PlaneTree,
    PriceSearch,
    ProgramSolution,
    first_start,
    solve_program,
)
from evomeans.exact.plane_proof import (
    MOST_CHOICES,
    PlaneCase,
    PlaneProof,
    evaluate,
    groups_together,
    proven_bound,
)
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import InvalidProofError, Method

ROUNDING = 1e-13


def problem(rng: np.random.Generator, largest: int = 8) -> SmallProblem:
    return random_problem(rng, largest, in_plane=True)


def random_prices(rng: np.random.Generator, case: PlaneCase, optimum: float) -> NDArray[np.float64]:
    """Draw prices whose sum is of the size of the optimum, some of them negative."""
    prices = rng.random(case.n) ** 2 * case.weights
    prices *= rng.choice([0.1, 1.0, 2.0, 10.0]) * optimum / prices.sum()
    return prices - rng.choice([0.0, 0.01, 1.0]) * case.scatters


def good_prices(found: SmallProblem, case: PlaneCase) -> NDArray[np.float64]:
    """Return prices from the search, for which fixing has something to say."""
    whole = PlaneCase.of_points(found.points, found.k)
    start = first_start(whole, found.labels).regrouped(whole, case)
    search = PriceSearch(case, found.optimum, start)
    search.run(Limits(max_time=10.0), 0.999 * found.optimum, lambda bound: None)
    return search.prices


def random_case(rng: np.random.Generator, points: WeightedPoints, k: int) -> PlaneCase:
    """Merge and separate some points."""
    case = PlaneCase.of_points(points, k)
    for _ in range(int(rng.integers(0, 5))):
        i, j = (int(i) for i in rng.choice(points.n, 2, replace=False))
        if case.groups[i] == case.groups[j]:
            continue
        case = case.merged((i, j)) if rng.random() < 0.4 else case.separated((i, j))
    return case


def respects(case: PlaneCase, every: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether clusterings belong to a case."""
    first = np.unique(case.groups, return_index=True)[1]
    kept = (every == every[:, first][:, case.groups]).all(axis=1)
    for i, j in case.apart:
        kept &= every[:, i] != every[:, j]
    return kept


@given(seed=st.integers(0, 10**6))
def test_any_prices_give_a_valid_bound_of_their_case(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = problem(rng)
    case = random_case(rng, found.points, found.k)
    prices = random_prices(rng, case, found.optimum)
    least = found.costs[respects(case, found.every)].min(initial=np.inf)
    bound = proven_bound(case, evaluate(case, prices).bound)
    assert bound <= least * (1 + ROUNDING)


@pytest.mark.parametrize("seed", range(12))
def test_the_least_value_is_that_of_all_subsets(seed: int) -> None:
    """The least cost minus prices over all subsets that the case allows."""
    rng = np.random.default_rng(seed)
    points = WeightedPoints.of_samples(rng.normal(size=(8, 2)), rng.random(8) + 0.1)
    case = random_case(rng, points, 3)
    prices = 0.5 * rng.random(case.n) * case.weights
    best = 0.0
    for size in range(1, case.n + 1):
        for chosen in itertools.combinations(range(case.n), size):
            if any(a in chosen and b in chosen for a, b in case.pairs):
                continue
            index = list(chosen)
            w, x = case.weights[index], case.values[index]
            mean = (w[:, None] * x).sum(axis=0) / w.sum()
            cost = (w * np.square(x - mean).sum(axis=1)).sum()
            best = min(best, cost - prices[index].sum())
    found, _ = least_value(case.priced(prices), 1e-9, -np.inf)
    assert best - 1e-8 <= found <= best + 1e-12


def test_too_many_pairs_are_ignored_rather_than_enumerated() -> None:
    """A star of 20 pairs has 2**20 choices; ignoring some of its pairs lowers the bound only."""
    points = WeightedPoints.of_samples(np.random.default_rng(0).normal(size=(21, 2)))
    case = PlaneCase(points, 3, np.arange(21), tuple((0, j) for j in range(1, 21)))
    assert np.diff(case.choices[0]).max() <= MOST_CHOICES
    assert not case.is_empty
    prices = np.full(21, 0.3)
    whole = PlaneCase.of_points(points, 3)
    assert evaluate(case, prices).bound >= evaluate(whole, prices).bound - 1e-9


@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1.0, 1.02, 1.3]))
def test_cheaper_clusterings_keep_merged_groups_together(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    found = problem(rng)
    case = random_case(rng, found.points, found.k)
    if case.is_empty:
        return
    prices = good_prices(found, case)
    if rng.random() < 0.3:
        prices = prices * (1 + 0.1 * rng.normal(size=case.n))
    cutoff = factor * found.optimum
    labels = groups_together(case, prices, evaluate(case, prices), cutoff)
    cheaper = found.every[respects(case, found.every) & (found.costs < cutoff * (1 - ROUNDING))]
    if labels is None:
        assert len(cheaper) == 0
    else:
        assert respects(case.regrouped(labels), cheaper).all()


def random_steps(rng: np.random.Generator, found: SmallProblem) -> Iterator[ProofStep]:
    """Write a proof without any sense."""
    cases = [PlaneCase.of_points(found.points, found.k)]
    cutoff = found.optimum
    n_splits = 0
    while cases:
        case = cases.pop()
        usual = random_prices(rng, case, cutoff)
        prices = good_prices(found, case) if rng.random() < 0.3 else usual
        pairs = [
            (i, j)
            for i, j in itertools.combinations(range(found.points.n), 2)
            if case.groups[i] != case.groups[j]
        ]
        if pairs and n_splits < 4 and rng.random() < 0.8:
            pair = pairs[int(rng.integers(len(pairs)))]
            yield ProofStep(StepKind.SPLIT, None, pair)
            cases += [case.merged(pair), case.separated(pair)]
            n_splits += 1
        else:
            yield ProofStep(StepKind.END, prices)


@given(seed=st.integers(0, 10**6), factor=st.sampled_from([0.5, 1.0, 1.02, 1.3]))
def test_any_steps_give_a_valid_bound(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    found = problem(rng, largest=7)
    proof = PlaneProof(factor * found.optimum, tuple(random_steps(rng, found)))
    assert proof.lower_bound(found.points, found.k) <= found.optimum * (1 + ROUNDING)


def check_search(seed: int, largest: int = 9) -> int:
    """Prove with upper bounds that are right, a little too high and much too high."""
    rng = np.random.default_rng(seed)
    found = problem(rng, largest)
    nodes = 0
    order = np.argsort(found.costs, kind="stable")
    for factor in (1.0, 1.02, 1.3):
        worst = int(np.searchsorted(found.costs[order], factor * found.optimum, side="right")) - 1
        given_labels = np.unique(found.every[order[worst]], return_inverse=True)[1]
        # Without better clusterings, a cutoff that is too high leaves every case open.
        limits = Limits(max_time=0.3)
        cutoff = found.points.inertia(given_labels)
        tree = PlaneTree(found.points, found.k, cutoff, given_labels, limits, improving=False)
        proof = tree.prove()
        lower = proof.lower_bound(found.points, found.k)
        assert lower <= found.optimum * (1 + ROUNDING)
        improved = by_cases(
            Method.PLANE, found.points, found.k, given_labels, Limits(max_time=20.0)
        )
        assert improved.lower <= found.optimum * (1 + ROUNDING)
        # Of clusters that are tiny beside their offset, rounding leaves too few digits.
        if found.optimum > 1e-12 * found.points.weights.sum():
            assert improved.lower >= found.optimum * (1 - 1e-6)
            assert found.points.inertia(improved.labels) <= found.optimum * (1 + 1e-6)
        nodes = max(nodes, proof.n_nodes, improved.n_nodes)
    return nodes


def test_searches_with_wrong_upper_bounds_prove_nothing_wrong() -> None:
    """Some of these have to be split; all of them end with the optimum."""
    assert max(check_search(seed) for seed in range(24)) > 1


@pytest.mark.slow
def test_many_searches_with_wrong_upper_bounds_prove_nothing_wrong() -> None:
    for seed in range(1000, 1060):
        check_search(seed)


def test_proofs_that_do_not_fit_are_refused() -> None:
    points = WeightedPoints.of_samples(np.random.default_rng(1).normal(size=(6, 2)))
    end = ProofStep(StepKind.END, np.ones(6))
    for steps, message in (
        ((ProofStep(StepKind.END, np.ones(5)),), "do not fit"),
        ((end, end), "after its last case"),
        ((), "before its last case"),
        ((ProofStep(StepKind.SPLIT, None, (2, 2)), end, end), "impossible pair"),
        ((ProofStep(StepKind.SPLIT, None, (0, 6)), end, end), "impossible pair"),
        ((ProofStep(StepKind.FIX), end), "without prices"),
    ):
        with pytest.raises(InvalidProofError, match=message):
            PlaneProof(1.0, steps).lower_bound(points, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_prices_that_are_not_numbers_prove_nothing(bad: float) -> None:
    points = WeightedPoints.of_samples(np.random.default_rng(1).normal(size=(6, 2)))
    optimum = solved(points, 2).optimum
    prices = np.full(6, bad)
    prices[0] = 0.01
    proof = PlaneProof(2 * optimum, (ProofStep(StepKind.END, prices),))
    assert 0.0 <= proof.lower_bound(points, 2) <= optimum


def test_the_program_finds_the_prices_of_a_small_one() -> None:
    """Three points, two clusters: {0, 1} and {2} are the best that these columns offer."""
    clusters = [np.array(one, np.int32) for one in ([0, 1], [1, 2], [0, 2], [2], [0])]
    start = ProgramSolution(clusters[:1], np.ones(1), np.ones(3))
    found = solve_program(start, clusters, [1.0, 3.0, 4.0, 0.0, 0.0], 2, 100.0, 1e-9)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert found.prices.sum() - 2 * found.sigma == pytest.approx(1.0, abs=1e-6)
    assert found.shares[:4] == pytest.approx([1.0, 0.0, 0.0, 1.0], abs=1e-3)


def test_a_proof_that_is_not_stopped_by_time_is_the_same_again() -> None:
    rng = np.random.default_rng(3)
    points = WeightedPoints.of_samples(rng.normal(size=(30, 2)))
    labels = np.arange(30) % 4
    first, second = (
        by_cases(Method.PLANE, points, 4, labels, Limits(max_time=60.0)) for _ in range(2)
    )
    assert first.lower == second.lower
    assert np.array_equal(first.labels, second.labels)
    assert first.lower >= points.inertia(first.labels) * (1 - 1e-6)


def test_other_numbers_of_features_are_refused() -> None:
    points = WeightedPoints.of_samples(np.random.default_rng(1).normal(size=(6, 3)))
    with pytest.raises(ValueError, match="2 features, got 3"):
        by_cases(Method.PLANE, points, 2, np.arange(6) % 2, Limits())
