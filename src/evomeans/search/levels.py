"""Searches on samples that found populations, if there are many rows for each cluster.

Each size of a sample is a *level* (docs/background/large-data.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from evomeans.engines.protocol import Abandoned, Ability, Engine, LocalSearch, Order
from evomeans.engines.sampling import Drawing
from evomeans.engines.workers import watched
from evomeans.search.history import OffspringRecord, SearchObserver
from evomeans.search.settings import SearchSettings
from evomeans.typing import FloatArray

# Rows of the smallest sample at least; how many times smaller than its source a sample has to be;
# and how much larger a level is than the one below it, at most.
FEWEST_ROWS, SMALLER, LEVEL_RATIO = 5_000, 8, 4
# Rows of the pilot, whose rough centres decide which rows are drawn: at least, and per cluster.
PILOT, PILOT_PER_CLUSTER = 2_000, 20
# Shares of the time left for drawing, the search on the smallest sample, and each refinement.
DRAWING, SHARE_OF_TIME, REFINING = 0.3, 0.25, 0.5
# Least and most patience of a search on a sample, relative to the longest patience; and the most
# where all rows are searched in rounds of many offspring.
LEAST_PATIENCE, MOST_PATIENCE, MOST_BEFORE_ROUNDS = 1 / 3, 5.0, 20.0
# A search on a sample also ends when it has worked as much as this many iterations on all rows
# without a significant improvement, and its population is alike. There are fewer while founders are
# made, because offspring become alike in any search.
PASSES, PASSES_OF_FOUNDERS = 30, 10
SIGNIFICANT = 1e-3  # relative; smaller improvements differ from sample to sample
ALIKE = 1e-2  # how far from the best the better half of a population is that is alike
# Rounds on a sample at least, if all rows are searched in rounds: one of those costs as much.
LEAST_ROUNDS = 30
# Rows per cluster from which on swaps on all rows take longer than K-means, and too much memory.
SWAPPED_BELOW = 20_000
FEWEST_CARRIED = 4  # solutions that are carried on to larger levels, at least
# Rows up to which a population from a sample is most patient, and how much more than others: its
# offspring have next to no swaps, so improvements are rare.
CHEAP_ROWS, LONGER = 100_000, 2.0
SAMPLE_TOLERANCE = 1e-4  # relative; smaller differences vary from sample to sample


def level_sizes(
    settings: SearchSettings, n_samples: int, n_clusters: int, most: int = sys.maxsize
) -> tuple[int, ...]:
    """Return the sizes of samples, at most ``most``, the largest first; none for few rows."""
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
        size *= LEVEL_RATIO
    return tuple(reversed(sizes))


def draw_samples(
    engine: Engine,
    n_clusters: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    is_over: Callable[[], bool] = lambda: False,
) -> list[Engine]:
    """Return engines over samples of about these sizes, each drawn from the one before.

    Among their rows are those that are far from the others, as seen from the rough centres of a
    pilot sample. Raises Abandoned soon after ``is_over()``.
    """
    seeds = rng.integers(2**63, size=1 + len(sizes)).tolist()
    numbers = rng.random((n_clusters, 2 + int(math.log(n_clusters))))
    few = max(PILOT, PILOT_PER_CLUSTER * n_clusters)
    drawing = Drawing(seeds[0], min(few, sizes[-1]))
    pilot = watched(engine, lambda: engine.subsample(drawing), is_over)
    if pilot.n_samples < n_clusters:
        # Nearly all rows have no weight, or next to none.
        return [pilot]
    (rough,) = watched(pilot, lambda: pilot.refine([Order(pilot.seed(numbers))]), is_over)
    if not rough.is_complete:
        raise Abandoned
    cost = engine.frame.inertia_in_frame(rough.inertia)
    samples: list[Engine] = []
    for seed, size in zip(seeds[1:], sizes, strict=True):
        drawing = Drawing(seed, size, rough.centers, cost)
        source = samples[-1] if samples else engine
        samples.append(watched(source, partial(source.subsample, drawing), is_over))
    return samples


class WorkLimit(SearchObserver):
    """Ends the search on a sample when it costs more than it promises.

    Where clusters overlap, K-means takes many iterations, and all solutions are about as good. Work
    is rows times iterations. A search of all rows would make ``batch`` offspring in a round.
    """

    def __init__(self, n_sampled: int, n_samples: int, batch: int = 1) -> None:
        self.ratio = n_samples / n_sampled
        self.fewest = LEAST_ROUNDS * batch if batch > 1 else 0
        self._best, self._made = math.inf, 0

    def on_solution(self, record: OffspringRecord) -> bool:
        """Return whether the search should end."""
        are_alike = record.population_median <= record.population_best * (1.0 + ALIKE)
        if record.best < self._best * (1.0 - SIGNIFICANT) or not are_alike:
            self._best, self._made = record.best, 0
        self._made += record.n_iter
        if record.number < self.fewest:
            return False
        return self._made > self.ratio * (PASSES_OF_FOUNDERS if record.founder else PASSES)


def refined_on(
    sample: Engine,
    solutions: Sequence[FloatArray],
    is_over: Callable[[], bool] = lambda: False,
) -> list[FloatArray]:
    """Return the better half of solutions after K-means on a larger sample, the best first.

    If it ``is_over()`` before its end, the solutions are returned as they are.
    """
    if is_over():
        return list(solutions)
    solutions = solutions[: max(FEWEST_CARRIED, len(solutions) // 2)]
    local_search = LocalSearch(momentum=Ability.MOMENTUM in sample.abilities)
    starts = [Order(centers, local_search=local_search) for centers in solutions]
    refined = watched(sample, lambda: sample.refine(starts), is_over)
    if not all(one.is_complete for one in refined):
        return list(solutions)
    return [one.centers for one in sorted(refined, key=lambda one: one.inertia)]


def settings_below(
    settings: SearchSettings, n_clusters: int, ratio: float, seconds: float, batch: int = 1
) -> SearchSettings:
    """Return the settings of a search on a sample: of one population, with momentum.

    Single moves lead to better solutions of the sample, but not of all rows, and take longer. There
    are ``ratio`` times as many rows in all, where ``batch`` offspring are made in a round. Some
    ``seconds`` have been spent already.
    """
    left, strategy, wait = None, settings.strategy, settings.longest_wait(n_clusters)
    most = MOST_PATIENCE if batch == 1 else MOST_BEFORE_ROUNDS
    if settings.max_time is not None:
        left = max(1e-3, SHARE_OF_TIME * (settings.max_time - seconds))
    return replace(
        settings,
        patience=max(1, round(min(max(LEAST_PATIENCE * wait, ratio), most * wait))),
        max_time=left,
        target_inertia=None,
        strategy=replace(
            strategy,
            agreement=1,
            tolerance=max(SAMPLE_TOLERANCE, strategy.tolerance),
            single_moves=False,
            momentum_up_to=strategy.moves_up_to if strategy.single_moves else 0.0,
        ),
    )


def wait_of_sampled(settings: SearchSettings, n_clusters: int, n_samples: int) -> int:
    """Return how many offspring in a row have to fail before a population from a sample settles.

    That its best is a founder does not tell that offspring improve soon or not at all.
    """
    share = min(1.0, CHEAP_ROWS / n_samples)
    return round(LONGER * share * settings.longest_wait(n_clusters))
