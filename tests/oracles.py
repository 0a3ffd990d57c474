"""Slow and obvious answers to compare with, and what has to agree with them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.sparse import issparse

from evomeans.engines import Engine, Refinement
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.layout import State, count_tiles
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.frame import Frame
from evomeans.search import SearchResult
from problems import Problem

FloatArray = NDArray[np.float64]
EPS = np.finfo(np.float64).eps


def squared_distances(samples: FloatArray, centers: FloatArray) -> FloatArray:
    """Σ(x−c)² of every sample and every centre, in float64, by the direct formula."""
    difference = np.asarray(samples, float)[:, None, :] - np.asarray(centers, float)[None, :, :]
    return np.sum(difference * difference, axis=2)


def spun_wheel(chances: FloatArray, quantile: float) -> int:
    """Return the first index at which the chances so far exceed the quantile of their total."""
    target, total, last = quantile * float(np.cumsum(chances)[-1]), 0.0, -1
    for index, chance in enumerate(chances.tolist()):
        total += chance
        last = index if chance > 0.0 else last
        if total > target:
            return index
    return last


def relocated_to(
    samples: FloatArray,
    weights: FloatArray,
    others: FloatArray,
    alpha: float,
    quantile: float,
    power: int,
) -> int:
    """Return the sample drawn from (1−α)·wᵢ/Σw + α·wᵢδᵢ/Σwδ, the second part being drawn last."""
    if quantile < 1.0 - alpha:
        return spun_wheel(weights, quantile / (1.0 - alpha))
    deltas = np.sqrt(squared_distances(samples, others).min(axis=1)) ** power
    chances = weights * deltas if (weights * deltas).any() else weights
    return spun_wheel(chances, (quantile - (1.0 - alpha)) / alpha)


def least_useful(centers: FloatArray, weights: FloatArray, drawn: list[int]) -> int:
    """Return the drawn cluster whose cheapest merger, wₐwᵦ/(wₐ+wᵦ)·‖a−b‖², costs least."""

    def use(a: int) -> float:
        others = [b for b in range(len(centers)) if b != a]
        products = [weights[a] * weights[b] / (weights[a] + weights[b]) for b in others]
        return min(
            product * float(((centers[a] - centers[b]) ** 2).sum())
            for product, b in zip(products, others, strict=True)
        )

    return min(drawn, key=use)


def cheapest_matching(
    first: FloatArray, second: FloatArray, *, squared: bool
) -> tuple[float, float]:
    """Lowest total (squared) distance over all permutations, and the one after it (inf if none)."""
    if not len(first):
        return 0.0, np.inf
    costs = squared_distances(first, second)
    costs = costs if squared else np.sqrt(costs)
    rows = np.arange(len(first))
    orders = np.array(list(permutations(range(len(first)))))
    totals = np.sort(costs[rows, orders].sum(axis=1))
    return float(totals[0]), float(totals[1]) if len(totals) > 1 else np.inf


def lowest_inertia(X: FloatArray, weights: FloatArray, k: int) -> float:
    """Global optimum over all partitions into at most ``k`` blocks, by dynamic programming.

    ``best[j][S] = min over T ⊆ S of cost[T] + best[j−1][S∖T]`` over all subsets S as bit masks.
    """
    cost = _cost_of_all_subsets(np.asarray(X, float), np.asarray(weights, float))
    subsets, rests, begins = _subsets_of_all_subsets(len(X))
    best = cost
    for _ in range(k - 1):
        best = np.minimum.reduceat(cost[subsets] + best[rests], begins)
    return float(best[-1])


def _cost_of_all_subsets(X: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ w‖x−mean‖² = Σ_{i<j} wᵢwⱼ‖xᵢ−xⱼ‖² / Σw of every subset: no term cancels."""
    members = (np.arange(2 ** len(X))[:, None] >> np.arange(len(X)) & 1).astype(float)
    pairs = np.outer(weights, weights) * squared_distances(X, X)
    totals = members @ weights
    sums = 0.5 * np.einsum("si,si->s", members @ pairs, members)
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


