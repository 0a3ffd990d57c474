"""Proofs by branch and bound against brute force: never above the optimum."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from proof_problems import SmallProblem, problems
from threadpoolctl import threadpool_limits

from evomeans.exact import cluster_line
from evomeans.exact.admm import (
    ROUND,
    WIDE_GAP,
    Iterate,
    MultiplierSearch,
    Projector,
    RelaxationTree,
    lowest_sum,
)
from evomeans.exact.cases import Limits, ProofStep, StepKind
from evomeans.exact.points import WeightedPoints, kmeans
from evomeans.exact.proofs import InvalidProofError
from evomeans.exact.relaxation import Multipliers, Subproblem, TreeProof

# Rounding of the brute force itself.
ROUNDING = 1e-13
FACTORS = (1.0, 1.02, 1.3)


def proven(problem: SmallProblem, factor: float, gap: float = 1e-6) -> tuple[float, TreeProof]:
    """Lower bound with an upper bound that is too high by a factor, and no better clusterings."""
    cutoff = factor * problem.optimum
    limits = Limits(gap=gap, max_time=20)
    tree = RelaxationTree(problem.points, problem.k, cutoff, None, limits, improving=False)
    proof = tree.prove()
    return proof.lower_bound(problem.points, problem.k), proof


@pytest.mark.parametrize("problem", list(problems(0, 12)), ids=lambda p: f"n{p.points.n}k{p.k}")
@pytest.mark.parametrize("factor", FACTORS)
def test_bounds_meet_the_optimum_and_never_exceed_it(problem: SmallProblem, factor: float) -> None:
    """Also if the upper bound is 2 % or 30 % too high, which hides no error."""
    bound, _ = proven(problem, factor)
    assert bound <= problem.optimum * (1 + ROUNDING)
    assert bound >= problem.optimum * (1 - 2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_a_thousand_random_problems(block: int) -> None:
    """No false bound in any of them, whatever the upper bound."""
    for number, problem in enumerate(problems(1000 + block, 125, largest=7)):
        bound, _ = proven(problem, FACTORS[number % 3], gap=1e-2)
        assert bound <= problem.optimum * (1 + ROUNDING), (block, number)
        assert bound >= problem.optimum * (1 - 2e-2), (block, number)


def test_the_optimum_on_a_line_is_another_oracle() -> None:
    """The dynamic program and the tree, which share no code, agree."""
    rng = np.random.default_rng(0)
    for n, k in ((25, 3), (40, 6)):
        x = rng.normal(size=(n, 1)) ** 3
        points = WeightedPoints.of_samples(x)
        best = cluster_line(x[:, 0], k)
        optimum = np.ldexp(best.inertia, -points.unit_exponent)
        tree = RelaxationTree(points, k, optimum, None, Limits(max_time=30))
        bound = tree.prove().lower_bound(points, k)
        assert optimum * (1 - 2e-6) <= bound <= optimum * (1 + ROUNDING)


def test_a_better_clustering_is_returned() -> None:
    """A known clustering that is far too high is replaced by the optimum."""
    for problem in problems(5, 8):
        worst = np.arange(problem.points.n) % problem.k
        start = problem.points.inertia(worst)
        if start < 1.01 * problem.optimum:
            continue
        tree = RelaxationTree(problem.points, problem.k, start, worst, Limits(max_time=20))
        proof = tree.prove()
        assert tree.labels is not None
        found = problem.points.inertia(tree.labels)
        assert found == pytest.approx(problem.optimum, rel=1e-9)
        assert proof.cutoff == found


def assert_same(first: TreeProof, second: TreeProof) -> None:
    """Two proofs are equal, bit by bit."""
    assert len(first.steps) == len(second.steps)
    for one, other in zip(first.steps, second.steps, strict=True):
        assert one.kind is other.kind
        assert one.pair == other.pair
        if one.multipliers is not None and other.multipliers is not None:
            assert np.array_equal(one.multipliers.slack, other.multipliers.slack)
            assert np.array_equal(one.multipliers.cuts, other.multipliers.cuts)
            assert np.array_equal(one.multipliers.prices, other.multipliers.prices)


@pytest.mark.parametrize("count", [2, 3])
def test_threads_do_not_change_the_proof(count: int) -> None:
    """Cases side by side, cuts in ranges of groups: the same steps, bit by bit."""
    points = WeightedPoints.of_samples(np.random.default_rng(2).random((24, 4)))
    labels = kmeans(points, points.values[:4])
    assert labels is not None
    # Higher than the optimum, which is never reached: there are cases enough.
    cutoff = 1.1 * points.inertia(labels)
    limits = Limits(max_time=600)
    proofs = []
    for number in (1, count):
        threads = ThreadPoolExecutor(number) if number > 1 else nullcontext()
        with threads as pool, threadpool_limits(1):
            tree = RelaxationTree(points, 4, cutoff, None, limits, False, 20, pool)
            proofs.append(tree.prove())
    assert proofs[0].n_nodes >= 9
    assert_same(*proofs)


@pytest.fixture(scope="module")
def split_proof() -> tuple[SmallProblem, TreeProof]:
    """Find a proof that needs more than one case."""
    for problem in problems(11, 200):
        proof = proven(problem, 1.3)[1]
        if proof.n_nodes > 3:
            return problem, proof
    raise AssertionError("no problem needed a split")


def test_cases_that_time_left_out_keep_the_bound_they_come_from(split_proof) -> None:
    """The clock runs out at once, or after the root: some cases have no work of their own."""
    problem, _ = split_proof
    cutoff = 1.3 * problem.optimum
    for allowed in range(12):
        calls = iter(range(allowed))
        limits = Limits(max_time=60, interrupted=lambda left=calls: next(left, None) is None)
        proof = RelaxationTree(problem.points, problem.k, cutoff, None, limits, False).prove()
        bound = proof.lower_bound(problem.points, problem.k)
        assert bound <= problem.optimum * (1 + ROUNDING)


END = ProofStep(StepKind.END)
SPLIT_OF_ONE = (ProofStep(StepKind.SPLIT, None, (1, 1)), END, END)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda steps: steps[:-1], "ends before its last case"),
        (lambda steps: (*steps, END), "after its last case"),
        (lambda steps: SPLIT_OF_ONE, "impossible pair"),
        (lambda steps: (ProofStep(StepKind.END, Multipliers.none(50)),), "do not fit"),
    ],
)
def test_steps_that_do_not_fit_are_refused(split_proof, changed, message) -> None:
    problem, proof = split_proof
    with pytest.raises(InvalidProofError, match=message):
        TreeProof(proof.cutoff, changed(proof.steps)).lower_bound(problem.points, problem.k)


def test_a_proof_says_nothing_about_fewer_points_than_clusters() -> None:
    """Exactly k clusters are impossible there, and the optimum is 0."""
    points = WeightedPoints.of_samples(np.arange(6.0).reshape(3, 2))
    assert TreeProof(1.0, (ProofStep(StepKind.END),)).lower_bound(points, 5) == 0.0


def test_a_wide_gap_has_a_patience_of_its_own() -> None:
    """With a cutoff twice as high as the optimum, the gap never gets narrow."""
    problem = next(problems(5, 1))
    node = Subproblem.of_points(problem.points, problem.k, 2 * problem.optimum)
    rounds = []
    for far_patience in (None, 6):
        search = MultiplierSearch(node, Iterate.at_clustering(node, None))
        search.run(Limits(), 0, far_patience=far_patience)
        assert search.gap > WIDE_GAP
        rounds.append(search.n_iterations // ROUND)
    assert rounds[1] > rounds[0]


def slow_projection(A: np.ndarray, v: np.ndarray, k: int) -> np.ndarray:
    """By all eigenpairs on the complement of v, and bisection."""
    basis = np.linalg.svd(np.eye(len(v)) - np.outer(v, v))[0][:, :-1]
    values, Q = np.linalg.eigh(basis.T @ A @ basis)
    low, high = values[0] - 1, values[-1]
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.clip(values - middle, 0, 1).sum() > k - 1 else (low, middle)
        )
    Q = basis @ Q
    return (Q * np.clip(values - low, 0, 1)) @ Q.T + np.outer(v, v)


@pytest.mark.parametrize(("n", "k"), [(7, 3), (150, 4), (150, 60)])
def test_the_projection_agrees_with_a_slow_one(n: int, k: int) -> None:
    """In single precision at first, in double precision once asked for."""
    rng = np.random.default_rng(n + k)
    v = rng.random(n) + 0.1
    v /= np.linalg.norm(v)
    projector = Projector(v, k)
    spread = np.linalg.qr(rng.normal(size=(n, n)))[0]
    for fine in (False, True, True):
        projector.fine = projector.fine or fine
        A = (spread * (rng.normal(size=n) * (np.arange(n) < 2 * k))) @ spread.T
        A = (A + A.T) / 2
        Y = projector.project(A.copy(), float(np.linalg.norm(A)))
        assert np.abs(Y - slow_projection(A, v, k)).max() < (1e-11 if projector.fine else 1e-4)
        assert projector.rank == np.sum(np.linalg.eigvalsh(Y) > 1e-5) - 1
        assert lowest_sum(A.copy(), 3) == pytest.approx(np.linalg.eigvalsh(A)[:3].sum())
