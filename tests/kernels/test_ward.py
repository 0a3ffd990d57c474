"""Pairwise merging against one merger after the other, and against SciPy's Ward linkage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage

from evomeans.kernels import MOST_COSTS, ward
from evomeans.kernels.ward import pnn_merge


@pytest.fixture(params=[MOST_COSTS, 0], ids=["all pairs", "lists"], autouse=True, scope="module")
def _most_costs(request):
    """Merge by the costs of all pairs, and by lists of near clusters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ward, "MOST_COSTS", request.param)
        yield


def one_by_one(centers, weights, k):
    """Look at all pairs before every merger; groups of the clusters merged into one."""
    clusters = [([i], c, w) for i, (c, w) in enumerate(zip(centers, weights, strict=True))]
    while len(clusters) > k:
        costs = {
            (i, j): clusters[i][2]
            * clusters[j][2]
            / (clusters[i][2] + clusters[j][2])
            * np.sum((clusters[i][1] - clusters[j][1]) ** 2)
            for j in range(len(clusters))
            for i in range(j)
        }
        i, j = min(costs, key=costs.__getitem__)
        (first, a, v), (second, b, w) = clusters[i], clusters.pop(j)
        clusters[i] = (first + second, (v * a + w * b) / (v + w), v + w)
    return clusters


@st.composite
def clusters(draw):
    """Up to 30 clusters in general position, and how many of them are to be left."""
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    centers, weights = rng.normal(size=(n, d)), 10.0 ** rng.uniform(-2.0, 2.0, size=n)
    return centers, weights, draw(st.integers(1, n))


@given(clusters())
def test_it_is_the_cheapest_merger_again_and_again(case) -> None:
    centers, weights, k = case
    merged, totals, origins = pnn_merge(centers, weights, k)
    expected = sorted(one_by_one(centers, weights, k), key=lambda cluster: min(cluster[0]))
    assert_array_equal(origins, [min(group) for group, _, _ in expected])
    assert_allclose(totals, [total for _, _, total in expected], rtol=1e-12)
    assert_allclose(merged, [center for _, center, _ in expected], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(200, 2), (120, 30), (200, 100)])
def test_clusters_of_one_sample_each_are_merged_as_by_wards_method(n, d) -> None:
    """Also where few are the nearest of each other, as in many dimensions."""
    X = np.random.default_rng(n + d).normal(size=(n, d))
    labels = fcluster(linkage(X, "ward"), n // 2, "maxclust")
    merged, totals, _ = pnn_merge(X, np.ones(n), n // 2)
    expected = [X[labels == label].mean(axis=0) for label in np.unique(labels)]
    assert_allclose(merged[np.lexsort(merged.T)], sorted(expected, key=lambda c: tuple(c[::-1])))
    assert_array_equal(np.sort(totals), np.sort(np.bincount(labels)[1:]))


@given(clusters(), st.integers(0, 2**16))
def test_equal_centres_are_merged_first_and_stay_as_they_are(case, seed) -> None:
    """To the last bit, in whatever order they come and whatever their weights are."""
    centers, weights, _ = case
    rng = np.random.default_rng(seed)
    twice = rng.permutation(np.repeat(np.arange(len(centers)), 2))
    merged, totals, origins = pnn_merge(centers[twice], weights[twice], len(centers))
    assert_array_equal(merged, centers[twice[origins]])
    assert_allclose(totals, 2.0 * weights[twice[origins]])
    assert len(np.unique(twice[origins])) == len(centers)


@given(clusters(), st.integers(1, 9))
def test_clusters_without_weight_leave_no_trace(case, count) -> None:
    """As long as there are others; what is missing then is made up of them, as they are."""
    centers, weights, k = case
    rng = np.random.default_rng(count)
    empty = rng.normal(size=(count, centers.shape[1]))
    both = np.concatenate([empty, centers])
    merged, totals, origins = pnn_merge(both, np.append(np.zeros(count), weights), k)
    expected, expected_totals, expected_origins = pnn_merge(centers, weights, k)
    assert_array_equal(merged, expected)
    assert_array_equal(totals, expected_totals)
    assert_array_equal(origins, expected_origins + count)

    everything = pnn_merge(both, np.append(np.zeros(count), weights), len(centers) + 1)
    assert_array_equal(everything[0], np.concatenate([empty[:1], centers]))
    assert everything[1][0] == 0.0


@given(clusters())
def test_mean_and_weight_of_all_are_kept(case) -> None:
    """Also of centres on a grid, where many mergers cost the same."""
    centers, weights, k = case
    grid = np.round(2.0 * centers)
    merged, totals, _ = pnn_merge(grid, weights, k)
    assert merged.shape == (k, centers.shape[1])
    assert totals.sum() == pytest.approx(weights.sum())
    assert_allclose(totals @ merged, weights @ grid, rtol=1e-9, atol=1e-9 * weights.sum())


def test_nothing_is_modified() -> None:
    rng = np.random.default_rng(0)
    centers, weights = rng.normal(size=(12, 2)), rng.random(12)
    before = centers.copy(), weights.copy()
    for k in (1, 6, 12):
        merged, totals, _ = pnn_merge(centers, weights, k)
        merged += 1.0
        totals += 1.0
    assert_array_equal(centers, before[0])
    assert_array_equal(weights, before[1])


@pytest.mark.parametrize("factor", [1e-300, 1e-12, 1e12, 1e302])
def test_the_size_of_the_weights_does_not_matter(factor) -> None:
    rng = np.random.default_rng(2)
    centers, weights = rng.normal(size=(30, 3)), rng.random(30)
    merged, totals, origins = pnn_merge(centers, weights, 10)
    scaled = pnn_merge(centers, factor * weights, 10)
    assert_array_equal(scaled[2], origins)
    assert_allclose(scaled[0], merged, rtol=1e-12)
    assert_allclose(scaled[1] / factor, totals, rtol=1e-12)