@cache
def _subsets_of_all_subsets(n: int) -> tuple[NDArray[np.intp], ...]:
    """Masks of T and S∖T for all T ⊆ S, grouped by S, and where the group of each S begins."""
    state = np.arange(3**n)[:, None] // 3 ** np.arange(n) % 3
    bits = 2 ** np.arange(n)
    sets, subsets = (state > 0) @ bits, (state == 2) @ bits
    order = np.argsort(sets, kind="stable")
    sets, subsets = sets[order], subsets[order]
    return subsets, sets ^ subsets, np.searchsorted(sets, np.arange(2**n))


# ---- refinements -----------------------------------------------------------------------------


def in_frame(frame: Frame, X: NDArray[Any]) -> FloatArray:
    """Return the samples as the engine sees them, in float64."""
    return frame.encode(X).astype(np.float64)


def assert_nearest(samples: FloatArray, centers: FloatArray, labels: NDArray[Any]) -> None:
    """Each label is the brute-force nearest centre, up to the rounding of float64 itself."""
    squares = squared_distances(samples, centers)
    chosen = squares[np.arange(len(samples)), labels]
    slack = 1.0 + 4.0 * (samples.shape[1] + 4) * EPS
    wrong = chosen > squares.min(axis=1) * slack
    assert not wrong.any(), (labels[wrong], squares.argmin(axis=1)[wrong], squares[wrong])


def assert_fixed_point(engine: Engine, problem: Problem, result: Refinement) -> None:
    """Everything that "a fixed point of K-means" means, checked directly."""
    k, (n, d) = problem.k, problem.X.shape
    samples = in_frame(engine.frame, problem.X)
    weights = np.ones(n) if problem.weights is None else problem.weights
    labels, inertia = engine.assign(result.centers)
    labels = np.asarray(labels)

    assert result.centers.shape == (k, d)
    assert result.centers.dtype == np.float64
    assert np.isfinite(result.centers).all()
    assert result.n_iter >= 1
    assert labels.shape == (n,)
    assert_nearest(samples, result.centers, labels)

    totals = np.bincount(labels, weights, k)
    assert_allclose(result.cluster_weights, totals, rtol=1e-12, atol=0.0)
    for j in np.flatnonzero(totals):
        own, w = samples[labels == j], weights[labels == j]
        mean = (w[:, None] * own).sum(axis=0, dtype=np.longdouble) / w.sum(dtype=np.longdouble)
        rounding = (8.0 + len(own) / 8.0) * EPS * np.abs(own).max()
        assert_allclose(result.centers[j], mean.astype(float), rtol=0.0, atol=rounding)

    squares = squared_distances(samples, result.centers)
    direct = engine.frame.inertia_in_data_units(float(weights @ squares.min(axis=1)))
    assert result.inertia == pytest.approx(direct, rel=1e-12, abs=1e-322)
    assert inertia == pytest.approx(direct, rel=1e-12, abs=1e-322)

    distinct = len(np.unique(samples[weights > 0] + 0.0, axis=0))
    if distinct >= k:
        assert (result.cluster_weights > 0).all()
    else:
        assert result.inertia == 0.0


def assert_same_solution(result: Refinement, expected: Refinement) -> None:
    """Equal up to rounding, cluster by cluster."""
    assert result.inertia == pytest.approx(expected.inertia, rel=1e-9)
    assert_allclose(result.cluster_weights, expected.cluster_weights, rtol=1e-9)
    assert_allclose(result.centers, expected.centers, rtol=0.0, atol=1e-9)


def assert_same_bits(first: Refinement, second: Refinement) -> None:
    """Both refinements are the same to the last bit; their handles may differ."""
    assert first.centers.tobytes() == second.centers.tobytes()
    assert first.cluster_weights.tobytes() == second.cluster_weights.tobytes()
    assert first.inertia == second.inertia
    assert first.n_iter == second.n_iter


