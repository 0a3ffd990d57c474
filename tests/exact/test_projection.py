"""The projection of the relaxation, on the CPU in both precisions and by PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_problems import problems

from evomeans.exact.cases import Limits
from evomeans.exact.projection import Projector, Tools
from evomeans.exact.tree import RelaxationTree
from optional import require_torch


def on_torch(v: np.ndarray, k: int) -> Any:
    torch = require_torch()
    from evomeans.exact.projection import TorchProjector

    return TorchProjector(v, k, torch.device("cpu"))


PROJECTORS = {"cpu": Projector, "torch": on_torch}


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


@pytest.mark.parametrize("name", PROJECTORS)
@pytest.mark.parametrize(("n", "k"), [(7, 3), (150, 4), (150, 60)])
def test_projectors_agree_with_a_slow_one(name: str, n: int, k: int) -> None:
    """In single precision at first, in double precision once asked for."""
    rng = np.random.default_rng(n + k)
    v = rng.random(n) + 0.1
    v /= np.linalg.norm(v)
    projector = PROJECTORS[name](v, k)
    spread = np.linalg.qr(rng.normal(size=(n, n)))[0]
    for fine in (False, True, True):
        projector.fine = projector.fine or fine
        A = (spread * (rng.normal(size=n) * (np.arange(n) < 2 * k))) @ spread.T
        A = (A + A.T) / 2
        Y = projector.project(A.copy(), float(np.linalg.norm(A)))
        assert np.abs(Y - slow_projection(A, v, k)).max() < (1e-11 if projector.fine else 1e-4)
        assert projector.rank == np.sum(np.linalg.eigvalsh(Y) > 1e-5) - 1
        assert projector.lowest_sum(A.copy(), 3) == pytest.approx(np.linalg.eigvalsh(A)[:3].sum())


@pytest.mark.parametrize("factor", [1.0, 1.02, 1.3])
def test_bounds_by_torch_never_exceed_the_optimum(factor: float) -> None:
    """Brute force, also with an upper bound that is too high."""
    require_torch()
    tools = Tools(on_torch)
    for problem in problems(40, 6):
        cutoff = factor * problem.optimum
        limits = Limits(max_time=20)
        tree = RelaxationTree(problem.points, problem.k, cutoff, None, limits, False, tools=tools)
        bound = tree.prove().lower_bound(problem.points, problem.k)
        assert problem.optimum * (1 - 2e-6) <= bound <= problem.optimum * (1 + 1e-13)
