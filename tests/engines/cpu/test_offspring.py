"""An offspring that is made by one kernel has the bits of one that is made step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.cpu import engine as module
from evomeans.engines.protocol import KMEANS, LocalSearch, Order, Refinement, Way
from evomeans.search.crossover import NAMES, WAYS, Crossing, cross, ways_of
from evomeans.search.population import Individual

DEEP = LocalSearch(single_moves=True, swaps=4)
MOMENTUM = LocalSearch(momentum=True)
MERGING, MATCHING, SQUARED = Way.MERGING, Way.MATCHING, Way.SQUARED_MATCHING
# What crossovers of different kinds are tried, in order.
TRIES = [[MATCHING], [SQUARED], [MERGING], [Way.PARTS, SQUARED], [Way.PARTS, MERGING]]
CROSSOVERS = {way: crossover for crossover, way in WAYS.items()}


def samples(kind: str):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 4)) + 4.0 * rng.integers(0, 3, size=(500, 1))
    return csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0)) if kind == "sparse" else X


def engine_of(kind: str) -> CpuEngine:
    weights = np.random.default_rng(4).integers(0, 3, 500).astype(float)
    return CpuEngine(samples(kind), weights if kind == "weighted" else None)


def individual(engine: CpuEngine, k: int, rng: np.random.Generator) -> Individual:
    start = Order(engine.samples_at(rng.random(k)), local_search=LocalSearch(single_moves=True))
    (found,) = engine.refine([start])
    return Individual(
        found.centers, found.inertia, found.cluster_weights, rng.random(), found.handle
    )


def order_of(
    engine: CpuEngine,
    tries: list[Way],
    rng: np.random.Generator,
    search: LocalSearch = KMEANS,
    k: int = 12,
) -> Order:
    crossovers = tuple(Crossing(CROSSOVERS[way]) for way in tries)
    first, second = individual(engine, k, rng), individual(engine, k, rng)
    coins, (alpha, quantile), removed = rng.random(k), rng.random(2).tolist(), int(rng.integers(k))
    return Order(
        alpha=alpha,
        quantile=quantile,
        removed=removed,
        power=2,
        local_search=search,
        parents=(first, second),
        crossovers=crossovers,
        numbers=coins,
    )


def step_by_step(order: Order, engine: CpuEngine) -> tuple[str, Refinement]:
    placed = cross(order, engine)
    (found,) = engine.refine([placed])
    return placed.made_by, found


@pytest.mark.parametrize("kind", ["dense", "weighted", "sparse"])
@pytest.mark.parametrize("tries", TRIES)
@pytest.mark.parametrize("search", [DEEP, KMEANS, MOMENTUM])
def test_one_kernel_has_the_bits_of_all_steps(kind, tries, search) -> None:
    if kind == "sparse" and search.momentum:
        pytest.skip("sparse samples have no momentum")
    engine, rng = engine_of(kind), np.random.default_rng(5)
    for _ in range(6):
        order = order_of(engine, tries, rng, search)
        made_by, expected = step_by_step(order, engine)
        made = engine.offspring(order, ways_of(order))
        assert made is not None
        assert NAMES[made.way] == made_by
        assert made.inertia == expected.inertia
        assert made.n_iter == expected.n_iter
        np.testing.assert_array_equal(made.centers, expected.centers)
        np.testing.assert_array_equal(made.cluster_weights, expected.cluster_weights)


def test_the_better_parts_are_taken_from_either_parent() -> None:
    """Among many pairs, some children are mostly the first parent, and some the second."""
    engine, rng = engine_of("dense"), np.random.default_rng(6)
    sides = set()
    for _ in range(60):
        order = order_of(engine, [Way.PARTS, SQUARED], rng)
        made = engine.offspring(order, ways_of(order))
        assert made is not None
        if made.way is Way.PARTS:
            sides.add(bool(engine._workspace(12)._offspring_arrays.is_second[0]))
            made_by, expected = step_by_step(order, engine)
            assert (made_by, expected.inertia) == (NAMES[made.way], made.inertia)
    assert sides == {False, True}


def test_what_is_out_of_the_ordinary_is_left_to_the_search() -> None:
    """Parents that are forgotten, or of another engine."""
    engine, rng = engine_of("dense"), np.random.default_rng(7)
    usual = order_of(engine, [MERGING], rng, k=5)
    first, second = usual.parents
    assert engine.offspring(usual, [MERGING]) is not None
    assert engine_of("dense").offspring(usual, [MERGING]) is None
    strangers = replace(usual, parents=(first, replace(second, handle=None)))
    assert engine.offspring(strangers, [MERGING]) is None
    engine.memory.forget(first.handle)
    assert engine.offspring(usual, [MERGING]) is None
    with pytest.raises(ValueError, match="needs the parents of its order"):
        engine.offspring(Order(np.zeros((5, 4))), [MERGING])


@pytest.mark.parametrize("tries", [[MERGING], [Way.PARTS, MERGING]])
def test_merging_many_clusters_is_left_to_the_search(tries, monkeypatch) -> None:
    """By an engine that merges fewer of them in one go."""
    monkeypatch.setattr(module, "MOST_COSTS", 22)
    engine, rng = engine_of("dense"), np.random.default_rng(10)
    for k in (11, 12):
        order = order_of(engine, tries, rng, k=k)
        assert (engine.offspring(order, tries) is None) == (k == 12)


def test_a_cluster_without_weight_is_left_to_the_search() -> None:
    """With fewer distinct samples than clusters, parents have empty clusters."""
    X = np.random.default_rng(8).integers(0, 2, size=(60, 2)).astype(float)
    engine, rng = CpuEngine(X), np.random.default_rng(9)
    order = order_of(engine, [MERGING], rng, k=5)
    assert (order.parents[0].cluster_weights == 0.0).any()
    free = len(engine.memory._free)
    assert engine.offspring(order, [MERGING]) is None
    assert len(engine.memory._free) >= free, "its memory is used again"
