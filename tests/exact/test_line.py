"""The solver on the line against brute force and exact arithmetic."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from evomeans.exact import LineClustering, cluster_line, line
from evomeans.exact.line import segment_cost

Floats = NDArray[np.float64]
Problem = tuple[Floats, Floats, int]
TOLERANCE = Fraction(1, 10**12)


class ExactSegments:
    """Costs of all segments of the sorted points, in rational numbers."""

    def __init__(self, x: Floats, w: Floats) -> None:
        self.n = x.size
        order = np.argsort(x, kind="stable")
        points = [(Fraction(float(w[i])), Fraction(float(x[i]))) for i in order]
        powers = [[a * b**p for a, b in points] for p in range(3)]
        self.sums = [list(itertools.accumulate(row, initial=Fraction(0))) for row in powers]
        self.cost = functools.cache(self.compute_cost)

    def compute_cost(self, i: int, j: int) -> Fraction:
        w, wx, wxx = (row[j] - row[i] for row in self.sums)
        return wxx - wx * wx / w if w else Fraction(0)

    def optimum(self, k: int) -> Fraction:
        """Minimum by the textbook recursion."""
        best = [self.cost(0, j) for j in range(self.n + 1)]
        for _ in range(k - 1):
            best = [min(best[i] + self.cost(i, j) for i in range(j + 1)) for j in range(self.n + 1)]
        return best[self.n]


def cost_of_labels(x: Floats, w: Floats, labels: NDArray[Any]) -> Fraction:
    """Exact sum of squares about the exact means of the labelled groups."""
    groups = [labels == label for label in np.unique(labels)]
    return sum((ExactSegments(x[g], w[g]).cost(0, np.sum(g)) for g in groups), Fraction(0))


def check_result(result: LineClustering, x: Floats, w: Floats, k: int) -> None:
    """Check that the parts fit together: nearest labels, ascending centres, direct inertia."""
    centers, labels = result.centers, result.labels
    assert centers.shape == result.cluster_weights.shape == (k,)
    assert centers.dtype == result.cluster_weights.dtype == np.float64
    assert labels.dtype == np.int32
    assert np.all(np.diff(centers) >= 0)
    np.testing.assert_array_equal(labels, np.abs(x[:, None] - centers).argmin(axis=1))
    np.testing.assert_array_equal(result.cluster_weights, np.bincount(labels, w, k))
    assert result.inertia == pytest.approx(np.sum(w * (x - centers[labels]) ** 2), rel=1e-12, abs=0)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Few points on a coarse grid, so that values and costs tie, far from 1 or from the origin."""
    n = draw(st.integers(1, 9))
    grid = draw(st.sampled_from([1.0, 0.25]))
    steps = draw(st.lists(st.integers(-12, 12), min_size=n, max_size=n))
    weight = st.sampled_from([0.0, 0.1, 0.3, 1.0, 1.7, 4.0])
    w = np.array(draw(st.lists(weight, min_size=n, max_size=n).filter(any)))
    offset, scale = draw(st.sampled_from([0.0, 1e8])), draw(st.sampled_from([1.0, 1e-150, 1e150]))
    return (np.array(steps) * grid + offset) * scale, w, draw(st.integers(1, n))


@given(problems())
def test_no_partition_is_better(problem: Problem) -> None:
    """On small problems the labels reach the minimum over all contiguous partitions."""
    x, w, k = problem
    result = cluster_line(x, k, w)
    check_result(result, x, w, k)
    optimum = ExactSegments(x[w > 0], w[w > 0]).optimum(k)
    assert cost_of_labels(x, w, result.labels) <= optimum * (1 + TOLERANCE)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.data())
def test_arbitrary_floats_without_weights(values: list[float], data: st.DataObject) -> None:
    """Without weights, the inertia is the brute-force minimum whatever the gaps between values."""
    x = np.array(values)
    k = data.draw(st.integers(1, x.size))
    result = cluster_line(x, k)
    check_result(result, x, np.ones(x.size), k)
    optimum = float(ExactSegments(x, np.ones(x.size)).optimum(k))
    rounding = x.size * (1e-16 * np.abs(x).max()) ** 2
    assert result.inertia == pytest.approx(optimum, rel=1e-12, abs=rounding)


