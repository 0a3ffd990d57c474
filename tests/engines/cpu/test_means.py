"""Means and halves of clusters: for sparse samples the same as for dense ones, and an oracle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.layout import Samples, count_tiles
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.swaps.lists import (
    GROUP,
    Clusters,
    UndoLog,
    fill,
    get_mean,
    set_apart,
    square_to,
)
from evomeans.engines.cpu.swaps.moves import join, leave, take_back
from evomeans.engines.cpu.swaps.search import halve_cluster
from evomeans.engines.frame import Frame
from oracles import squared_distances
from problems import make_weights

K, D = 4, 12


@jit
def mean_of(rows, clusters, j, means):
    get_mean(rows, clusters, j, means, j)


@jit
def square_of(rows, i, clusters, j):
    return square_to(rows, i, clusters, j)


@jit
def apart_from(rows, clusters, apart, j):
    set_apart(rows, clusters, apart, j)


class Half(NamedTuple):
    """Clusters of some samples, dense or sparse, and where the user's samples are in them."""

    samples: Samples
    clusters: Clusters
    undo: UndoLog
    places: np.ndarray

    def means(self) -> np.ndarray:
        result = np.empty((K, D))
        for j in range(K):
            mean_of(self.samples.rows, self.clusters, j, result)
        return result

    def move(self, sample: int, target: int) -> float:
        i = int(self.places[sample])
        own = self.clusters.labels[i]
        square = square_of(self.samples.rows, i, self.clusters, own)
        change = leave(self.samples, self.clusters, self.undo, i, square)
        square = square_of(self.samples.rows, i, self.clusters, target)
        return change + join(self.samples, self.clusters, self.undo, i, target, square)


class Problem(NamedTuple):
    X: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    halves: tuple[Half, Half]

    def __repr__(self) -> str:
        return f"Problem(X={self.X!r}, weights={self.weights!r}, labels={self.labels!r})"

    def cost(self, own: np.ndarray) -> float:
        mean = np.average(self.X[own], axis=0, weights=self.weights[own])
        return float(self.weights[own] @ squared_distances(self.X[own], mean[None])[:, 0])


def filled(X, weights: np.ndarray, labels: np.ndarray) -> Half:
    engine = CpuEngine(X, weights, frame=Frame(np.zeros(D), 0))
    n = len(labels)
    places = np.asarray(engine.samples.places, np.intp)
    tiles = np.zeros((count_tiles(n), WIDTH), np.uint16)
    tiles.ravel()[places] = labels
    dense = X.toarray() if sp.issparse(X) else X
    members = [labels == j for j in range(K)]
    centers = np.array([np.average(dense[o], axis=0, weights=weights[o]) for o in members])
    totals = np.array([weights[own].sum() for own in members])
    clusters = Clusters.allocate(n, K, D, sp.issparse(X))
    undo = UndoLog.allocate(n, K, D)
    samples = engine._workspace(K).samples
    fill(samples, clusters, undo, tiles, centers, totals)
    return Half(samples, clusters, undo, places)


@st.composite
def problems(draw) -> Problem:
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n = draw(st.sampled_from([20, 90]))
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < draw(st.sampled_from([0.2, 0.7])))
    weights = np.ones(n) if draw(st.booleans()) else make_weights(n, rng) + 0.1
    labels = rng.permutation(np.arange(n) % K)
    return Problem(
        X, weights, labels, (filled(X, weights, labels), filled(sp.csr_array(X), weights, labels))
    )


@settings(max_examples=40)
@given(problems(), st.lists(st.tuples(st.integers(0, 19), st.integers(0, K - 1)), max_size=60))
def test_means_follow_the_samples_and_come_back(problem, moves) -> None:
    labels = problem.labels.copy()
    before = problem.halves[0].means()
    for sample, target in moves:
        if labels[sample] != target and np.count_nonzero(labels == labels[sample]) > 1:
            dense, sparse = (half.move(sample, target) for half in problem.halves)
            assert sparse == pytest.approx(dense, rel=1e-7, abs=1e-9)
            labels[sample] = target
    members = [labels == j for j in range(K)]
    expected = np.array(
        [np.average(problem.X[o], axis=0, weights=problem.weights[o]) for o in members]
    )
    for half in problem.halves:
        assert_allclose(half.means(), expected, atol=1e-9)
        for j in range(K):
            apart_from(half.samples.rows, half.clusters, half.undo.apart, j)
            assert_allclose(
                half.undo.apart, squared_distances(expected, expected[j][None])[:, 0], atol=1e-9
            )
            for sample in (0, 7):
                i = int(half.places[sample])
                exact = squared_distances(problem.X[sample][None], expected[j][None])[0, 0]
                square = square_of(half.samples.rows, i, half.clusters, j)
                assert square == pytest.approx(exact, abs=1e-9)
        take_back(half.samples, half.clusters, half.undo)
        assert_allclose(half.means(), before, atol=1e-12)


@settings(max_examples=60)
@given(problems(), st.integers(0, 19))
def test_a_half_gains_what_it_says(problem, chosen) -> None:
    """It is a part of the cluster, and both sums of squares together are lower by the gain."""
    j = int(problem.labels[chosen])
    own = problem.labels == j
    for half in problem.halves:
        i = int(half.places[chosen])
        gain = halve_cluster(half.samples, half.clusters, half.undo, j, i)
        assert gain >= 0.0
        if gain == 0.0:
            continue
        group = half.undo.group[: half.undo.numbers[GROUP]]
        inside = np.isin(half.places, group)
        assert 0 < inside.sum() < own.sum()
        assert not (inside & ~own).any()
        parted = problem.cost(inside) + problem.cost(own & ~inside)
        assert gain == pytest.approx(problem.cost(own) - parted, rel=1e-6, abs=1e-9)


def test_two_clouds_in_many_noisy_features_are_parted() -> None:
    """Where a centre on a single sample would attract nobody else."""
    rng = np.random.default_rng(0)
    clouds = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, D)) + 2.5 * clouds[:, None] * (np.arange(D) < 6)
    labels = np.concatenate([np.zeros(80, int), np.arange(K * 3) % K])
    X = np.concatenate([X, rng.normal(9.0, 1.0, (K * 3, D))])
    labels[80:] = np.where(labels[80:] == 0, 1, labels[80:])
    for samples in (X, sp.csr_array(X)):
        half = filled(samples, np.ones(len(X)), labels)
        assert halve_cluster(half.samples, half.clusters, half.undo, 0, int(half.places[3])) > 0
        group = half.undo.group[: half.undo.numbers[GROUP]]
        inside = np.isin(half.places[:80], group)
        assert max(np.mean(inside == clouds), np.mean(inside != clouds)) > 0.95
