"""Big-means: K-means on chunks, each from the best centres so far."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order
from evomeans.engines.cpu import CpuEngine
from lab.baselines import BigMeans
from lab.baselines.big_means import drawn_chunk, on_all
from lab.baselines.engines import create_engine

RNG = np.random.default_rng(0)
GRID = 10.0 * np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
X = np.repeat(GRID, 250, axis=0) + RNG.normal(scale=0.5, size=(4000, 2))


def test_chunks_have_about_their_size() -> None:
    engine = create_engine("cpu", X, None)
    sizes = [drawn_chunk(engine, 400, 16, np.random.default_rng(s)).n_samples for s in range(20)]
    assert abs(np.mean(sizes) - 400) < 20
    assert len(set(sizes)) > 1


def test_samples_without_weight_are_in_no_chunk_and_a_giant_does_not_stop_the_search() -> None:
    """If one sample has nearly all weight, a chunk of a few others cannot be had."""
    weights = np.full(4000, 1e-12)
    weights[0] = 1.0
    engine = create_engine("cpu", X, weights)
    assert drawn_chunk(engine, 20, 16, np.random.default_rng(0)) is engine


def test_a_chunk_begins_at_the_best_centres_so_far(monkeypatch) -> None:
    """The first at k-means++, and every other at those that won; a loser repeats the winner."""
    engine, starts, values = create_engine("cpu", X, None), [], []
    refine = CpuEngine.refine

    def remember(self, given):
        answers = refine(self, given)
        starts.append(given[0].centers)
        values.append(answers[0].inertia)
        return answers

    monkeypatch.setattr(CpuEngine, "refine", remember)
    model = BigMeans(16, chunk_size=200, n_chunks=12)
    *found, last = model.solutions(engine, np.random.default_rng(3))
    assert len(found) == 12
    lowest = values[0]
    for number in range(1, 12):
        assert_array_equal(starts[number], found[number - 1].centers)
        won = values[number] < lowest
        assert won or (found[number].centers is found[number - 1].centers)
        lowest = min(lowest, values[number])
    assert last.inertia <= found[-1].inertia


def test_inertias_are_those_of_all_samples() -> None:
    engine = create_engine("cpu", X, None)
    chunk = drawn_chunk(engine, 300, 16, np.random.default_rng(1))
    (refined,) = chunk.refine([Order(chunk.seed(np.random.default_rng(2).random(16)))])
    solution = on_all(engine, refined)
    squares = ((X[:, None] - engine.frame.decode(refined.centers)) ** 2).sum(axis=2).min(axis=1)
    assert solution.inertia == pytest.approx(squares.sum(), rel=1e-9)
    assert solution.cluster_weights.sum() == 4000


def test_it_finds_groups_from_small_chunks() -> None:
    """Sixteen groups, with about ten samples of each in a chunk."""
    truth = sum(
        ((X[i : i + 250] - X[i : i + 250].mean(axis=0)) ** 2).sum() for i in range(0, 4000, 250)
    )
    model = BigMeans(16, chunk_size=160, n_chunks=60, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(truth, rel=1e-6)


def test_a_chunk_of_all_samples_begins_anew_each_time() -> None:
    """Then it is K-means from many k-means++ starts."""
    samples = np.random.default_rng(1).normal(size=(300, 2))
    model = BigMeans(16, chunk_size=300, n_chunks=8, random_state=1).fit(samples)
    best = [record.best for record in model.history_]
    assert best == sorted(best, reverse=True)
    assert len(set(best)) > 1


def test_a_chunk_has_a_sample_for_each_cluster() -> None:
    """However small it is asked to be."""
    model = BigMeans(16, chunk_size=2, n_chunks=30, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 16
