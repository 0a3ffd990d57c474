"""What engines inherit: answers to verbs that many of them give in the same way."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import (
    Abandoned,
    Ability,
    Engine,
    FloatArray,
    Labels,
    Mating,
    Refinement,
    Way,
)
from evomeans.engines.sampling import Drawing


def total_weights(labels: Labels, weights: FloatArray | None, n_clusters: int) -> FloatArray:
    """Return the total weight of the samples of each cluster; those labelled −1 are in none."""
    totals = np.bincount(labels + 1, weights, n_clusters + 1)
    return totals[1:].astype(np.float64)


class CountingSamples:
    """What an engine inherits that has the labels of all samples in memory."""

    most_sampled: int = 0
    n_jobs: int = 1
    is_abandoned: bool = False
    is_prepared: bool = True

    def offspring(self, mating: Mating) -> tuple[Way, Refinement] | None:
        """Leave crossovers to the search."""
        return None

    def subsample(self, drawing: Drawing) -> Engine:
        """Say that there are no engines over some of the samples."""
        raise NotImplementedError(f"{type(self).__name__} has no samples of its samples.")

    def labelling_seconds(self, n_clusters: int) -> float:
        """Expect labels to take no time worth reserving."""
        return 0.0

    def cluster_sizes(self, centers: FloatArray) -> NDArray[np.int64]:
        """How many samples are closest to each centre."""
        labels, _ = self.assign(centers)  # type: ignore[attr-defined]
        sizes: NDArray[np.int64] = np.bincount(labels, minlength=len(centers))
        return sizes

    def weigh(self, centers: FloatArray) -> tuple[FloatArray, float]:
        """Total weight of the samples that are closest to each centre, and the inertia."""
        labels, inertia = self.assign(centers)  # type: ignore[attr-defined]
        return total_weights(labels, self.weights, len(centers)), inertia  # type: ignore[attr-defined]


class OneAtATime(CountingSamples):
    """What an engine inherits that runs in one thread of this process."""

    def workers(self, n_clusters: int, most: int) -> list[Self]:
        """Return this engine: it has no others."""
        return [self]

    def takes_long(self, n_clusters: int) -> bool:
        """Leave nothing to be abandoned."""
        return False

    def abandon(self, is_abandoned: bool) -> None:
        """Do nothing: no other thread refines."""


class Abandonable:
    """What an engine inherits that calls :meth:`check_abandoned` between steps of a refinement."""

    is_abandoned: bool = False

    def abandon(self, is_abandoned: bool) -> None:
        """End the refinement that another thread is running, and those that follow."""
        self.is_abandoned = is_abandoned

    def check_abandoned(self) -> None:
        """End a refinement that nobody waits for."""
        if self.is_abandoned:
            raise Abandoned


class PlainKMeans(Abandonable, OneAtATime):
    """What an engine inherits that runs K-means to its fixed point and nothing else."""

    abilities: frozenset[Ability] = frozenset()

    def takes_long(self, n_clusters: int) -> bool:
        """Expect large data: such engines are not for small ones."""
        return True

    def close(self) -> None:
        """Release nothing."""

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        """Say that the engine lacks an ability."""
        raise NotImplementedError(f"{type(self).__name__} runs K-means to its fixed point only.")

    seed = better_parts = _refuse
