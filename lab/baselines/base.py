"""The interface of scikit-learn around a search, which all baselines share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from evomeans.docstrings import described_like
from evomeans.engines import is_dask, prepare_kernels
from evomeans.engines.frame import Resolution
from evomeans.engines.protocol import Ability, Refinement
from evomeans.estimators.fitted import FittedCenters
from evomeans.estimators.parameters import (
    check_engine,
    check_int,
    check_random_source,
    check_real,
    check_thread_count,
    generator_from,
)
from evomeans.estimators.solution import canonical_solution, check_resolved
from evomeans.estimators.validation import check_cluster_count, check_sample_weight, check_samples
from evomeans.search.settings import check_limits
from evomeans.search.stopping import DeferredInterrupt, StopReason
from evomeans.typing import FloatArray
from lab.baselines.engine import ENGINES, BaselineEngine
from lab.baselines.engines import create_engine
from lab.baselines.pursuit import RunRecord, pursue

Found = tuple[Refinement, dict[str, Any]]
"""The best solution of a search, and the fitted attributes that only this method has."""


@dataclass(eq=False, repr=False)
class Baseline(FittedCenters):
    """A clusterer that lacks only its search; subclasses document only what they add.

    Parameters
    ----------
    engine : {"auto", "cpu", "reference"}, default="auto"
        What holds the samples and runs K-means, see :class:`~evomeans.HGMeans`.
    n_jobs : int, default=None
        Threads to use, as for :class:`~evomeans.HGMeans`. The result does not depend on it.

    Attributes
    ----------
    certificate_ : Certificate
        What :meth:`certify` has proven about the last fit, once it was called.
    """

    n_clusters: int = 8
    _: KW_ONLY
    engine: str = "auto"
    n_jobs: int | None = None
    n_iter_: int = field(init=False)

    @described_like(FittedCenters.fit)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X``.

        Notes
        -----
        Ctrl-C ends the search. A method with ``history_`` keeps its best solution and warns. A
        method with ``path_`` raises KeyboardInterrupt and leaves the estimator as it was, since
        half a path is not an answer.
        """
        engine_name = check_engine(self.engine, among=ENGINES)
        if is_dask(X):
            raise ValueError(
                "X is a Dask collection, which only HGMeans with engine='dask' can hold. "
                "Pass X.compute() if it fits into memory."
            )
        n_threads = check_thread_count(self.n_jobs)
        self._check_parameters()
        X, features = check_samples(self, X)
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, X.shape[0])
        prepare_kernels(engine_name, X, self.n_clusters, self._abilities())

        # Ctrl-C ends the search, but neither loses what it found nor leaves half a fit.
        with DeferredInterrupt() as interrupt:
            engine = create_engine(engine_name, X, sample_weight, n_jobs=n_threads)
            best, attributes = self._search(engine, interrupt)
            solution = canonical_solution(engine, best.centers, X.dtype)
            check_resolved(engine, Resolution(X, sample_weight), solution)
            self._keep_solution(features, engine.frame, solution)
            self.__dict__.update(attributes)
        if attributes.get("stop_reason_") is StopReason.INTERRUPTED:
            text = f"fit was interrupted after {self.n_iter_} solutions; the best is kept."
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        if solution.n_distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({solution.n_distinct}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check_parameters(self) -> None:
        """Check all parameters for which no samples are needed."""
        check_int("n_clusters", self.n_clusters, at_least=1)

    def _abilities(self) -> frozenset[Ability]:
        """Return what the search uses beyond K-means."""
        return frozenset()

    @abstractmethod
    def _search(self, engine: BaselineEngine, interrupt: DeferredInterrupt) -> Found:
        """Find a solution and the attributes that belong to it, without changing the estimator."""


@dataclass(eq=False, repr=False, kw_only=True)
class AnytimeBaseline(Baseline):
    """A baseline that makes one complete solution after another and can stop after each.

    Parameters
    ----------
    max_time : float, default=None
        Stop after this many seconds. Results then depend on the speed of the machine.
    target_inertia : float, default=None
        Stop as soon as a solution is at least this good.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the result reproducible.

    Attributes
    ----------
    n_iter_ : int
        The number of solutions made.
    history_ : tuple of RunRecord
        ``number``, ``inertia``, ``best``, ``n_iter`` and ``seconds`` of every solution made.
    stop_reason_ : StopReason
        Why the search ended, a str: "max_offspring" if it ran to its end, "max_time",
        "target_inertia", "interrupted", or "proven_optimal" if the inertia is zero.
    """

    max_time: float | None = None
    target_inertia: float | None = None
    random_state: Any = None
    history_: tuple[RunRecord, ...] = field(init=False)
    stop_reason_: StopReason = field(init=False)

    @abstractmethod
    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make complete solutions, one after another.

        Call this with an engine to watch the search or to measure it. Parameters are not checked.
        """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_random_source(self.random_state)
        check_limits(
            check_real("max_time", self.max_time),
            check_real("target_inertia", self.target_inertia),
        )

    def _search(self, engine: BaselineEngine, interrupt: DeferredInterrupt) -> Found:
        rng = generator_from(check_random_source(self.random_state))
        return self._pursue(self.solutions(engine, rng), interrupt)

    def _pursue(self, solutions: Iterator[Refinement], interrupt: DeferredInterrupt) -> Found:
        """Follow the solutions to their end or up to a limit."""
        best, history, reason = pursue(solutions, interrupt, self.max_time, self.target_inertia)
        return best, {"history_": history, "n_iter_": len(history), "stop_reason_": reason}


def random_samples(engine: BaselineEngine, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Draw samples to start from, heavier ones more often.

    They are drawn from distinct slots of equal weight, so that a sample comes twice only if it
    fills two slots.
    """
    slots = rng.choice(engine.n_samples, n_clusters, replace=False)
    return engine.samples_at((slots + 0.5) / engine.n_samples)
