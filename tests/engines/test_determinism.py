"""A whole search gives the same bits however its engine works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from evomeans.engines import Engine, Order, Refinement
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import Ability
from evomeans.search import DEEP, PAPER, Crossing, SearchResult, SearchSettings, Strategy, solve
from evomeans.search.crossover import partition_crossover
from oracles import assert_same_bits, trace
from problems import made

SETTINGS = SearchSettings(4, 8, max_offspring=40)
PARTS = Crossing(partition_crossover, needs=frozenset({Ability.PARTS}))


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
