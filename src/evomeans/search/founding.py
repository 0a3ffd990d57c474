"""Where the members of a new population begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from evomeans.engines.protocol import Ability, Engine, FloatArray


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
    """k samples far from each other, drawn by k-means++."""

    name: ClassVar[str] = "k-means++"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.SEEDING})

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw one number for each centre."""
        return rng.random(n_clusters)

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Let the engine draw samples by their distances."""
        return [engine.seed(quantiles) for quantiles in draws]
