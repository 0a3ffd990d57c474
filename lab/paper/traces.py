"""The way of a method: its best inertia against CPU time, from the first solution on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evomeans.engines import create_engine
from evomeans.estimators.searching import PAPER_FAST
from evomeans.search import DEEP, SearchSettings, solve
from lab.baselines import SAGA, BreathingKMeans, FLSpp, MultiStartKMeans, RandomSwap
from lab.baselines.base import AnytimeBaseline
from lab.baselines.engines import create_engine as baseline_engine
from lab.paper.methods import HG_DEEP, HG_FAST, HG_MEANS, KMEANS, KMEANS_PLUS, repeated

_LOADED: set[str] = set()
Samples = NDArray[np.float64]
Point = tuple[float, float]
"""CPU seconds since the method was called, and the inertia of a solution it had then."""


@dataclass(frozen=True)
class Tracer:
    """A method that can be watched.

    Parameters
    ----------
    name : str
    trace : callable
        From samples, clusters, seed and CPU seconds to points in the order of time. It ends with
        the method itself, or with the first point after that many seconds.
    package : str, optional
        That must be installed for it.
    """

    name: str
    trace: Callable[[Samples, int, int, float], Iterator[Point]]
    package: str | None = None

    def load_kernels(self) -> None:
        """Let a process import and compile what the method needs before it is watched."""
        if self.name not in _LOADED:
            next(self.trace(np.random.default_rng(0).random((100, 2)), 2, 0, 0.0))
            _LOADED.add(self.name)

    @property
    def is_installed(self) -> bool:
        """Whether the method can be run here."""
        return self.package is None or find_spec(self.package) is not None


def trace_search(
    settings: SearchSettings, X: Samples, m: int, seed: int, budget: float
) -> Iterator[Point]:
    """Follow HG-means to its own end."""
    began = time.process_time()
    engine = create_engine("cpu", X, None)
    prepared = time.process_time() - began
    limited = replace(settings, max_time=max(budget - prepared, 1e-9))
    result = solve(engine, m, limited, np.random.default_rng(seed), clock=time.process_time)
    for record in result.history:
        yield prepared + record.seconds, record.best


def trace_baseline(
    make: Callable[..., AnytimeBaseline], X: Samples, m: int, seed: int, budget: float
) -> Iterator[Point]:
    """Follow a baseline; one that ends before the budget does begins again with new random numbers.

    That is what its user would do with the time.
    """
    began = time.process_time()
    engine = baseline_engine("cpu", X, None)
    rng = np.random.default_rng(seed)
    again = chain.from_iterable(make(m).solutions(engine, rng) for _ in count())
    for solution in again:
        seconds = time.process_time() - began
        yield seconds, solution.inertia
        if seconds > budget:
            return


def trace_package(
    fit: Callable[[Samples, int, int], Any], X: Samples, m: int, seed: int, budget: float
) -> Iterator[Point]:
    """Follow repeated fits of somebody else's estimator on one thread."""
    began = time.process_time()
    with threadpool_limits(1):
        for run in count():
            inertia = fit(X, m, 1000 * seed + run).inertia_
            seconds = time.process_time() - began
            yield seconds, inertia
            if seconds > budget:
                return


def fit_bkmeans(X: Samples, m: int, seed: int) -> Any:
    """Breathing k-means by its author."""
    from bkmeans import BKMeans

    return BKMeans(n_clusters=m, random_state=seed).fit(X)


def fit_flspp(X: Samples, m: int, seed: int) -> Any:
    """Foresight local search++ by its authors."""
    from flspp import FLSpp

    return FLSpp(n_clusters=m, random_state=seed).fit(X)


def _fast_settings() -> SearchSettings:
    return SearchSettings(
        min_population=PAPER_FAST["min_population"],
        max_population=PAPER_FAST["max_population"],
        max_offspring=PAPER_FAST["max_offspring"],
        patience=PAPER_FAST["n_iter_no_change"],
    )


TRACERS = (
    Tracer(HG_DEEP, partial(trace_search, SearchSettings(strategy=DEEP))),
    Tracer(HG_MEANS, partial(trace_search, SearchSettings())),
    Tracer(HG_FAST, partial(trace_search, _fast_settings())),
    Tracer(repeated(KMEANS), partial(trace_baseline, partial(MultiStartKMeans, init="random"))),
    Tracer(
        repeated(KMEANS_PLUS), partial(trace_baseline, partial(MultiStartKMeans, init="k-means++"))
    ),
    Tracer("breathing k-means", partial(trace_baseline, BreathingKMeans)),
    Tracer("FLS++", partial(trace_baseline, FLSpp)),
    Tracer("random swap", partial(trace_baseline, RandomSwap)),
    Tracer("SAGA", partial(trace_baseline, SAGA)),
    Tracer("bkmeans", partial(trace_package, fit_bkmeans), "bkmeans"),
    Tracer("flspp", partial(trace_package, fit_flspp), "flspp"),
)
