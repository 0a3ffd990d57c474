"""The loop of SAGA: who survives, who is crossed, and what becomes of the child."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fakes import ScriptedEngine, refinement
from lab.baselines.engines import create_engine
from lab.baselines.saga.evolution import Candidate, Evolution, nth_pair, select_by_roulette
from lab.baselines.saga.parameters import ParameterSet
from oracles import squared_distances

STILL = ParameterSet("multipoint pairwise", 0.0, 0.0)


class LabellingEngine(ScriptedEngine):
    """A scripted engine that also shows its samples: the numbers in the middle of 100 slots."""

    weights = None

    def assign(self, centers):
        samples = self.samples_at((np.arange(self.n_samples) + 0.5) / self.n_samples)
        return squared_distances(samples, centers).argmin(axis=1), 0.0


def candidate(inertia: float, number: int = 0, parameters: ParameterSet = STILL, k: int = 2):
    return Candidate(refinement(inertia, number, k=k), parameters)


def evolution(engine, n_clusters=3, size=6, generations=4, steps=2, seed=0) -> Evolution:
    rng = np.random.default_rng(seed)
    return Evolution(engine, rng, n_clusters, size, generations, steps)


@pytest.mark.parametrize(("size", "survivors"), [(2, 1), (9, 1), (10, 2), (45, 9)])
def test_every_fifth_survives(size, survivors) -> None:
    """At least one, so that the best is never lost."""
    assert evolution(LabellingEngine([1.0]), size=size).n_survivors == survivors


# ---- parents ---------------------------------------------------------------------------------


def test_chances_are_one_over_the_inertia() -> None:
    """Of 1, ½ and ¼; the second parent is drawn from those that are left."""
    population = [candidate(1.0), candidate(2.0), candidate(4.0)]

    def selected(*uniforms: float) -> list[int]:
        parents = select_by_roulette(population, np.array(uniforms))
        return [i for parent in parents for i in range(3) if population[i] is parent]

    assert selected(0.0, 0.0) == [0, 1]
    assert selected(0.571, 0.66) == [0, 1]
    assert selected(0.571, 0.67) == [0, 2]
    assert selected(0.572, 0.79) == [1, 0]
    assert selected(0.572, 0.81) == [1, 2]
    assert selected(0.858, 0.66) == [2, 0]
    assert selected(1.0 - 2.0**-53, 1.0 - 2.0**-53) == [2, 1]


@pytest.mark.parametrize("inertias", [[0.0, 0.0], [0.0, 5.0], [1e-300, 1e300], [3.0, 3.0]])
def test_parents_are_always_two(inertias) -> None:
    """Whatever their inertia: none is crossed with itself."""
    population = [candidate(inertia, number) for number, inertia in enumerate(inertias)]
    for uniforms in np.random.default_rng(0).random((50, 2)):
        first, second = select_by_roulette(population, uniforms)
        assert first is not second


# ---- generations -----------------------------------------------------------------------------


def test_the_best_survive_and_the_others_are_replaced() -> None:
    """Two of ten; the children follow in the order of their inertia."""
    founders = [9.0, 3.0, 8.0, 4.0, 7.0, 5.0, 6.0, 10.0, 2.0, 11.0]
    children = [20.0, 1.0, 21.0, 22.0, 23.0, 24.0, 25.0, 2.5]
    engine = LabellingEngine([99.0, *founders, *children, 0.5])
    search = evolution(engine, size=10, generations=1)
    stream = search.run()
    assert [next(stream).inertia for _ in founders] == founders
    made = [next(stream).inertia for _ in children]
    assert made == children
    assert next(stream).inertia == 0.5
    assert next(stream, None) is None
    kept = [member.solution.inertia for member in search.population]
    assert kept == [1.0, 2.0, 2.5, 3.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0]
    assert engine.starts[-1].parent == "handle 12"
    assert engine.starts[-1].local_search.max_iter is None


def test_founders_are_random_samples_without_kmeans_and_children_get_their_steps() -> None:
    """Distinct ones; a parameter set is drawn for each founder."""
    engine = LabellingEngine(np.arange(100.0, 0.0, -1.0))
    search = evolution(engine, n_clusters=4, size=6, generations=2, steps=7)
    list(search.run())
    assert engine.starts[0].centers.shape == (1, 1)  # the mean of all samples
    assert [start.local_search.max_iter for start in engine.starts[1:]] == [0] * 6 + [7] * 10 + [
        None
    ]
    for start in engine.starts[1:7]:
        assert len(np.unique(start.centers)) == 4
        assert_allclose((100.0 * start.centers - 0.5) % 1.0, 0.0, atol=1e-9)
    assert len({start.centers.tobytes() for start in engine.starts[1:7]}) == 6


def test_a_generation_that_is_not_complete_changes_nothing() -> None:
    """Stopping in the middle of one leaves the last."""
    search = evolution(LabellingEngine(np.arange(90.0, 0.0, -1.0)), size=10)
    stream = search.run()
    next(stream)
    assert search.strategies() == ()
    for _ in range(10):
        next(stream)
    assert len(search.strategies()) == 10
    first = [member.solution.inertia for member in search.population]
    assert first == sorted(first) == np.arange(80.0, 90.0).tolist()
    for _ in range(6):
        next(stream)
    assert [member.solution.inertia for member in search.population] == first


# ---- children --------------------------------------------------------------------------------


def bred(parameters: ParameterSet, fading: float = 1.0, count: int = 300, k: int = 3):
    """Children of two candidates, on an engine whose samples are numbers from 0 to 1."""
    engine = LabellingEngine([1.0])
    search = evolution(engine, n_clusters=k)
    search.population = [candidate(5.0, n, parameters, k) for n in (1, 2)]
    search.variances = np.array([4.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.baselines.saga.parameters.RENEWAL", 0.0)
        return [search.breed(fading) for _ in range(count)], engine


def test_children_are_crossed_by_their_own_crossover_and_know_their_parent() -> None:
    """Pairwise: one of each pair, at the places of the parent that gave more."""
    children, _ = bred(STILL)
    parents = set()
    for start, parameters in children:
        assert parameters == STILL
        assert set(start.centers.ravel().tolist()) <= {10.0, 11.0, 12.0, 20.0, 21.0, 22.0}
        number = int(str(start.parent).removeprefix("handle "))
        parents.add(number)
        in_place = start.centers.ravel() == 10.0 * number + np.arange(3.0)
        assert np.count_nonzero(in_place) >= 2
    assert parents == {1, 2}


def test_mutation_puts_a_random_centre_onto_a_random_sample() -> None:
    """One at most, with the child's own probability, and any of them."""
    children, engine = bred(replace(STILL, mutation_probability=0.25), count=800)
    samples = np.concatenate(engine.sampled[1:])  # the first one began the search
    mutated = Counter()
    for start, _ in children:
        places = np.flatnonzero(np.isin(start.centers.ravel(), samples))
        assert len(places) <= 1
        mutated.update(places.tolist())
    assert 0.2 < sum(mutated.values()) / 800 < 0.3
    assert set(mutated) == {0, 1, 2}


