"""Ward's method with lists of near clusters: the mergers are those by the costs of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist

from evomeans.kernels import near, ward
from evomeans.kernels.ward import pnn_merge

N, K = 896, 420


def clusters(d=5, seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(1, 20, n).astype(float)


def merged_by(most_costs, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ward, "MOST_COSTS", most_costs)
        return pnn_merge(*arguments)


def assert_merged_alike(centers, weights, k):
    """Expect the same bits by lists and by all pairs."""
    found, expected = (merged_by(most, centers, weights, k) for most in (0, len(centers)))
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


def cost_of(merged, centers, weights):
    means, totals, _ = merged
    return weights @ np.sum(centers**2, axis=1) - totals @ np.sum(means**2, axis=1)


def noisy_parents(d, seed=0):
    """Centres of two solutions for a mixture, most of which are next to one of the other."""
    rng = np.random.default_rng(seed)
    clouds = np.repeat(rng.normal(size=(N // 8, d)), 4, axis=0)
    both = np.concatenate([clouds, clouds])
    return both + 0.3 * rng.normal(size=both.shape), rng.integers(1, 50, len(both)).astype(float)


@pytest.mark.parametrize("d", [1, 2, 7, 60])
@pytest.mark.parametrize("make", [clusters, noisy_parents])
def test_mergers_are_those_of_all_pairs(make, d) -> None:
    centers, weights = make(d)
    for k in (K, 5, 1):
        assert_merged_alike(centers, weights, k)


@given(st.integers(2, 60), st.integers(1, 4), st.integers(0, 2**16), st.floats(0.0, 6.0))
def test_mergers_of_few_clusters_are_those_of_all_pairs(n, d, seed, spread) -> None:
    """Whatever their weights are, so that lists are too short again and again."""
    rng = np.random.default_rng(seed)
    centers, weights = rng.standard_cauchy((n, d)), 10.0 ** rng.uniform(-spread, spread, n)
    assert_merged_alike(centers, weights, int(rng.integers(1, n + 1)))


def assert_bounded(lists):
    """Expect that what a cluster does not list costs no less than its bound."""
    left = np.flatnonzero(np.isfinite(lists.squares))
    shares, means = lists.shares[left], lists.means[left]
    costs = cdist(means, means, "sqeuclidean") / (1.0 / shares + 1.0 / shares[:, None])
    np.fill_diagonal(costs, np.inf)
    for place, i in enumerate(left):
        listed = [near.left_of(j, lists) for j in lists.near[i] if j != near.NONE]
        costs[place, np.searchsorted(left, listed)] = np.inf
    assert np.all(costs.min(axis=1) >= lists.beyond[left] * (1.0 - 1e-9))


@pytest.mark.parametrize("make", [clusters, noisy_parents])
@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("d", [2, 7])
def test_what_is_not_listed_costs_as_much_as_its_bound(make, power, d, monkeypatch) -> None:
    """After mergers among what is listed, whenever lists are made anew."""
    centers, weights = make(d)
    merge_known = near.merge_known

    def merged(n_merges, wanted, lists):
        # A few at a time.
        while (now := merge_known(n_merges, min(n_merges + 20, wanted), lists)) > n_merges:
            n_merges = now
            assert_bounded(lists)
        return n_merges

    monkeypatch.setattr(near, "merge_known", merged)
    found = near.absorbers(centers, weights**power, 30, np.zeros(1, np.int64))
    assert np.count_nonzero(found == np.arange(N)) == 30


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_scores_are_bounds_where_their_precision_is_too_low(precision) -> None:
    """Far from the middle, single precision errs by much."""
    centers, weights = clusters()
    lists, rows = near.Lists.of(centers, weights, np.zeros(1, np.int64)), np.arange(N)
    lists.means[:] = lists.points[:] = centers + 300.0
    lists.squares[:] = np.sum(lists.means**2, axis=1)
    near.list_near(rows, lists.means.astype(precision), lists)
    near.set_costs(rows, 0, False, lists)
    assert_bounded(lists)


def test_equal_centres_are_merged_first() -> None:
    """Of two solutions that share most of their centres, some with zeros of either sign."""
    centers, weights = clusters()
    centers[:100, 0] = 0.0
    centers[496:] = centers[:400]
    centers[496:550, 0] = -0.0
    for k in (496, 300, 550):
        assert_merged_alike(centers, weights, k)


@pytest.mark.parametrize("apart", [1e3, 1e5, 1e6])
def test_single_precision_need_not_tell_clusters_apart(apart) -> None:
    """Small groups of clusters far from each other: lists are made again in double precision."""
    centers, weights = clusters()
    centers[:, 0] += apart * (np.arange(N) % 5)
    assert_merged_alike(centers, weights, K)


@pytest.mark.parametrize("offset", [1e6, -1e12])
def test_the_offset_does_not_matter(offset) -> None:
    centers, weights = clusters()
    assert_merged_alike(centers + offset, weights, K)


@pytest.mark.parametrize("exponent", [-490, -300, 300, 1000])
def test_the_scale_does_not_matter(exponent) -> None:
    """Also where squares overflow or vanish."""
    centers, weights = clusters()
    expected = merged_by(0, centers, weights, K)
    found = merged_by(0, np.ldexp(centers, exponent), weights, K)
    assert_array_equal(found[0], np.ldexp(expected[0], exponent))
    assert_array_equal(found[1:], expected[1:])


@pytest.mark.parametrize("size", [2.0, 10.0])
def test_where_many_mergers_cost_the_same_it_is_as_good(size) -> None:
    """Their order may then be another one."""
    centers, weights = np.round(size * clusters(3)[0]), np.ones(N)
    found, expected = (merged_by(most, centers, weights, K) for most in (0, N))
    assert found[1].sum() == N
    np.testing.assert_allclose(found[1] @ found[0], weights @ centers, atol=1e-9)
    assert cost_of(found, centers, weights) <= 1.02 * cost_of(expected, centers, weights)


def test_a_merging_ends_when_it_is_stopped(monkeypatch) -> None:
    """Before the first list, and between two lists; nothing is written then."""
    centers, weights = clusters()
    stop, sizes, list_near = np.ones(1, np.int64), [], near.list_near

    def listed(rows, points, lists):
        sizes.append(len(rows))
        list_near(rows, points, lists)
        stop[0] = len(sizes) == 2

    for n_lists in (0, 2):
        merged, totals, _ = pnn_merge(centers, weights, K, stop)
        assert not merged.any()
        assert not totals.any()
        assert len(sizes) == n_lists
        monkeypatch.setattr(near, "list_near", listed)
        stop[0] = 0


def test_what_is_left_of_equal_clusters_may_be_one() -> None:
    centers = np.repeat([[1.0, 2.0], [3.0, 5.0]], 400, axis=0)
    merged, totals, origins = merged_by(0, centers, np.ones(800), 1)
    assert_array_equal(merged, [[2.0, 3.5]])
    assert_array_equal(totals, [800.0])
    assert_array_equal(origins, [0])
