"""From rows of runs to gaps, times and ranks."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lab.best_known import best_known
from lab.paper.experiment import Row
from lab.paper.problems import is_mixture
from lab.paper.statistics import wilcoxon

Setup = tuple[str, int]
# A smaller difference, in percent, is a matter of printed digits and rounding.
EQUAL = 1e-6


@dataclass(frozen=True)
class Comparison:
    """How one method does beside another over many problems.

    Parameters
    ----------
    setups : int
        That both were run on.
    better, worse : int
        How often the first one's mean is lower, or higher.
    p_value : float
        Of the two-sided Wilcoxon signed-rank test.
    """

    setups: int
    better: int
    worse: int
    p_value: float


def references(rows: Iterable[Row]) -> dict[Setup, float]:
    """Return the lowest inertia known for each problem: before these runs, or found by them."""
    lowest: dict[Setup, float] = {}
    for row in rows:
        setup = setup_of(row)
        if setup not in lowest:
            known = None if is_mixture(setup[0]) else best_known(*setup)
            lowest[setup] = row["inertia"] if known is None else known.value
        lowest[setup] = min(lowest[setup], row["inertia"])
    return lowest


def own_references(rows: Iterable[Row]) -> tuple[int, int]:
    """Count the problems, and those whose reference evomeans found itself.

    There a gap says how far runs are apart, not how far they are from what others found.
    """
    lowest = references(rows)
    own = 0
    for setup, value in lowest.items():
        known = None if is_mixture(setup[0]) else best_known(*setup)
        own += known is None or "evomeans" in known.found_by or value < known.value * (1 - 1e-9)
    return len(lowest), own


def setup_of(row: Row) -> Setup:
    """Return the data set and the number of clusters of a row."""
    return row["dataset"], row["m"]


def with_gaps(rows: Iterable[Row]) -> list[Row]:
    """Add to each row its gap, in percent above the lowest inertia known."""
    kept = list(rows)
    lowest = references(kept)
    return [{**row, "gap": percent_above(row["inertia"], lowest[setup_of(row)])} for row in kept]


def percent_above(value: float, reference: float) -> float:
    """Return how far a value lies above another one, in percent; 0 if both are 0."""
    if reference == 0.0:
        return 0.0 if value == 0.0 else float("inf")
    return 100.0 * (value - reference) / reference


def averaged(rows: Iterable[Row], measure: str, by: Callable[[Row], object]) -> dict[object, float]:
    """Average a measure over rows that have the same key."""
    groups: defaultdict[object, list[float]] = defaultdict(list)
    for row in rows:
        groups[by(row)].append(row[measure])
    return {key: statistics.fmean(values) for key, values in groups.items()}


def by_setup(rows: Iterable[Row], measure: str, method: str) -> dict[Setup, float]:
    """Average a measure of a method over the seeds of each problem."""
    chosen = (row for row in rows if row["method"] == method)
    return averaged(chosen, measure, setup_of)  # type: ignore[return-value]


def in_order(values: Iterable[str]) -> list[str]:
    """Return distinct values in the order of their first appearance."""
    return list(dict.fromkeys(values))


def compare(rows: Sequence[Row], ours: str, theirs: str, measure: str = "gap") -> Comparison:
    """Compare two methods on the problems that both have, each averaged over its seeds."""
    first, second = by_setup(rows, measure, ours), by_setup(rows, measure, theirs)
    shared = [setup for setup in first if setup in second]
    pairs = [(first[setup], second[setup]) for setup in shared]
    return Comparison(
        setups=len(pairs),
        better=sum(a < b - EQUAL for a, b in pairs),
        worse=sum(a > b + EQUAL for a, b in pairs),
        p_value=wilcoxon([0.0 if abs(a - b) <= EQUAL else a - b for a, b in pairs]),
    )
