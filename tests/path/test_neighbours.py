"""Founders from neighbours: the best division, and the cheapest mergers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evomeans.engines.reference import ReferenceEngine
from evomeans.path.search import Grown, Merged, divide, divide_best, merge_pair, merging_costs
from evomeans.search.population import Individual


def inertia(X, centers):
    return ((X[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum()


def solution(X, labels):
    k = labels.max() + 1
    centers = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    return Individual(centers, 0.0, np.bincount(labels).astype(float), 0.5)


def test_merging_costs_are_what_merging_costs():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(40, 3)), np.arange(40) % 5
    one = solution(X, labels)

    def around_means(codes):
        return sum(((X[codes == j] - X[codes == j].mean(axis=0)) ** 2).sum() for j in set(codes))

    costs = merging_costs(one.centers, one.cluster_weights)
    for cost, (a, b) in zip(costs, combinations(range(5), 2), strict=True):
        merged = np.where(labels == b, a, labels)
        assert_allclose(cost, around_means(merged) - around_means(labels), rtol=1e-9)


@pytest.mark.parametrize("nth", [0, 1, 9, 50])
def test_the_nth_cheapest_pair_is_merged_at_its_mean(nth):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(40, 3)), np.arange(40) % 5
    one = solution(X, labels)
    costs = merging_costs(one.centers, one.cluster_weights)
    place = np.argsort(costs)[min(nth, 9)]
    a, b = list(combinations(range(5), 2))[place]
    centers, weights = merge_pair(one.centers, one.cluster_weights, nth)
    assert_allclose(centers[a], X[(labels == a) | (labels == b)].mean(axis=0))
    assert centers.shape == (4, 3)
    assert weights.sum() == 40


def test_clusters_without_weight_are_merged_without_trace():
    centers = np.array([[0.0], [5.0], [9.0]])
    merged, weights = merge_pair(centers, np.array([2.0, 0.0, 0.0]))
    assert merged.tolist() == [[0.0], [9.0]] or merged.tolist() == [[0.0], [5.0]]
    assert weights.tolist() == [2.0, 0.0]
    halves, _ = merge_pair(centers, np.zeros(3))
    assert np.isfinite(halves).all()


def test_the_gain_of_a_division_is_what_it_gains():
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(10, 2)) + 8])
    offsets = X - X.mean(axis=0)
    gain, halves = divide(offsets, offsets[-1])
    groups = [offsets[:30], offsets[30:]]
    assert_allclose(halves, [one.mean(axis=0) for one in groups])
    left = sum(((one - one.mean(axis=0)) ** 2).sum() for one in groups)
    assert_allclose(gain, (offsets**2).sum() - left, rtol=1e-9)


def test_the_cluster_that_gains_most_is_divided():
    """Three clouds, two of which share a centre."""
    rng = np.random.default_rng(3)
    clouds = [rng.normal(scale=0.3, size=(30, 2)) + place for place in ([0, 0], [6, 0], [0, 40])]
    X = np.vstack(clouds)
    shared = np.array([np.vstack(clouds[:2]).mean(axis=0), clouds[2].mean(axis=0)])
    grown = divide_best(X, shared, np.random.default_rng(0))
    assert_allclose(inertia(X, grown), inertia(X, np.array([one.mean(axis=0) for one in clouds])))


def test_samples_on_their_centres_cannot_be_divided():
    X = np.array([[0.0, 0.0], [1.0, 1.0]] * 3)
    grown = divide_best(X, X[:2], np.random.default_rng(0))
    assert grown.shape == (3, 2)
    assert inertia(X, grown) == 0.0


@pytest.mark.parametrize("k", [4, 6, 9])
def test_neighbours_need_not_be_next_to_each_other(k):
    """Several centres are added or removed where k has gaps; founders only depend on draws."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 3))
    engine = ReferenceEngine(X, None)
    small, large = solution(X, np.arange(90) % 3), solution(X, np.arange(90) % 10)
    for founding in (Grown((small,)), Merged((large,))):
        draws = [founding.draw(90, k, np.random.default_rng(7)) for _ in range(2)]
        placed = founding.place(engine, draws)
        assert [one.shape for one in placed] == [(k, 3)] * 2
        assert (placed[0] == placed[1]).all()
        assert (founding.place(engine, draws[:1])[0] == placed[0]).all()
