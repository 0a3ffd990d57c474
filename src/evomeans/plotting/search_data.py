"""What the plots of a search show, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evomeans.search.history import History, OffspringRecord
from evomeans.search.individual import CLONE_TOLERANCE

FloatArray = NDArray[np.float64]

# In percent. What is closer to the best is the best: rounding, or a clone of it.
NEGLIGIBLE = 100 * CLONE_TOLERANCE


@dataclass(frozen=True, eq=False)
class Convergence:
    """How a search came down.

    Parameters
    ----------
    x, gap : (m,) arrays
        Every solution made, or an even choice of them: when, and how far above the end.
    step_x, step_gap : (s,) arrays
        The best so far, as the corners of a falling staircase that ends with the search.
    floor : float
        A gap below all positive ones of the staircase, where an axis in logarithms may end;
        what is smaller stands there for "none".
    unit : str
        What ``gap`` measures.
    """

    x: FloatArray
    gap: FloatArray
    step_x: FloatArray
    step_gap: FloatArray
    floor: float
    unit: str


def convergence_data(
    history: History, x: Literal["offspring", "seconds"] = "offspring", limit: int = 5000
) -> Convergence:
    """Read the course of a search from its history.

    Parameters
    ----------
    history : History
        May be empty.
    x : {"offspring", "seconds"}
        What the horizontal axis counts. Founders are at offspring 0.
    limit : int
        Keep at most this many solutions; the staircase is complete.

    Returns
    -------
    Convergence
    """
    if x not in ("offspring", "seconds"):
        raise ValueError(f'x must be "offspring" or "seconds", got {x!r}.')
    when = _column(history, "number" if x == "offspring" else "seconds")
    best = _column(history, "best")
    if not len(best):
        return Convergence(when, best, when, best, 1.0, "")
    inertia = _column(history, "inertia")
    gap, unit = _gaps(inertia, best[-1], first=inertia[0])
    best_gap, _ = _gaps(best, best[-1], first=inertia[0])
    step_x, step_gap = _staircase(when, best_gap)
    kept = np.linspace(0, len(gap) - 1, min(len(gap), limit)).round().astype(np.intp)
    floor = floor_below(best_gap if (best_gap > 0).any() else gap)
    return Convergence(when[kept], gap[kept], step_x, step_gap, floor, unit)


def _column(history: History, name: str) -> FloatArray:
    return np.asarray(history.column(name), dtype=np.float64)


def _gaps(values: FloatArray, best: float, first: float) -> tuple[FloatArray, str]:
    """Percent above the best; of the first inertia where the best is 0 and nothing compares."""
    if best > 0:
        gaps, unit = 100 * (values / best - 1), "% above the best found"
    else:
        gaps, unit = 100 * values / (first or 1.0), "% of the first inertia"
    return np.where(gaps > NEGLIGIBLE, gaps, 0.0), unit


def _staircase(x: FloatArray, falling: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep the first value, each lower one, and where it ends."""
    corners = np.flatnonzero(np.diff(falling, prepend=np.inf) < 0)
    # All founders are at offspring 0: the lowest of several corners at one place counts.
    corners = corners[np.append(np.diff(x[corners]) > 0, True)]
    return np.append(x[corners], x[-1]), np.append(falling[corners], falling[-1])


def floor_below(gaps: FloatArray) -> float:
    """Return a power of ten that is clearly below all positive gaps, in percent."""
    positive = gaps[gaps > 0]
    if not len(positive):
        return 0.1
    return float(10.0 ** np.floor(np.log10(positive.min() / 2)))


@dataclass(frozen=True, eq=False)
class PopulationCourse:
    """The members of the population over time, in percent above the best found.

    Parameters
    ----------
    number : (s,) array
        Offspring made.
    best, median, worst : (s,) arrays
        Of the population at that moment.
    distinct : (s,) array
        How many different solutions it held.
    floor : float
        As in :class:`Convergence`.
    unit : str
        What ``best``, ``median`` and ``worst`` measure.
    """

    number: FloatArray
    best: FloatArray
    median: FloatArray
    worst: FloatArray
    distinct: FloatArray
    floor: float
    unit: str


def population_data(history: History) -> PopulationCourse:
    """Follow the populations of a search, at the moments after survivors were selected.

    Between selections a population only grows, which would show as a saw blade. The first moment
    of each is when all its founders are there; the last one is the end of the search.

    Parameters
    ----------
    history : History
        May be empty.

    Returns
    -------
    PopulationCourse
    """
    # Histories of older model files do not know the members.
    shown = [record for record in _selections(history) if record.population_distinct]
    if not shown:
        nothing = np.empty(0)
        return PopulationCourse(nothing, nothing, nothing, nothing, nothing, 1.0, "")
    final, first = history[-1].best, history[0].inertia
    number = np.array([record.number for record in shown], dtype=np.float64)
    gaps = [
        _gaps(np.array([getattr(record, name) for record in shown]), final, first)
        for name in ("population_best", "population_median", "population_worst")
    ]
    (best, unit), (median, _), (worst, _) = gaps
    distinct = np.array([record.population_distinct for record in shown], dtype=np.float64)
    floor = floor_below(np.concatenate([median, worst]))
    return PopulationCourse(number, best, median, worst, distinct, floor, unit)


def _selections(history: History) -> list[OffspringRecord]:
    """Return the records after which a population was founded or cut down, and the last one."""
    records = list(history)
    moments = []
    for before, record, after in zip([None, *records], records, [*records[1:], None], strict=False):
        is_founded = record.founder and not (after and after.founder)
        was_cut = (
            before is not None
            and before.population == record.population
            and before.population_size >= record.population_size
        )
        if is_founded or was_cut or after is None:
            moments.append(record)
    return moments


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several runs on one scale.

    Parameters
    ----------
    names : list of str
        Deepest run first.
    seconds, gap : list of arrays
        The staircase of each run; the gap is in percent above the best of all.
    floor : float
        As in :class:`Convergence`.
    unit : str
        What ``gap`` measures.
    """

    names: list[str]
    seconds: list[FloatArray]
    gap: list[FloatArray]
    floor: float
    unit: str


def comparison_data(runs: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Comparison:
    """Bring the courses of several runs on one scale.

    Parameters
    ----------
    runs : mapping of str to (seconds, best)
        Two equally long sequences for each run: when, and the lowest inertia by then.

    Returns
    -------
    Comparison
    """
    if not runs:
        raise ValueError("runs is empty; give at least one name with its (seconds, best).")
    courses = {name: _course(name, run) for name, run in runs.items()}
    names = sorted(courses, key=lambda name: float(courses[name][1][-1]))
    overall = courses[names[0]][1][-1]
    first = max(course[1][0] for course in courses.values())
    seconds, gaps = [], []
    for name in names:
        gap, unit = _gaps(courses[name][1], overall, first)
        corners_x, corners_gap = _staircase(courses[name][0], gap)
        seconds.append(corners_x)
        gaps.append(corners_gap)
    return Comparison(names, seconds, gaps, floor_below(np.concatenate(gaps)), unit)


def _course(name: str, run: Any) -> tuple[FloatArray, FloatArray]:
    try:
        seconds, best = (np.asarray(part, dtype=np.float64) for part in run)
        if not seconds.shape == best.shape == (len(seconds),) or not len(seconds):
            raise ValueError(f"shapes {seconds.shape} and {best.shape}")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The run {name!r} must be a pair (seconds, best) of equally long sequences of "
            f"numbers that are not empty; got {error}."
        ) from error
    return seconds, np.minimum.accumulate(best)
