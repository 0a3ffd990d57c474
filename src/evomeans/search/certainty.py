"""The probability that a search has found the best solution, from what it has seen.

``python -m lab certainty fit`` fits the coefficients of this logistic model, and ``python -m lab
certainty report`` judges them (docs/guide/how-sure.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from evomeans.search.history import SWAPPED, OffspringRecord

# Of SearchEvidence.features, and of path_features, as the lab prints them.
INTERCEPT = 0.981
COEFFICIENTS = (1.421, -0.564, 1.282)
PATH_INTERCEPT = 4.269
PATH_COEFFICIENTS = (1.930, -0.842)
# Share of the patience after which a population whose best is a founder has converged.
RIPE = 1.0 / 3.0
# Work is counted in products of an assignment, n·k·d. Everything else about a solution, from the
# crossover to the record, takes about as long as so many. So much work takes a sixth of a second.
OTHER_WORK, CHEAP = 250_000, 1e8
# Keeps logarithms finite where a search has just found its best solution, or found it at once.
SOON = 0.03


class SearchEvidence(NamedTuple):
    """The evidence of a search for its best solution; offspring are in units of the patience."""

    n_starts: int  # populations, or founders of one, that came to it independently; at least 1
    lateness: float  # offspring after which populations came to it, on average; 0 if founders did
    waited: float  # offspring since it was found

    @property
    def features(self) -> tuple[float, ...]:
        """What the logit is linear in."""
        lateness, ripeness = SOON + self.lateness, SOON + min(1.0, self.waited / RIPE)
        return math.log(self.n_starts), math.log(lateness), math.log(ripeness)


def gather(history: Sequence[OffspringRecord], patience: int, tolerance: float) -> SearchEvidence:
    """Count what the records of a search say, given its longest patience; there is at least one."""
    last = history[-1]
    limit = last.best * (1.0 + tolerance)
    found = [record for record in history if record.inertia <= limit]
    # The first solution after its swaps owes itself to another one.
    founders = Counter(
        record.population for record in found if record.founder and record.made_by != SWAPPED
    )
    # A population that combines two others inherits what they have found.
    begun = {record.population for record in history if record.founder}
    hits = {record.population for record in found} & begun | {found[0].population}
    n_starts = sum(max(1, founders[population]) for population in hits)
    began, reached = _first_of_each(history), _first_of_each(found)
    offspring = sum(reached[population] - began[population] for population in hits)
    lateness = offspring / len(hits) / patience
    return SearchEvidence(n_starts, lateness, (last.number - found[0].number) / patience)


def _first_of_each(records: Sequence[OffspringRecord]) -> dict[int, int]:
    """Return the offspring made before the first of these records of each population."""
    return {record.population: record.number for record in reversed(records)}


def certainty(evidence: SearchEvidence) -> float:
    """Return the probability that no solution within reach is better by more than 0.01 %."""
    return _logistic(INTERCEPT, COEFFICIENTS, evidence.features)


def path_features(n_clusters: int, n_agreeing: int) -> tuple[float, ...]:
    """Return what the logit of :func:`path_certainty` is linear in."""
    return math.log(n_agreeing), math.log(n_clusters)


def path_certainty(n_clusters: int, n_agreeing: int) -> float:
    """Return the same for one k of a path, whose two sweeps count as two populations."""
    return _logistic(PATH_INTERCEPT, PATH_COEFFICIENTS, path_features(n_clusters, n_agreeing))


def _logistic(intercept: float, coefficients: Sequence[float], features: Sequence[float]) -> float:
    terms = zip(coefficients, features, strict=True)
    logit = intercept + sum(coefficient * feature for coefficient, feature in terms)
    return 1.0 / (1.0 + math.exp(-logit))


def work(n_solutions: int, n_samples: int, n_features: int, n_clusters: int) -> float:
    """Estimate the work of a search, the same on every machine."""
    return n_solutions * (OTHER_WORK + float(n_samples) * n_features * n_clusters)


def level_of_cheap(level: float, work: float) -> float:
    """Return the level of certainty that is asked of a search, given what it has cost so far.

    To go on costs less than to be wrong where a search is cheap. So the odds that are asked for
    grow with the square of the factor by which the work is less than a sixth of a second.
    """
    if level == 1.0:
        return level
    odds = level / (1.0 - level) * max(1.0, CHEAP / work) ** 2
    return odds / (1.0 + odds)
