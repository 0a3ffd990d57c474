"""Individuals, parents by tournament, and survivors without clones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from evomeans.typing import FloatArray, Labels
from evomeans.wording import counted, number_text

# Sums of squares that agree to this relative difference come from the same clusters: rounding
# stays far below it, and distinct local minima this close are not worth telling apart.
CLONE_TOLERANCE = 1e-9
# A smaller relative gain is rounding, not an improvement that resets the patience. A strategy may
# have a larger tolerance.
IMPROVEMENT = 1e-10
# How far α of a child may be from the average of its parents.
ALPHA_STEP = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class Individual:
    """A local minimum: the paper's triplet (membership, coordinates, α).

    The membership is left out where it follows from the coordinates.

    Parameters
    ----------
    centers : (k, d) array
        The coordinate chromosome.
    inertia : float
        Its cost.
    cluster_weights : (k,) array
        Total sample weight of each cluster.
    alpha : float
        Mutation parameter in [0, 1].
    handle : object, optional
        The engine's memory of this solution.
    labels : (n,) array, optional
        The membership, of models in which samples need not belong to their closest centre.
    """

    centers: FloatArray
    inertia: float
    cluster_weights: FloatArray
    alpha: float
    handle: Any = None
    labels: Labels | None = None

    def __repr__(self) -> str:
        (k, d), weights = self.centers.shape, self.cluster_weights
        clusters, features = counted(k, "cluster"), counted(d, "feature")
        lightest, heaviest = (number_text(float(one), 4) for one in (weights.min(), weights.max()))
        weight = lightest if lightest == heaviest else f"{lightest} to {heaviest}"
        inertia = number_text(self.inertia)
        return f"Individual(inertia {inertia}, {clusters} of weight {weight}, {features})"

    def is_as_deep_as(self, other: Individual, tolerance: float) -> bool:
        """Whether the inertia is not higher by more than a relative difference."""
        return self.inertia <= other.inertia * (1.0 + tolerance)

    @cached_property
    def explained(self) -> float:
        """Σ Wⱼ‖cⱼ‖², what the centres explain (:mod:`~evomeans.engines.acceleration`)."""
        return float(self.cluster_weights @ np.sum(self.centers * self.centers, axis=1))

    @cached_property
    def weights_key(self) -> bytes:
        """The cluster weights in ascending order: the same for every numbering of the clusters."""
        return np.sort(self.cluster_weights).tobytes()

    def is_clone_of(self, other: Individual) -> bool:
        """Whether both are the same solution, up to the numbering of the clusters."""
        difference = abs(self.inertia - other.inertia)
        return (
            difference <= CLONE_TOLERANCE * other.inertia and self.weights_key == other.weights_key
        )


def inherited_alpha(first: float, second: float, uniform: float) -> float:
    """Average of the parents' α, moved by up to ±0.2 and clipped to [0, 1] (section 3.3)."""
    alpha = 0.5 * (first + second) + ALPHA_STEP * (2.0 * uniform - 1.0)
    return min(1.0, max(0.0, alpha))


Selection = Callable[[Sequence[Individual], Sequence[float]], tuple[Individual, Individual]]
"""Selects two parents from a population, by four uniform numbers."""

Survival = Callable[[Sequence[Individual], int, np.random.Generator], list[Individual]]
"""Keeps that many members of a population."""


INERTIA_OF = attrgetter("inertia")


def tournament(population: Sequence[Individual], first: float, second: float) -> Individual:
    """Return the better of two members, drawn with replacement by two uniform numbers."""
    a = population[int(first * len(population))]
    b = population[int(second * len(population))]
    return a if a.inertia <= b.inertia else b


def independent_parents(
    population: Sequence[Individual], uniforms: Sequence[float]
) -> tuple[Individual, Individual]:
    """Select two parents by independent binary tournaments, from four uniform numbers.

    Both may be the same solution, as in section 3.2 of the paper.
    """
    return tournament(population, *uniforms[:2]), tournament(population, *uniforms[2:])


def different_parents(
    population: Sequence[Individual], uniforms: Sequence[float]
) -> tuple[Individual, Individual]:
    """Select two different parents by binary tournament, from four uniform numbers.

    The second is drawn from the members that are not clones of the first, if there are any: a
    child of equal parents is only a mutation of them, and populations that converge early would
    make little else.
    """
    first = tournament(population, uniforms[0], uniforms[1])
    clones = [one for one in lookalikes(first, population) if one.is_clone_of(first)]
    others = list(population)
    for clone in clones:
        others.remove(clone)
    return first, tournament(others or population, uniforms[2], uniforms[3])


def lookalikes(solution: Individual, population: Sequence[Individual]) -> list[Individual]:
    """Return the members whose inertia is so close that they may be clones of a solution.

    Most are not, which is quicker to see here than by asking each.
    """
    margin = 2.0 * CLONE_TOLERANCE * solution.inertia
    lowest, highest = solution.inertia - margin, solution.inertia + margin
    return [one for one in population if lowest <= one.inertia <= highest]


def survivors(
    population: Sequence[Individual], count: int, rng: np.random.Generator
) -> list[Individual]:
    """Keep ``count`` members: clones go first, then the worst.

    Of a group of clones a random one stays. If there are not enough different members, the best
    clones fill the places that are left. The result is sorted, best first.
    """
    originals: list[Individual] = []
    clones: list[Individual] = []
    for group in clone_groups(population):
        keep = int(rng.integers(len(group))) if len(group) > 1 else 0
        originals.append(group[keep])
        clones.extend(group[:keep] + group[keep + 1 :])
    kept = originals[:count] + clones[: max(0, count - len(originals))]
    return sorted(kept, key=INERTIA_OF)


def last_survivor(population: Sequence[Individual], count: int) -> Individual:
    """Return the worst of the ``count`` members that would survive, by their inertia alone.

    If fewer are different, it is the worst of these. Something worse would survive as well, in
    place of a clone, but that is not worth its refinement.
    """
    ranked = sorted(population, key=INERTIA_OF)
    different = [ranked[0]]
    for member in ranked:
        if member.inertia > different[-1].inertia * (1.0 + CLONE_TOLERANCE):
            different.append(member)
    return different[:count][-1]


def clone_groups(population: Sequence[Individual]) -> list[list[Individual]]:
    """Split a population into groups of clones, best group first."""
    groups: list[list[Individual]] = []
    for member in sorted(population, key=INERTIA_OF):
        # In this order clones are close, but different solutions of the same cost may lie between.
        for group in reversed(groups):
            if member.is_clone_of(group[0]):
                group.append(member)
                break
            if member.inertia - group[0].inertia > CLONE_TOLERANCE * group[0].inertia:
                groups.append([member])
                break
        else:
            groups.append([member])
    return groups


def spread(population: Sequence[Individual]) -> tuple[float, float, float, int]:
    """Return the best, the median and the worst inertia, and how many different ones there are."""
    inertias = sorted(map(INERTIA_OF, population))
    low, high = inertias[(len(inertias) - 1) // 2], inertias[len(inertias) // 2]
    distinct = 1 + sum([b - a > CLONE_TOLERANCE * a for a, b in pairwise(inertias)])
    return inertias[0], 0.5 * (low + high), inertias[-1], distinct
