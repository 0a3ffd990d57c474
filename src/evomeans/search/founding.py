"""Where the members of a new population begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from evomeans.engines.protocol import Ability, Engine, FloatArray

# How many samples an engine hands out if it cannot seed among all of them: at least these, and so
# many for each centre.
FEW_SAMPLES, SAMPLES_PER_CENTER = 2000, 20


class Founding(Protocol):
    """A way to begin solutions.

    Drawing and placing are two steps, because all founders of a round are placed together: the
    samples may be far away.
    """

    @property
    def name(self) -> str:
        """What the record calls it."""
        ...

    @property
    def needs(self) -> frozenset[Ability]:
        """Abilities that the engine must have."""
        ...

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw the random numbers of one founder."""
        ...

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Turn the numbers of several founders into their centres."""
        ...


@dataclass(frozen=True)
class RandomSamples:
    """k distinct samples, drawn by their weight (section 3.1 of the paper)."""

    name: ClassVar[str] = "random samples"
    needs: ClassVar[frozenset[Ability]] = frozenset()

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw distinct slots of equal weight: distinct samples, unless one fills two slots."""
        return (rng.choice(n_samples, n_clusters, replace=False) + 0.5) / n_samples

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Look the samples up."""
        drawn = engine.samples_at(np.concatenate(draws))
        return list(drawn.reshape(len(draws), -1, drawn.shape[1]))


@dataclass(frozen=True)
class KMeansPlusPlus:
    """k samples far from each other, drawn by k-means++.

    Where the engine cannot draw like this among all samples, it hands out some of them, drawn by
    their weight, and scikit-learn draws among these.

    Parameters
    ----------
    greedy : bool
        Whether each sample is the best of a few candidates. That takes longer, and begins deeper.
    """

    greedy: bool = False
    name: ClassVar[str] = "k-means++"
    needs: ClassVar[frozenset[Ability]] = frozenset()

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw a number for each candidate; there are as many as scikit-learn has."""
        return rng.random((n_clusters, 2 + int(math.log(n_clusters)) if self.greedy else 1))

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Draw samples by their distances."""
        if Ability.SEEDING in engine.abilities:
            return [engine.seed(quantiles) for quantiles in draws]
        # Imported late: importing the estimator loads no clustering of scikit-learn.
        from sklearn.cluster import kmeans_plusplus

        k = len(draws[0])
        size = min(engine.n_samples, max(FEW_SAMPLES, SAMPLES_PER_CENTER * k))
        seeds = [int(numbers[0, 0] * 2.0**32) for numbers in draws]
        quantiles = [np.random.default_rng(seed).random(size) for seed in seeds]
        drawn = engine.samples_at(np.concatenate(quantiles)).reshape(len(draws), size, -1)
        trials = draws[0].shape[1]
        return [
            kmeans_plusplus(rows, k, random_state=seed, n_local_trials=trials)[0]
            for rows, seed in zip(drawn, seeds, strict=True)
        ]
