"""SAGA: the self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen (2003)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evomeans.baselines.base import AnytimeBaseline
from evomeans.baselines.saga.evolution import Evolution, Settings
from evomeans.baselines.saga.strategy import Strategy
from evomeans.engines import Engine
from evomeans.engines.protocol import Refinement
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.validation import check_int


class SAGA(AnytimeBaseline):
    """todo."""

    strategies_: tuple[Strategy, ...]
    _evolution: Evolution

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        population_size: int = 45,
        n_generations: int = 50,
        kmeans_iterations: int = 2,
        max_time: float | None = None,
        target_inertia: float | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.population_size = population_size
        self.n_generations = n_generations
        self.kmeans_iterations = kmeans_iterations
        self.max_time = max_time
        self.target_inertia = target_inertia
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _settings(self) -> Settings:
        return Settings(
            self.n_clusters,
            check_int("population_size", self.population_size, at_least=3),
            check_int("n_generations", self.n_generations, at_least=1),
            check_int("kmeans_iterations", self.kmeans_iterations, at_least=0),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._settings()

    def solutions(self, engine: Engine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make complete solutions, one after the other; parameters have been checked."""
        self._evolution = Evolution(engine, self._settings(), rng)
        return self._evolution.run()

    def _search(
        self, engine: Engine, rng: np.random.Generator, interrupt: DeferredInterrupt
    ) -> tuple[Refinement, dict[str, Any]]:
        best, found = super()._search(engine, rng, interrupt)
        return best, {**found, "strategies_": self._evolution.strategies()}
