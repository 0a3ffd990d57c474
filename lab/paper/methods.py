"""The methods that are compared: ours, its baselines, and how their results become rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans import HGMeans
from evomeans.estimators.searching import PAPER_FAST
from lab.baselines import (
    MSDCA,
    SAGA,
    BreathingKMeans,
    DCClust,
    DCDBundle,
    GlobalKMeans,
    LMBMClust,
    ModifiedGlobalKMeans,
    MultiStartKMeans,
    MultiStartModifiedGlobalKMeans,
    RandomSwap,
)
from lab.measure import timed

HG_MEANS, HG_FAST, HG_DEEP = "HG-means", "HG-means fast", "HG-means deep"
KMEANS, KMEANS_PLUS = "K-means", "K-means++"
LMBM, LMBM_DESCRIBED = "LMBM-Clust", "LMBM-Clust described"
_LOADED: set[str] = set()


@dataclass(frozen=True)
class Result:
    """What a method reached on a problem.

    Parameters
    ----------
    method : str
        As the paper calls it.
    m : int
        Number of clusters.
    inertia : float
    cpu_s : float
        CPU seconds that it took to get there.
    model : object, optional
        The fitted estimator.
    """

    method: str
    m: int
    inertia: float
    cpu_s: float
    model: Any = None


@dataclass(frozen=True)
class Method:
    """A method with its settings.

    Parameters
    ----------
    name : str
        As the paper calls it.
    make : callable
        From the number of clusters and the seed to an estimator.
    read : callable
        From the method, the fitted estimator, the numbers of clusters and the CPU seconds of the
        fit to results.
    is_path : bool
        Whether one fit gives the solutions for all smaller numbers of clusters as well.
    is_random : bool
        Whether seeds matter.
    """

    name: str
    make: Callable[[int, int], Any]
    read: Callable[[Method, Any, Sequence[int], float], list[Result]]
    is_path: bool = False
    is_random: bool = True

    def run(self, X: NDArray[np.float64], clusters: Sequence[int], seed: int) -> list[Result]:
        """Fit once, for the largest of the numbers of clusters, and return a result for each."""
        self._load_kernels()
        model, seconds = timed(lambda: self.make(max(clusters), seed).fit(X))
        return self.read(self, model, clusters, seconds)

    def _load_kernels(self) -> None:
        """Let a process compile or load the kernels of the method before the first measured fit."""
        if self.name not in _LOADED:
            self.make(2, 0).fit(np.random.default_rng(0).random((100, 2)))
            _LOADED.add(self.name)


def whole(method: Method, model: Any, clusters: Sequence[int], seconds: float) -> list[Result]:
    """Read a fit as one result."""
    [m] = clusters
    return [Result(method.name, m, model.inertia_, seconds, model)]


def runs(method: Method, model: Any, clusters: Sequence[int], seconds: float) -> list[Result]:
    """Read a multi-start as two results: the average run, and the best of all."""
    [m] = clusters
    single = statistics.fmean(record.inertia for record in model.history_)
    count = len(model.history_)
    return [
        Result(method.name, m, single, seconds / count),
        Result(repeated(method.name), m, model.inertia_, seconds, model),
    ]


def path(method: Method, model: Any, clusters: Sequence[int], seconds: float) -> list[Result]:
    """Read an incremental method as a result for every number of clusters that is wanted."""
    steps = {step.n_clusters: step for step in model.path_}
    # Steps are timed by the clock on the wall.
    cpu_per_second = seconds / steps[max(clusters)].seconds
    return [
        Result(method.name, m, steps[m].inertia, steps[m].seconds * cpu_per_second)
        for m in clusters
    ]


def repeated(name: str) -> str:
    """Return the name of the best of many runs of a method."""
    return f"{name} repeated"


def hg_means(name: str = HG_MEANS, **parameters: Any) -> Method:
    """HG-means as published, by default with the paper's standard setting."""
    make = partial(HGMeans, **{"strategy": "paper", **parameters})
    return Method(name, partial(_with_seed, make), whole)


def hg_deep() -> Method:
    """HG-means as the library does it by default."""
    return hg_means(HG_DEEP, strategy="deep")


def _with_seed(make: Callable[..., Any], m: int, seed: int) -> Any:
    return make(m, random_state=seed)


def _without_seed(make: Callable[..., Any], m: int, seed: int) -> Any:
    return make(m)


def hg_fast() -> Method:
    """HG-means with the paper's fast setting."""
    return hg_means(HG_FAST, **PAPER_FAST)


def multi_start(init: str, n_runs: int) -> Method:
    """K-means from many random or k-means++ starts: the average run, and the best of all."""
    name = KMEANS if init == "random" else KMEANS_PLUS
    return Method(name, _multi_start(init, n_runs), runs)


def best_of(init: str, n_runs: int) -> Method:
    """Only the best of many runs; of one run, that run."""
    name = KMEANS if init == "random" else KMEANS_PLUS
    return Method(name if n_runs == 1 else repeated(name), _multi_start(init, n_runs), whole)


def _multi_start(init: str, n_runs: int) -> Callable[[int, int], Any]:
    return partial(_with_seed, partial(MultiStartKMeans, init=init, n_runs=n_runs))


def saga(**parameters: Any) -> Method:
    """Return the self-adaptive genetic algorithm."""
    return Method("SAGA", partial(_with_seed, partial(SAGA, **parameters)), whole)


def breathing() -> Method:
    """Breathing k-means with the settings of its author's first version."""
    return Method("breathing k-means", partial(_with_seed, BreathingKMeans), whole)


def random_swap(n_swaps: int) -> Method:
    """Random swap."""
    make = partial(RandomSwap, n_swaps=n_swaps)
    return Method("random swap", partial(_with_seed, make), whole)


def incremental() -> list[Method]:
    """Return the methods that add one centre at a time by K-means."""
    classes = {
        "GKM": GlobalKMeans,
        "MGKM": ModifiedGlobalKMeans,
        "MS-MGKM": MultiStartModifiedGlobalKMeans,
    }
    return [_path_method(name, kind) for name, kind in classes.items()]


def nonsmooth() -> list[Method]:
    """Return the methods that add one centre at a time by an optimiser for DC functions."""
    classes = {"DCClust": DCClust, "MS-DCA": MSDCA, "DCD-Bundle": DCDBundle}
    return [_path_method(name, kind) for name, kind in classes.items()]


def lmbm() -> list[Method]:
    """Return LMBM-Clust as its program is published, and as it is described."""
    described = partial(LMBMClust, duplicates="described")
    return [_path_method(LMBM, LMBMClust), _path_method(LMBM_DESCRIBED, described)]


def _path_method(name: str, make: Callable[..., Any]) -> Method:
    return Method(name, partial(_without_seed, make), path, is_path=True, is_random=False)
