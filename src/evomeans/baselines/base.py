"""What the rivals of HG-means have in common: scikit-learn's interface around a search."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from evomeans.baselines.pursuit import Limits, RunRecord, pursue
from evomeans.engines import Engine, create_engine, is_dask
from evomeans.engines.protocol import FloatArray, Refinement
from evomeans.estimators.fitted import FittedCenters
from evomeans.estimators.parameters import (
    check_engine,
    check_int,
    check_random_source,
    check_real,
    check_thread_count,
    generator_from,
)
from evomeans.estimators.solution import canonical_solution
from evomeans.estimators.validation import (
    check_cluster_count,
    check_resolved,
    check_sample_weight,
    check_samples,
)
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.stopping import StopReason

ENGINES = ("auto", "cpu", "reference")
"""The engines that answer all that rivals ask."""


class Baseline(FittedCenters):
    """A clusterer of which only its own parameters and its search are missing."""

    random_state: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample. None means equal weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_int("n_clusters", self.n_clusters, at_least=1)
        engine_name = check_engine(self.engine, among=ENGINES)
        if is_dask(X):
            raise ValueError(
                "X is a Dask collection, which only HGMeans with engine='dask' can hold. "
                "Pass X.compute() if it fits into memory."
            )
        n_threads = check_thread_count(self.n_jobs)
        random_source = check_random_source(self.random_state)
        self._check_parameters()
        X, features = check_samples(self, X)
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, X.shape[0])
        rng = generator_from(random_source)

        # Ctrl-C ends the search, but neither loses what it found nor leaves half a fit.
        with DeferredInterrupt() as interrupt:
            engine = create_engine(engine_name, X, sample_weight, n_jobs=n_threads)
            check_resolved(engine_name, engine, X, sample_weight, self.n_clusters)
            best, found = self._search(engine, rng, interrupt)
            solution = canonical_solution(engine, best.centers, X.dtype)
            self._keep_solution(features, engine.frame, solution)
            for name, value in found.items():
                setattr(self, name, value)
        self._warn_of_interruption()
        self._warn_of_duplicates(solution, stacklevel=3)
        return self

    def _warn_of_interruption(self) -> None:
        """Say that the answer is not what it might have been, if so; called by fit."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check the parameters that only this method has."""

    @abstractmethod
    def _search(
        self, engine: Engine, rng: np.random.Generator, interrupt: DeferredInterrupt
    ) -> tuple[Refinement, dict[str, Any]]:
        """Return the best solution found, and the fitted attributes that only this method has."""


class AnytimeBaseline(Baseline):
    """A method that makes one complete solution after the other and can stop after each.

    Attributes
    ----------
    history_ : tuple of RunRecord
        One record per solution made.
    n_iter_ : int
        Solutions made.
    stop_reason_ : StopReason
        Why the search ended.
    """

    max_time: float | None
    target_inertia: float | None
    history_: tuple[RunRecord, ...]
    n_iter_: int
    stop_reason_: StopReason

    @abstractmethod
    def solutions(self, engine: Engine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make complete solutions, one after the other; parameters have been checked.

        Whoever wants to watch the search, or to measure it, can call this with an engine.
        """

    def _limits(self) -> Limits:
        return Limits(
            check_real("max_time", self.max_time),
            check_real("target_inertia", self.target_inertia),
        )

    def _check_parameters(self) -> None:
        self._limits()

    def _search(
        self, engine: Engine, rng: np.random.Generator, interrupt: DeferredInterrupt
    ) -> tuple[Refinement, dict[str, Any]]:
        pursuit = pursue(self.solutions(engine, rng), self._limits(), interrupt)
        found = {
            "history_": pursuit.history,
            "n_iter_": len(pursuit.history),
            "stop_reason_": pursuit.stop_reason,
        }
        return pursuit.best, found

    def _warn_of_interruption(self) -> None:
        if self.stop_reason_ is StopReason.INTERRUPTED:
            warnings.warn(
                f"fit was interrupted after {self.n_iter_} solutions; the best is kept.",
                RuntimeWarning,
                stacklevel=3,
            )


def random_samples(engine: Engine, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Choose samples to begin at, heavier ones more often.

    They are at distinct slots of equal weight: distinct samples, unless one fills two slots.
    """
    slots = rng.choice(engine.n_samples, n_clusters, replace=False)
    return engine.samples_at((slots + 0.5) / engine.n_samples)
