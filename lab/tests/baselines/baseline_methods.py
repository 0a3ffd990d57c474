"""Every baseline in a setting that is quick, and how to compare two fits."""

from __future__ import annotations

from typing import Any

from lab.baselines import (
    MSDCA,
    SAGA,
    BigMeans,
    BreathingKMeans,
    DCClust,
    DCDBundle,
    DRSMeans,
    FLSpp,
    GlobalKMeans,
    GlobalKMeansPP,
    LMBMClust,
    MDEClust,
    ModifiedGlobalKMeans,
    MultiStartKMeans,
    MultiStartModifiedGlobalKMeans,
    RandomSwap,
    RecombinatorKMeans,
    Smartigan,
)

ANYTIME = {
    "random": MultiStartKMeans(6, n_runs=15, random_state=1),
    "k-means++": MultiStartKMeans(6, init="k-means++", n_runs=15, random_state=1),
    "random swap": RandomSwap(6, n_swaps=40, random_state=1),
    "breathing": BreathingKMeans(6, random_state=1),
    "SAGA": SAGA(6, population_size=10, n_generations=6, random_state=1),
    "elitist SAGA": SAGA(6, population_size=10, n_generations=6, reading="elitist", random_state=1),
    "MDEClust": MDEClust(6, population_size=6, n_iter_no_change=20, random_state=1),
    "recombinator": RecombinatorKMeans(6, population_size=4, n_generations=6, random_state=1),
    "FLS++": FLSpp(6, random_state=1),
    "DRS-means": DRSMeans(6, n_swaps=40, random_state=1),
    "Smartigan": Smartigan(6, n_runs=4, random_state=1),
    "Big-means": BigMeans(6, chunk_size=40, n_chunks=10, random_state=1),
}
INCREMENTAL = {
    "fast": GlobalKMeans(6),
    "full": GlobalKMeans(6, algorithm="full"),
    "modified": ModifiedGlobalKMeans(6),
    "multi-start": MultiStartModifiedGlobalKMeans(6),
}
NONSMOOTH = {
    # With one start: this one takes its time.
    "DCClust": DCClust(6, gamma2=1.0),
    "MS-DCA": MSDCA(6),
    "DCD-Bundle": DCDBundle(6),
    "LMBM-Clust": LMBMClust(6),
}
INCREMENTAL |= NONSMOOTH
METHODS = {
    **ANYTIME,
    **INCREMENTAL,
    "global++": GlobalKMeansPP(6, n_candidates=5, random_state=1),
}


def inertias(model: Any) -> list[float]:
    """Return the inertias of all solutions that a fit shows."""
    steps = model.history_ if hasattr(model, "history_") else model.path_
    return [step.inertia for step in steps]


def bits(model: Any) -> tuple[object, ...]:
    """Return everything that was found, to the last bit, but not how long it took."""
    found = [model.cluster_centers_.tobytes(), model.labels_.tobytes(), model.inertia_]
    found += [model.n_iter_, inertias(model), getattr(model, "strategies_", ())]
    if hasattr(model, "history_"):
        found += [model.stop_reason_, [(r.number, r.best, r.n_iter) for r in model.history_]]
    else:
        found += [[(s.n_runs, s.cluster_centers.tobytes()) for s in model.path_]]
    return tuple(found)
