"""Where a search begins: on samples of the rows, if there are many rows for each cluster.

A few hundred rows per cluster tell nearly all about where centres belong, and an offspring that is
refined on them costs a fraction of one that is refined on all. So a population is founded by a
whole search on a *sample*. Its best solutions are refined on all rows, and the search continues
there. If there are very many rows, these solutions are first refined on larger samples, one after
the other. Each size is a *level*.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evomeans.engines.protocol import Ability, Engine, FloatArray, LocalSearch, Start
from evomeans.engines.sampling import Drawing
from evomeans.search.individual import CLONE_TOLERANCE, Individual
from evomeans.search.settings import SearchSettings

# Rows of the smallest sample, whatever the number of clusters: fewer are not worth the trouble.
FEWEST_ROWS = 5_000
# A sample pays only if it is this many times smaller than what it is drawn from.
SMALLER = 8
# How much larger a level is than the one below it, at most.
STEP = 16
# Rows per cluster, and rows at least, of the pilot sample from which the rough centres come that
# a sample is drawn by.
PILOT_PER_CLUSTER, PILOT = 20, 2_000
# Of the time that is left, what the search on the smallest sample may take.
SHARE_OF_TIME = 0.25


def level_sizes(
    settings: SearchSettings, n_samples: int, n_clusters: int, most: int = sys.maxsize
) -> tuple[int, ...]:
    """Return the sizes of samples, the largest first; none if there are few rows.

    Parameters
    ----------
    settings : SearchSettings
    n_samples, n_clusters : int
        All rows, and clusters.
    most : int
        Rows that a sample may have.
    """
    smallest = settings.subsample
    if smallest is None:
        return ()
    if smallest == "auto":
        per_cluster = settings.strategy.sample_per_cluster
        smallest = max(FEWEST_ROWS, per_cluster * n_clusters)
        if not per_cluster or SMALLER * smallest > n_samples:
            return ()
    sizes: list[int] = []
    size = min(int(smallest), most)
    if size < 2 * n_clusters:
        return ()
    while size < n_samples and (not sizes or (SMALLER * size <= n_samples and size <= most)):
        sizes.append(size)
        size *= STEP
    return tuple(reversed(sizes))


def draw_samples(
    engine: Engine, n_clusters: int, sizes: Sequence[int], rng: np.random.Generator
) -> list[Engine]:
    """Return engines over samples of about these sizes, each drawn from the one before."""
    samples: list[Engine] = []
    for size in sizes:
        samples.append(draw_sample(samples[-1] if samples else engine, n_clusters, size, rng))
    return samples


def draw_sample(engine: Engine, n_clusters: int, size: int, rng: np.random.Generator) -> Engine:
    """Return an engine over about ``size`` rows, among them those that are far from the others."""
    seeds = rng.integers(2**63, size=2).tolist()
    numbers = rng.random((n_clusters, 2 + int(math.log(n_clusters))))
    few = max(PILOT, PILOT_PER_CLUSTER * n_clusters)
    pilot = engine.subsample(Drawing(seeds[0], min(few, size)))
    if pilot.n_samples < n_clusters:
        # Nearly all rows have no weight, or next to none.
        return pilot
    (rough,) = pilot.refine([Start(pilot.seed(numbers))])
    cost = engine.frame.inertia_in_frame(rough.inertia)
    return engine.subsample(Drawing(seeds[1], size, rough.centers, cost))


def refined_on(sample: Engine, solutions: Sequence[FloatArray]) -> list[FloatArray]:
    """Return solutions of a smaller sample after K-means on a larger one, the best first.

    That is worth less than a run on all rows for all of them together. It tells better which of
    them is the best, and leaves less to do for K-means on all rows.
    """
    local_search = LocalSearch(momentum=Ability.MOMENTUM in sample.abilities)
    refined = sample.refine([Start(centers, local_search=local_search) for centers in solutions])
    return [one.centers for one in sorted(refined, key=lambda one: one.inertia)]


def settings_below(settings: SearchSettings, n_clusters: int, seconds: float) -> SearchSettings:
    """Return the settings of a search on a sample: of one population, which waits half as long.

    ``seconds`` have been spent already.
    """
    left = None
    if settings.max_time is not None:
        left = max(1e-3, SHARE_OF_TIME * (settings.max_time - seconds))
    return replace(
        settings,
        patience=max(1, settings.longest_wait(n_clusters) // 2),
        max_time=left,
        target_inertia=None,
        strategy=replace(settings.strategy, agreement=1),
    )


def best_solutions(population: tuple[Individual, ...], count: int) -> list[FloatArray]:
    """Return the centres of the best members of a population, no two of them clones."""
    chosen: list[Individual] = []
    for member in sorted(population, key=lambda one: one.inertia):
        if not chosen or member.inertia > chosen[-1].inertia * (1.0 + CLONE_TOLERANCE):
            chosen.append(member)
    return [member.centers for member in chosen[:count]]
