"""The methods that race: HG-means in three settings, and every baseline of evomeans.

A baseline joins by being in ``lab.baselines.__all__``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from evomeans.engines import create_engine
from evomeans.engines.protocol import Order
from evomeans.estimators.searching import PAPER_FAST
from evomeans.search import DEEP, PAPER, SearchSettings, solve
from lab import baselines
from lab.baselines.engines import create_engine as baseline_engine
from lab.paper.methods import HG_DEEP, HG_FAST, HG_MEANS, KMEANS, KMEANS_PLUS
from lab.paper.traces import Point, Samples, fit_bkmeans, fit_flspp
from lab.rivals.clock import Clock

# Longer than any search takes; settings do not accept infinity.
LONGEST = 1e9

Run = Callable[[Any, int, int, Clock], Iterator[Point]]
"""From samples, clusters, seed and clock to the solutions of one run, in the order of time."""

NAMES = {
    "BreathingKMeans": "breathing k-means",
    "DRSMeans": "DRS-means",
    "FLSpp": "FLS++",
    "BigMeans": "Big-means",
    "GlobalKMeans": "GKM",
    "GlobalKMeansPP": "global k-means++",
    "ModifiedGlobalKMeans": "MGKM",
    "MultiStartModifiedGlobalKMeans": "MS-MGKM",
    "RandomSwap": "random swap",
    "RecombinatorKMeans": "recombinator k-means",
    "DCDBundle": "DCD-Bundle",
    "LMBMClust": "LMBM-Clust",
    "MSDCA": "MS-DCA",
}
"""Names of classes in tables and figures, where they differ."""
PACKAGES = {"bkmeans": fit_bkmeans, "flspp": fit_flspp}
"""Programs of the authors, which race if they are installed. There speed counts as well."""


@dataclass(frozen=True)
class Contestant:
    """A method with its settings.

    Parameters
    ----------
    name : str
    run : callable
        From samples, clusters, seed and clock to the points of one run. A run may end itself, or go
        on after the time is up; nobody asks it for more then.
    is_random : bool
        Whether another seed may give another result.
    """

    name: str
    run: Run
    is_random: bool = True


def search_run(
    settings: SearchSettings, X: Samples, m: int, seed: int, clock: Clock
) -> Iterator[Point]:
    """Run HG-means once."""
    engine = create_engine("cpu", X, None)
    began = clock.seconds
    limited = replace(settings, max_time=max(min(clock.left, LONGEST), 1e-9))
    result = solve(engine, m, limited, np.random.default_rng(seed), clock=clock.read)
    for record in result.history:
        yield began + record.seconds, record.best


def stream_run(
    make: Callable[..., Any], X: Samples, m: int, seed: int, clock: Clock
) -> Iterator[Point]:
    """Follow the solutions of a baseline; at the end, K-means completes the best of them.

    If time is up before that, the completion counts as if it had taken none: a fit would do it too.
    """
    engine = baseline_engine("cpu", X, None)
    best, found = None, 0.0
    for solution in make(m).solutions(engine, np.random.default_rng(seed)):
        seconds = clock.seconds
        yield seconds, solution.inertia
        if best is None or (solution.inertia < best.inertia and seconds <= clock.budget):
            best, found = solution, seconds
        if seconds >= clock.budget:
            break
    assert best is not None
    (complete,) = engine.refine([Order(best.centers, parent=best.handle)])
    yield min(clock.seconds, max(found, clock.budget)), complete.inertia


def fit_run(
    make: Callable[..., Any], X: Samples, m: int, seed: int, clock: Clock
) -> Iterator[Point]:
    """Fit a method that has no solution with all clusters before its end."""
    model = make(m)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    # Fitted before the clock is read.
    inertia = model.fit(X).inertia_
    yield clock.seconds, inertia


def package_run(
    fit: Callable[[Samples, int, int], Any], X: Samples, m: int, seed: int, clock: Clock
) -> Iterator[Point]:
    """Fit an estimator of another package."""
    inertia = fit(X, m, seed).inertia_
    yield clock.seconds, inertia


def contestants() -> dict[str, Contestant]:
    """Return all methods by name, ours first."""
    fast = SearchSettings(
        PAPER_FAST["min_population"],
        PAPER_FAST["max_population"],
        PAPER_FAST["max_offspring"],
        PAPER_FAST["n_iter_no_change"],
        strategy=PAPER,
    )
    settings = {
        HG_MEANS: SearchSettings(strategy=PAPER),
        HG_FAST: fast,
        HG_DEEP: SearchSettings(strategy=DEEP),
    }
    found = [Contestant(name, partial(search_run, one)) for name, one in settings.items()]
    for name in baselines.__all__:
        found += _variants(name, getattr(baselines, name))
    for package, fit in PACKAGES.items():
        if find_spec(package) is not None:
            found.append(Contestant(f"{package} (package)", partial(package_run, fit)))
    return {one.name: one for one in found}


def _variants(name: str, kind: type) -> Iterator[Contestant]:
    """Yield a baseline with the settings in which it races."""
    variants: dict[str, dict[str, Any]] = {NAMES.get(name, name): {}}
    if name == "MultiStartKMeans":
        variants = {KMEANS: {"init": "random"}, KMEANS_PLUS: {"init": "k-means++"}}
    for title, parameters in variants.items():
        make = partial(kind, **parameters)
        is_random = "random_state" in make().get_params()
        run = stream_run if hasattr(kind, "solutions") else fit_run
        yield Contestant(title, partial(run, make), is_random)
