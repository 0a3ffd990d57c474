"""What the plots of a search show, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evomeans.search.history import History
from evomeans.search.population import CLONE_TOLERANCE
from evomeans.typing import FloatArray

# In percent. What is closer to the best is the best: rounding, or a clone of it.
NEGLIGIBLE = 100 * CLONE_TOLERANCE


@dataclass(frozen=True, eq=False)
class Convergence:
    """The gap of every solution, or of an even choice of them, and the best so far.

    The best so far is a staircase with corners at ``(step_x, step_gap)``. ``unit`` says what gaps
    measure. ``floor`` is below all positive ones: a logarithmic axis shows zero there.
    """

    x: FloatArray
    gap: FloatArray
    step_x: FloatArray
    step_gap: FloatArray
    floor: float
    unit: str


def convergence_data(
    history: Sequence[Any], x: Literal["offspring", "seconds"] = "offspring", limit: int = 5000
) -> Convergence:
    """Read the course of a search, of which at most ``limit`` solutions, from its history.

    Founders are at offspring 0. The staircase is always complete.
    """
    if x not in ("offspring", "seconds"):
        raise ValueError(f'x must be "offspring" or "seconds", got {x!r}.')
    when = _column(history, "number" if x == "offspring" else "seconds")
    best, inertia = _column(history, "best"), _column(history, "inertia")
    if not len(best):
        return Convergence(when, best, when, best, 1.0, "")
    gap, best_gap = (_gaps(values, best[-1], first=inertia[0]) for values in (inertia, best))
    step_x, step_gap = _staircase(when, best_gap)
    kept = np.linspace(0, len(gap) - 1, min(len(gap), limit)).round().astype(np.intp)
    floor = floor_below(best_gap if best_gap.any() else gap)
    return Convergence(when[kept], gap[kept], step_x, step_gap, floor, _unit(best[-1]))


def _column(history: Sequence[Any], name: str) -> FloatArray:
    return np.array([getattr(record, name) for record in history], dtype=np.float64)


def _gaps(values: FloatArray, best: float, first: float) -> FloatArray:
    """Percent above the best; of the first inertia where the best is 0 and nothing compares."""
    gaps = 100 * (values / best - 1) if best > 0 else 100 * values / (first or 1.0)
    return np.where(gaps > NEGLIGIBLE, gaps, 0.0)


def _unit(best: float) -> str:
    return "% above the best found" if best > 0 else "% of the first inertia"


def _staircase(x: FloatArray, falling: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep the first value, each lower one, and where it ends."""
    corners = np.flatnonzero(np.diff(falling, prepend=np.inf) < 0)
    # All founders are at offspring 0: the lowest of several corners at one place counts.
    corners = corners[np.append(np.diff(x[corners]) > 0, True)]
    corners = np.append(corners, len(x) - 1)
    return x[corners], falling[corners]


def floor_below(gaps: FloatArray) -> float:
    """Return a power of ten that is clearly below all positive gaps, in percent."""
    positive = gaps[gaps > 0]
    return float(10.0 ** np.floor(np.log10(positive.min() / 2))) if len(positive) else 0.1


@dataclass(frozen=True, eq=False)
class PopulationCourse:
    """Gaps of the members of the population, after ``number`` offspring.

    ``floor`` and ``unit`` are as in :class:`Convergence`.
    """

    number: FloatArray
    best: FloatArray
    median: FloatArray
    worst: FloatArray
    floor: float
    unit: str


def population_data(history: History) -> PopulationCourse:
    """Follow the populations of a search, at the moments after survivors were selected.

    Between selections a population only grows, which would look like a saw blade. The first moment
    of each is when all its founders are there. The last moment is the end of the search.
    """
    if not len(history):
        nothing = np.empty(0)
        return PopulationCourse(nothing, nothing, nothing, nothing, 1.0, "")
    size, population = history.column("population_size"), history.column("population")
    founder = history.column("founder").astype(bool)
    moments = founder & ~np.append(founder[1:], False)
    moments[1:] |= (np.diff(population) == 0) & (np.diff(size) <= 0)
    moments[-1] = True
    # Histories of older model files do not know the members.
    moments &= history.column("population_distinct").astype(bool)
    final, number = history[-1].best, _column(history, "number")[moments]
    best, median, worst = (
        _gaps(_column(history, f"population_{name}")[moments], final, first=history[0].inertia)
        for name in ("best", "median", "worst")
    )
    floor = floor_below(np.concatenate([median, worst]))
    return PopulationCourse(number, best, median, worst, floor, _unit(final))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The staircases of several runs, in percent above the best of all; the best run first.

    ``floor`` and ``unit`` are as in :class:`Convergence`.
    """

    names: list[str]
    seconds: list[FloatArray]
    gap: list[FloatArray]
    floor: float
    unit: str


def comparison_data(runs: Mapping[str, Any]) -> Comparison:
    """Bring the courses of several runs on one scale; see ``plot_comparison``."""
    if not isinstance(runs, Mapping):
        raise TypeError(
            'runs must be a dict such as {"HG-means": model, "restarts": (seconds, best)}, got '
            f"{type(runs).__name__}."
        )
    if not runs:
        raise ValueError("runs is empty; give at least one name with its (seconds, best).")
    courses = {name: _course(name, run) for name, run in runs.items()}
    names = sorted(courses, key=lambda name: float(courses[name][1][-1]))
    ordered = [courses[name] for name in names]
    overall, first = ordered[0][1][-1], max(best[0] for _, best in ordered)
    stairs = [_staircase(when, _gaps(best, overall, first)) for when, best in ordered]
    seconds, gaps = map(list, zip(*stairs, strict=True))
    return Comparison(names, seconds, gaps, floor_below(np.concatenate(gaps)), _unit(overall))


def _course(name: str, run: Any) -> tuple[FloatArray, FloatArray]:
    history = run if isinstance(run, History) else getattr(run, "history_", None)
    if history is not None and len(history):
        run = _column(history, "seconds"), _column(history, "best")
    try:
        seconds, best = (np.asarray(part, dtype=np.float64) for part in run)
        if not seconds.shape == best.shape == (len(seconds),) or not len(seconds):
            raise ValueError(f"shapes {seconds.shape} and {best.shape}")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The run {name!r} must be a fitted model with a history_, or a pair (seconds, best) "
            f"of equally long sequences of numbers that are not empty; got {error}."
        ) from error
    return seconds, np.minimum.accumulate(best)