def spread(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape)


HOSTILE = {
    "outliers": (np.concatenate([spread(0, 40), [-1e12, 3e13]]), 6),
    "negative outlier": (np.append(spread(1, 40), -1e10), 4),
    "clumps": (np.ravel([[0.0], [1e8], [2.5e8]] + spread(2, 3, 14) * 1e-3), 7),
    "tight clumps": (np.ravel([[-1.0], [1.0]] + spread(3, 2, 20) * 1e-12), 6),
    "clumps, one each": (np.ravel([[0.0], [1e8], [2.5e8]] + spread(4, 3, 14) * 1e-3), 3),
    "nested scales": (np.sign(spread(5, 40)) * 10.0 ** (4 * spread(6, 40)), 9),
    "specks": (np.append(spread(9, 40) * 1e-20, [1.0, 3.0]), 5),
    "offset": (1e8 + 1e-4 * spread(7, 40), 5),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("weighted", [False, True])
def test_outliers_and_clumps_do_not_cost_digits(name: str, weighted: bool) -> None:
    """Where float64 prefix sums lose all digits, the labels still reach the rational optimum."""
    x, k = HOSTILE[name]
    w = 10.0 ** spread(8, x.size) if weighted else np.ones(x.size)
    result = cluster_line(x, k, w)
    check_result(result, x, w, k)
    optimum = ExactSegments(x, w).optimum(k)
    assert cost_of_labels(x, w, result.labels) <= optimum * (1 + TOLERANCE)


def optimum_by_squares(x: Floats, w: Floats, k: int) -> float:
    """O(k n²) recursion over a full table of segment costs."""
    n = x.size
    costs = np.full((n + 1, n + 1), np.inf)
    for i in range(n):
        weight = np.cumsum(w[i:])
        mean = np.cumsum(w[i:] * (x[i:] - x[i])) / weight
        before = np.concatenate([[0.0], mean[:-1]])
        costs[i, i + 1 :] = np.cumsum(w[i:] * (x[i:] - x[i] - before) * (x[i:] - x[i] - mean))
    best = costs[0]
    for _ in range(k - 1):
        best = np.min(best[:, None] + costs, axis=0)
    return float(best[n])


@pytest.mark.parametrize("coarse", [1024, 8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 5, 17])
@pytest.mark.parametrize("law", ["uniform", "cauchy", "rounded"])
def test_agrees_with_a_quadratic_recursion(
    law: str, k: int, weighted: bool, coarse: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of points: pruning, coarse bound and packed minimisers do not lose the optimum."""
    monkeypatch.setattr(line, "COARSE", coarse)
    rng = np.random.default_rng(k)
    x = {
        "uniform": rng.random(600),
        "cauchy": rng.standard_cauchy(600),
        "rounded": np.round(rng.standard_normal(900), 2),
    }[law]
    w = rng.random(x.size) if weighted else np.ones(x.size)
    result = cluster_line(x, k, w)
    check_result(result, x, w, k)
    order = np.argsort(x)
    assert result.inertia == pytest.approx(optimum_by_squares(x[order], w[order], k), rel=1e-10)


@given(problems())
def test_weights_are_repetitions(problem: Problem) -> None:
    """A point of weight 3 is three points; a point of weight 0 is none, but gets a label."""
    x, w, k = problem
    w = np.ceil(w)
    weighted = cluster_line(x, k, w)
    copies = np.repeat(np.arange(x.size), w.astype(int))
    repeated = cluster_line(x[copies], min(k, copies.size), None)
    np.testing.assert_array_equal(weighted.labels[copies], repeated.labels)
    np.testing.assert_allclose(weighted.centers[: repeated.centers.size], repeated.centers)
    assert weighted.inertia == pytest.approx(repeated.inertia, rel=1e-12, abs=0)


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_the_points_does_not_matter(problem: Problem, random: Any) -> None:
    """Permuted points get permuted labels and the same centres, bit for bit."""
    x, w, k = problem
    order = np.array(random.sample(range(x.size), x.size))
    result, permuted = cluster_line(x, k, w), cluster_line(x[order], k, w[order])
    np.testing.assert_array_equal(result.labels[order], permuted.labels)
    np.testing.assert_array_equal(result.centers, permuted.centers)


def test_order_of_repeated_points_does_not_matter() -> None:
    """The weights of equal values add up to the same bits in every order."""
    x = np.array([0.0, 0.0, 0.0, 1.0])
    orders = itertools.permutations([0.1, 0.2, 0.3])
    assert len({cluster_line(x, 1, np.array([*w, 0.7])).centers[0] for w in orders}) == 1


SMALL = [
    # x, weights, then centres, labels, inertia and weights of the clusters.
    ([3, 1, 7], [1, 2, 1], [3], [0, 0, 0], 24, [4]),
    ([3, 1, 2], [1, 1, 1], [1, 2, 3], [2, 0, 1], 0, [1, 1, 1]),
    # Surplus centres repeat the largest value, and labels do not point at them.
    *(([x] * 5, [1] * 5, [x] * 3, [0] * 5, 0, [5, 0, 0]) for x in (0.0, -7.5, 1e-310, 1e308)),
    # Only positive weights count. The 2 is as far from both centres, and takes the lower index.
    ([4, 0, 9, 2], [1, 2, 0, 0], [0, 4, 4], [1, 0, 1, 0], 0, [2, 1, 0]),
]


@pytest.mark.parametrize(("x", "w", "centers", "labels", "inertia", "weights"), SMALL)
def test_small_problems(x, w, centers, labels, inertia, weights) -> None:
    result = cluster_line(np.array(x, float), len(centers), np.array(w, float))
    assert (result.centers.tolist(), result.labels.tolist()) == (centers, labels)
    assert (result.inertia, result.cluster_weights.tolist()) == (inertia, weights)


def test_extreme_magnitudes() -> None:
    """The largest floats of both signs do not overflow, and float32 is computed in float64."""
    x = np.array([-1.7e308, -1.6e308, 1.6e308, 1.7e308])
    with pytest.warns(RuntimeWarning, match="overflow"):  # the inertia, and nothing else
        result = cluster_line(x, 2)
    assert result.labels.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(result.centers, [-1.65e308, 1.65e308])
    single = cluster_line(np.array([16777216.0, 16777214.0, 0.0], np.float32), 2)
    assert single.centers.tolist() == [0.0, 16777215.0]


def test_tiny_weights_neither_fail_nor_count() -> None:
    """Weights far below the precision of the sums leave the optimum of the others in place."""
    x = np.array([0.0, 1.0, 5.0, 6.0, 20.0, 30.0, 31.0])
    w = np.array([0.1, 0.2, 0.3, 0.7, 1e-200, 1e-300, 1e-40])
    few, many = cluster_line(x, 2, w), cluster_line(x, 6, w)
    assert few.labels.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert few.inertia == pytest.approx(0.1 * 0.2 / 0.3 + 0.3 * 0.7)
    assert many.labels.tolist() == [0, 1, 2, 3, 4, 5, 5]


def test_costs_of_short_segments_are_precise() -> None:
    """Costs keep 13 digits where they are 1e-11 and less of what the prefix sums add up."""
    rng = np.random.default_rng(0)
    x, w = np.sort(rng.random(2000)), rng.random(2000)
    sums, _ = line.segment_sums(x, w, np.zeros(x.size, np.int32))
    exact = ExactSegments(x, w)
    for i in (*range(10), *range(10, 1990, 100)):
        for j in (i + 2, i + 3, i + 10):
            expected = pytest.approx(float(exact.cost(i, j)), rel=1e-13, abs=0)
            assert segment_cost(sums, i, j) == expected
