"""A kernel that is ahead of the course changes nothing, except the time it takes."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.cpu.course import Refining
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.protocol import LocalSearch, Order, Refinement

DEEP = LocalSearch(single_moves=True, swaps=6)
SAMPLES = {
    "clusters": np.random.default_rng(0).normal(size=(400, 3)),
    # Random starts have empty clusters, and with 12 of them every sample is a centre.
    "duplicates": np.random.default_rng(1).integers(0, 3, size=(300, 2)).astype(float),
}


def refined(X, local_search: LocalSearch, k: int = 9, least: float = 0.0) -> list[Refinement]:
    engine, rng = CpuEngine(X), np.random.default_rng(2)
    found: list[Refinement] = []
    for removed in (-1, 2, -1, 5):
        centers = engine.samples_at(rng.random(k))
        parent = found[-1].handle if found and removed > 0 else None
        if parent is not None:
            centers = found[-1].centers
        start = Order(centers, 0.5, rng.random(), removed, 2, parent, local_search, least)
        found += engine.refine([start])
    return found


def step_by_step(monkeypatch) -> None:
    """Take no end of the kernel for one, and let the course decide about every step."""
    monkeypatch.setattr("evomeans.engines.cpu.engine.is_common_end", lambda *given: False)


@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize(
    "local_search",
    [
        LocalSearch(),
        DEEP,
        LocalSearch(max_iter=2),
        LocalSearch(momentum=True),
        LocalSearch(single_moves=True, swaps=6, momentum=True),
    ],
)
def test_step_by_step_ends_at_the_same_bits(samples, local_search, monkeypatch) -> None:
    """The same refinements with one call of a kernel for each step of the course."""
    ahead = refined(SAMPLES[samples], local_search)

    step_by_step(monkeypatch)
    for one, other in zip(ahead, refined(SAMPLES[samples], local_search), strict=True):
        assert one.inertia == other.inertia
        assert one.n_iter == other.n_iter
        np.testing.assert_array_equal(one.centers, other.centers)
        np.testing.assert_array_equal(one.cluster_weights, other.cluster_weights)


@pytest.mark.parametrize("share", [0.99, 1.0, 1.01])
def test_refinements_are_given_up_at_the_same_step(share, monkeypatch) -> None:
    """Where what they have to explain is a little less or more than what they come to."""
    X, momentum = SAMPLES["clusters"], LocalSearch(momentum=True)
    founder = refined(X, momentum)[0]
    explained = founder.cluster_weights @ (founder.centers**2).sum(axis=1)
    ahead = refined(X, momentum, least=share * explained)
    assert share < 1.0 or any(one.is_given_up for one in ahead)
    assert share > 1.0 or not all(one.is_given_up for one in ahead)
    step_by_step(monkeypatch)
    for one, other in zip(ahead, refined(X, momentum, least=share * explained), strict=True):
        assert one.inertia == other.inertia
        assert one.n_iter == other.n_iter


def test_swaps_that_seem_to_end_higher_are_repeated_step_by_step(monkeypatch) -> None:
    """What the kernel has done is not trusted then; the course decides, by the same values."""
    X = SAMPLES["clusters"]
    expected = refined(X, DEEP)[0]
    true_outcome, steps = Workspace.outcome.fget, Refining.follow
    misled = property(lambda workspace: true_outcome(workspace)._replace(unswapped=0.0))
    repeated = []
    monkeypatch.setattr(Workspace, "outcome", misled)
    monkeypatch.setattr(Refining, "follow", lambda *given: repeated.append(given) or steps(*given))
    deep = refined(X, DEEP)[0]
    assert repeated
    assert deep.n_iter == expected.n_iter
    np.testing.assert_array_equal(deep.centers, expected.centers)