def trace(result: SearchResult) -> list[object]:
    """Everything of a search but the time it took."""
    records = [replace(record, seconds=0.0) for record in result.history]
    bits = [(m.centers.tobytes(), m.cluster_weights.tobytes()) for m in result.population]
    return [records, bits, result.best.centers.tobytes(), result.stop_reason]


def largest_gain(engine: Engine, problem: Problem, centers: FloatArray) -> float:
    """How much lower the sum of squares could get by one move, as a share of it.

    Every sample is tried in every cluster; what the two clusters cost is computed from scratch.
    """
    samples = in_frame(engine.frame, problem.X)
    weights = np.ones(len(samples)) if problem.weights is None else problem.weights
    labels, _ = engine.assign(centers)
    present = np.unique(labels[weights > 0])
    costs = {j: cost_of(samples, weights, labels == j) for j in present}
    total, gain = sum(costs.values()), 0.0
    for i in np.flatnonzero(weights):
        own = labels == labels[i]
        if np.count_nonzero(own & (weights > 0)) == 1:
            continue
        itself = np.arange(len(samples)) == i
        saved = costs[labels[i]] - cost_of(samples, weights, own & ~itself)
        for j in present[present != labels[i]]:
            spent = cost_of(samples, weights, (labels == j) | itself) - costs[j]
            gain = max(gain, saved - spent)
    return gain / total if total > 0.0 else 0.0


def cost_of(samples: FloatArray, weights: FloatArray, members: NDArray[np.bool_]) -> float:
    """Sum of the weighted squared distances of some samples to their mean."""
    members = members & (weights > 0)
    rows = samples[members] - samples[members][0]
    mean = np.average(rows, axis=0, weights=weights[members])
    return float(weights[members] @ ((rows - mean) ** 2).sum(axis=1))


# ---- states of the CPU engine ----------------------------------------------------------------

# Of distances in double precision, with room to spare.
ROUNDING = 1e-12


def assert_true_state(engine: CpuEngine, X: Any, state: State, centers: FloatArray) -> None:
    """Labels, presence, gaps and spread with respect to these centres, by all distances."""
    squares = squares_in_tiles(engine, X, centers)
    assert (state.labels < len(centers)).all()
    labels = state.labels.astype(np.intp)[:, :, None]
    own_squares = np.take_along_axis(squares, labels, axis=2)
    belongs = labels == np.arange(len(centers))

    tied = own_squares[:, :, 0] <= squares.min(axis=2) * (1.0 + ROUNDING)
    wrong = (state.labels != squares.argmin(axis=2)) & ~tied
    assert not wrong.any(), (np.argwhere(wrong), state.labels[wrong], squares[wrong])

    assert_array_equal(state.present, belongs.any(axis=1))

    # A gap is a lower bound of ‖x − c_j‖ − ‖x − c_x‖ over the x that do not belong to j.
    distances, own = np.sqrt(squares), np.sqrt(own_squares)
    gaps = distances - own + ROUNDING * (distances + own)
    true_gaps = np.where(belongs, np.inf, gaps).min(axis=1)
    wrong = ~(state.gaps <= true_gaps)
    assert not wrong.any(), (np.argwhere(wrong), state.gaps[wrong], true_gaps[wrong])

    assert (state.spread >= own.max(axis=(1, 2)) * (1.0 - ROUNDING)).all()


def squares_in_tiles(engine: CpuEngine, X: Any, centers: FloatArray) -> FloatArray:
    """(tiles, WIDTH, k) squared distances; the last sample is repeated to the end of its tile."""
    n_samples = X.shape[0]
    lanes = np.minimum(np.arange(count_tiles(n_samples) * WIDTH), n_samples - 1)
    rows = in_frame(engine.frame, X.toarray() if issparse(X) else X)[engine.samples.order]
    return squared_distances(rows, centers)[lanes].reshape(-1, WIDTH, len(centers))
