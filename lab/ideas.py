"""Ideas of newer rivals as operators of the deep strategy, at equal CPU time.

``python -m lab.ideas`` runs the strategy of the paper to its own end on every set-up and
with every seed, then the deep strategy and variants of it, each in ``--share`` of that CPU time. In
a variant, a part of the offspring is made by an operator that a rival suggests:

  thresholds   matching crossover, then passes of single moves under a falling threshold (Smartigan)
  shaken       no crossover: such passes perturb the first parent, and no centre is relocated
  pooled       k-means++ draws from the centres of both parents (recombinator K-means)
  differences  a parent plus a share of the difference of two others (MDEClust)

Gaps are to the lowest value known. The p-value is that of the Wilcoxon test of the paired gaps of a
variant and of the deep strategy. Rows are kept as in ``lab.rivals``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evomeans.search import DEEP, Crossing, Individual, SearchSettings, Strategy
from evomeans.search.crossover import Breeding, Child, squared_matching_crossover
from lab.baselines.mdeclust import difference_child
from lab.baselines.smartigan import threshold_accepting
from lab.data import exit_on_data_errors
from lab.variants import VariantsTask, compare

SETUPS = (
    *("liver:50", "liver:40", "pima:100", "pima:40", "ionosphere:50", "ionosphere:20"),
    *("tsplib1060:50", "tsplib3038:100", "image_segmentation:100", "image_segmentation:40"),
)
# Of the offspring that an idea makes, and its parameters. Many passes with the published threshold
# of 1.5 would leave nothing of the parents.
PART, PASSES, THRESHOLD, CANDIDATES = 0.3, 3, 1.2, 4
Crossover = Callable[[Individual, Individual, Breeding], Child | None]


def perturbed(centers: np.ndarray, breeding: Breeding) -> np.ndarray:
    """Make passes of single moves under a threshold."""
    engine: Any = breeding.engine
    rng = breeding.rng
    orders = [rng.permutation(engine.n_samples) for _ in range(PASSES)]
    return threshold_accepting(engine, centers, orders, THRESHOLD)


def threshold_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Match the parents, then perturb the child."""
    child = squared_matching_crossover(first, second, breeding)
    return Child(perturbed(child.centers, breeding), child.parent)


def shaken_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Perturb the first parent; its relocation is left out."""
    return Child(perturbed(first.centers, breeding), first, is_complete=True)


def pooled_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Draw the centres of the child from those of both parents by k-means++."""
    engine: Any = breeding.engine
    pool, k = np.concatenate([first.centers, second.centers]), len(first.centers)
    drawn = engine.seed_from(pool, np.ones(2 * k), breeding.rng.random((k, CANDIDATES)))
    # Centres of the first parent stay where they were, so that the engine can build on it.
    own = np.sort(drawn[drawn < k])
    centers = np.empty_like(first.centers)
    centers[own] = first.centers[own]
    centers[np.setdiff1d(np.arange(k), own)] = pool[drawn[drawn >= k]]
    return Child(centers, first)


@dataclass(eq=False)
class Differences:
    """S₁ + F·(S₂ − S₃), where S₃ is a parent of an earlier child."""

    __name__ = "difference_crossover"
    earlier: Individual | None = field(default=None, init=False)

    def __call__(self, first: Individual, second: Individual, breeding: Breeding) -> Child | None:
        """Make a child, unless there is no third solution of the same search yet."""
        third, self.earlier = self.earlier, first
        if third is None or third.centers.shape != first.centers.shape:
            return None
        factor = float(breeding.rng.uniform(0.5, 0.8))
        centers = difference_child(first.centers, second.centers, third.centers, factor)
        return Child(centers, third)


def with_idea(crossover: Crossover) -> Strategy:
    """Let an idea make a part of the offspring of the deep strategy, before matching."""
    *others, last = DEEP.crossovers
    name = f"deep, {Crossing(crossover).name}"
    return replace(DEEP, name=name, crossovers=(*others, Crossing(crossover, PART), last))


@dataclass(frozen=True)
class IdeasTask(VariantsTask):
    """Run the deep strategy with each of the ideas."""

    def variants(self) -> Mapping[str, SearchSettings]:
        """Return the variants."""
        ideas = {
            "thresholds": threshold_crossover,
            "shaken": shaken_crossover,
            "pooled": pooled_crossover,
            "differences": Differences(),
        }
        return {
            f"deep, {name}": SearchSettings(strategy=with_idea(crossover))
            for name, crossover in ideas.items()
        }


def main() -> None:
    compare(IdeasTask, "ideas.csv", SETUPS, 0.3, __doc__)


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
