"""A refinement and a whole search give the same bits however their engine works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evomeans.engines import Engine, Order, Refinement
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import Ability, LocalSearch
from evomeans.search import DEEP, PAPER, Crossing, SearchResult, SearchSettings, Strategy, solve
from evomeans.search.crossover import partition_crossover
from limits import time_limit
from oracles import assert_same_bits, trace
from problems import (
    Problem,
    made,
    make_samples,
    make_weights,
    offspring,
    paired,
    problems,
    without_shrinking,
)

SETTINGS = SearchSettings(4, 8, max_offspring=40)
PARTS = Crossing(partition_crossover, needs=frozenset({Ability.PARTS}))


LOCAL_SEARCHES = [
    LocalSearch(max_iter=1),
    LocalSearch(single_moves=True),
    LocalSearch(single_moves=True, swaps=40),
    LocalSearch(momentum=True),
]


def assert_independent(problem: Problem, local_search: LocalSearch) -> bool:
    """Children with the memory of their parent and without, on one thread and on three.

    Returns whether any was given up that had to explain too much.
    """
    is_given_up = False
    rng = np.random.default_rng(problem.seed)
    engine, team = (CpuEngine(problem.X, problem.weights, n_jobs=n_jobs) for n_jobs in (1, 3))
    starts = [replace(one, local_search=local_search) for one in problem.starts(engine, 2)]
    mother, father = engine.refine(starts)
    for one, other in zip((mother, father), team.refine(starts), strict=True):
        assert_same_bits(one, other)
    for _ in range(2):
        start = offspring(mother, father, rng, local_search=local_search)
        (child,) = engine.refine([start])
        for worker in (engine, team):
            assert_same_bits(child, worker.refine([replace(start, parent=None)])[0])
        hopeless = replace(start, least_explained=1e300)
        ends = [worker.refine([hopeless])[0] for worker in (engine, team)]
        assert ends[0].n_iter == ends[1].n_iter
        assert ends[0].is_given_up == ends[1].is_given_up
        is_given_up |= ends[0].is_given_up
        father, mother = mother, child
    return is_given_up


@pytest.fixture
def _compiled(dtype) -> None:
    """Compile before the time limits of single examples begin to count."""
    for one in LOCAL_SEARCHES:
        CpuEngine(np.eye(3, dtype=dtype)).refine([Order(np.eye(3)[:2], local_search=one)])


@paired
@pytest.mark.usefixtures("_compiled")
@settings(without_shrinking, max_examples=40)
@given(st.data())
def test_a_refinement_depends_neither_on_parents_nor_on_threads(
    eager_threads, dtype, weighted, data
) -> None:
    """On all kinds of samples."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        assert_independent(problem, data.draw(st.sampled_from(LOCAL_SEARCHES)))


@paired
@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("local_search", LOCAL_SEARCHES)
def test_nor_where_there_are_many_tiles(dtype, weighted, local_search) -> None:
    X, weights = samples(dtype, weighted, 3000)
    problem = Problem(X, weights, 40, "samples", 4)
    assert assert_independent(problem, local_search) == local_search.momentum


class Forgetful(Engine):
    """An engine that loses the handle of every other parent, at random."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.rng = np.random.default_rng(seed)
        self.lost = 0
        self.n_samples, self.batch, self.frame = engine.n_samples, engine.batch, engine.frame
        self.abilities, self.total_weight = engine.abilities, engine.total_weight

    def samples_at(self, quantiles):
        return self.engine.samples_at(quantiles)

    def assign(self, centers):
        return self.engine.assign(centers)

    def distances(self, centers):
        return self.engine.distances(centers)

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        return self.engine.refine([self._forget(start) for start in starts])

    def seed(self, quantiles: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.engine.seed(quantiles)

    def better_parts(self, first, second, *handles):
        kept = [handle if self.rng.random() < 0.5 else None for handle in handles]
        return self.engine.better_parts(first, second, *kept)

    def _forget(self, start: Order) -> Order:
        if self.rng.random() < 0.5:
            self.lost += start.parent is not None
            return replace(start, parent=None)
        return start


def search(engine: Engine, k: int = 6, strategy: Strategy = PAPER) -> SearchResult:
    settings = replace(SETTINGS, strategy=strategy)
    return solve(engine, k, settings, np.random.default_rng(0))


def deep_search(engine: Engine) -> SearchResult:
    """Search with small clusters, so that there are swaps, and with parts of all parents."""
    return search(engine, 40, replace(DEEP, crossovers=(PARTS, *DEEP.crossovers[1:])))


def samples(dtype, weighted, n=1500, d=4):
    rng = np.random.default_rng(30)
    X = make_samples("normal", n, d, dtype, rng)
    return X, make_weights(n, rng) if weighted else None


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize(
    ("searched", "kind"),
    [(search, "normal"), *((deep_search, kind) for kind in ("normal", "integers", "duplicates"))],
)
def test_a_search_does_not_depend_on_threads_handles_or_memory(
    searched, kind, dtype, weighted
) -> None:
    """Also where samples are as close to one centre as to another.

    Half of the handles are dropped. With room for a single state, almost every handle is forgotten
    before it is used.
    """
    problem = made(700, 3, 6, kind=kind, dtype=dtype, weighted=weighted, seed=31)
    expected = trace(searched(problem.engine("cpu")))
    for n_jobs in (2, 4):
        assert trace(searched(problem.engine("cpu", n_jobs=n_jobs))) == expected
    for seed in (1, 2):
        forgetful = Forgetful(problem.engine("cpu"), seed)
        assert trace(searched(forgetful)) == expected
        assert forgetful.lost > 5
    assert trace(searched(CpuEngine(problem.X, problem.weights, memory_budget=1))) == expected


def test_the_handle_of_another_engine_is_ignored(engine_name) -> None:
    """Over the same number of samples and clusters, where a mix-up would go unnoticed."""
    problem = made(300, 4, 6, weighted=True)
    stranger = replace(problem, X=problem.X[::-1].copy())
    engine, other = (one.engine(engine_name) for one in (problem, stranger))
    start = Order(engine.samples_at((np.arange(6) + 0.5) / 6))
    (stranger,) = other.refine([start])
    (expected,) = engine.refine([start])
    (result,) = engine.refine([replace(start, parent=stranger.handle)])
    assert_same_bits(result, expected)


def test_the_same_engine_can_be_searched_twice(engine_name) -> None:
    """Nothing that an engine remembers of one search leaks into the next."""
    engine = made(200, 4, 6, weighted=True).engine(engine_name)
    first = search(engine)
    search(engine, k=3)
    assert trace(search(engine)) == trace(first)


def test_engines_make_the_same_search_up_to_rounding(engine_name) -> None:
    """The records of the reference, offspring by offspring, as long as there are no clones.

    Copies of a solution may differ in their last bits on one engine and not on the other.
    """
    problem = made(300, 4, 6, weighted=True, seed=30)
    settings = SearchSettings(8, 16, max_offspring=16)
    engines = [problem.engine(name) for name in ("reference", engine_name)]
    engines[1].batch = 1
    one, two = (solve(each, 6, settings, np.random.default_rng(0)).history for each in engines)
    assert not one.column("clone").any()
    for column in ("number", "alpha", "population_size", "accepted", "clone"):
        np.testing.assert_array_equal(one.column(column), two.column(column))
    for column in ("inertia", "best"):
        np.testing.assert_allclose(one.column(column), two.column(column), rtol=1e-9)