@pytest.mark.parametrize("fading", [1.0, 0.5])
def test_noise_is_uniform_within_its_range_and_fades(fading) -> None:
    """ν = ¼ of a standard deviation of 2 is ½ at first."""
    children, _ = bred(replace(STILL, noise_range=0.25), fading)
    reach = 0.5 * fading
    noise = np.concatenate([(start.centers.ravel() + 5.0) % 1.0 for start, _ in children])
    noise = np.where(noise > 0.5, noise - 1.0, noise)
    assert np.abs(noise).max() <= reach
    assert noise.min() < -0.98 * reach
    assert noise.max() > 0.98 * reach
    assert_allclose(np.mean(noise**2), reach**2 / 3.0, rtol=0.15)


def test_middle_and_variances_are_those_of_the_samples(engine_name, weighted) -> None:
    """The mean exactly, the variances as the founders show them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) * [1.0, 9.0] + [5.0, 100.0]
    weights = rng.integers(1, 5, size=500).astype(float) if weighted else None
    engine = create_engine(engine_name, X, weights)
    search = evolution(engine, n_clusters=20, size=30, generations=1)
    for _ in zip(search.run(), range(30), strict=False):
        pass
    assert_allclose(
        engine.frame.decode(search.middle[None])[0], np.average(X, axis=0, weights=weights)
    )
    assert_allclose(np.sqrt(search.variances) / engine.frame.scale, [1.0, 9.0], rtol=0.1)


def test_what_crossovers_ask_about_the_samples(engine_name, weighted) -> None:
    """Weights that clusters have in common, and those of the nearest centre of both parents'."""
    rng = np.random.default_rng(1)
    X = rng.random((80, 2))
    weights = rng.integers(0, 3, size=80).astype(float) if weighted else None
    engine = create_engine(engine_name, X, weights)
    search = evolution(engine, n_clusters=4, size=3, generations=1)
    list(search.run())
    first, second = search.population[:2]
    couple = search.couple(first, second)

    samples = engine.frame.encode(X)
    counted = np.ones(80) if weights is None else weights
    labels = [squared_distances(samples, each).argmin(axis=1) for each in couple.parents]
    expected = np.zeros((4, 4))
    np.add.at(expected, (labels[0], labels[1]), counted)
    assert_array_equal(couple.overlap(), expected)

    nearest = squared_distances(samples, np.concatenate(couple.parents)).argmin(axis=1)
    assert_array_equal(couple.joint_weights().ravel(), np.bincount(nearest, counted, 8))


def test_samples_are_labelled_once() -> None:
    """A candidate remembers, however often it is crossed."""
    engine = create_engine("reference", np.random.default_rng(0).random((30, 2)), None)
    search = evolution(engine, size=3, generations=1)
    list(search.run())
    member = search.population[0]
    assert member.partition(engine) is member.partition(engine)


def test_the_elitist_reading_crosses_all_pairs_of_the_best() -> None:
    """One after another, and again from the first."""
    elite = ["a", "b", "c"]
    pairs = [nth_pair(elite, nth) for nth in range(4)]
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b")]


def test_the_elitist_reading_weighs_by_the_clusters_of_the_parents() -> None:
    """The roulette reading lets the samples choose between the centres of both."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    for reading in ("roulette", "elitist"):
        engine = create_engine("reference", X, None)
        search = Evolution(engine, np.random.default_rng(1), 4, 10, 2, 2, reading)
        list(search.run())
        first, second = search.population[:2]
        weights = search.couple(first, second).joint_weights()
        own = [one.solution.cluster_weights for one in (first, second)]
        assert np.array_equal(weights, own) == (reading == "elitist")
        assert weights.sum() == (100.0 if reading == "elitist" else 50.0)
