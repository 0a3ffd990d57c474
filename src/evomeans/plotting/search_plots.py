"""How a search went: convergence, and its population.

The data of each plot come first, so that they can be tested without a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evomeans.docstrings import described_like
from evomeans.plotting.axes import FAINT, INK, MUTED, OKABE_ITO, get_axes, say_instead
from evomeans.plotting.cluster_plots import check_fitted
from evomeans.search.history import History
from evomeans.search.population import CLONE_TOLERANCE
from evomeans.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Read the staircase of a search, and at most ``limit`` of its solutions, from its history."""
    if x not in ("offspring", "seconds"):
        raise ValueError(f'x must be "offspring" or "seconds", got {x!r}.')
    when = _column(history, "number" if x == "offspring" else "seconds")
    best, inertia = _column(history, "best"), _column(history, "inertia")
    if not len(best):
        return Convergence(when, best, when, best, 1.0, "")
    gap, best_gap = (_gaps(values, best[-1], first=inertia[0]) for values in (inertia, best))
    corners = np.flatnonzero(np.diff(best_gap, prepend=np.inf) < 0)
    # All founders are at offspring 0: the lowest of several corners at one place counts.
    corners = corners[np.append(np.diff(when[corners]) > 0, True)]
    corners = np.append(corners, len(when) - 1)
    kept = np.linspace(0, len(gap) - 1, min(len(gap), limit)).round().astype(np.intp)
    floor = floor_below(best_gap if best_gap.any() else gap)
    steps = when[corners], best_gap[corners]
    return Convergence(when[kept], gap[kept], *steps, floor, _unit(best[-1]))


def _column(history: Sequence[Any], name: str) -> FloatArray:
    return np.array([getattr(record, name) for record in history], dtype=np.float64)


def _gaps(values: FloatArray, best: float, first: float) -> FloatArray:
    """Percent above the best; of the first inertia where the best is 0 and nothing compares."""
    gaps = 100 * (values / best - 1) if best > 0 else 100 * values / (first or 1.0)
    return np.where(gaps > NEGLIGIBLE, gaps, 0.0)


def _unit(best: float) -> str:
    return "% above the best found" if best > 0 else "% of the first inertia"


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
    final, number = history[-1].best, _column(history, "number")[moments]
    best, median, worst = (
        _gaps(_column(history, f"population_{name}")[moments], final, first=history[0].inertia)
        for name in ("best", "median", "worst")
    )
    floor = floor_below(np.concatenate([median, worst]))
    return PopulationCourse(number, best, median, worst, floor, _unit(final))


NO_SEARCH = "The answer was computed exactly,\nwithout a search."
ALL_EQUAL = "Every solution was equally good,\nso there is no convergence curve."


def plot_convergence(
    history: Any, *, x: Literal["offspring", "seconds"] = "offspring", ax: Axes | None = None
) -> Axes:
    """Draw the best inertia over the course of the search.

    The line is the best so far, each dot a solution made. Both are in percent above the best
    found at the end, in logarithms: the first improvements are large, the last ones tiny.

    Parameters
    ----------
    history : History or HGMeans
        As in ``model.history_``, or the fitted model itself.
    x : {"offspring", "seconds"}, default="offspring"
        The horizontal axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    data = convergence_data(_history_of(history), x)
    return draw_convergence(get_axes(ax, (7.0, 4.2)), data, x)


def draw_convergence(ax: Axes, data: Convergence, x: str) -> Axes:
    """Draw the data of :func:`plot_convergence`."""
    if not data.gap.any():
        return say_instead(ax, ALL_EQUAL if len(data.x) else NO_SEARCH)
    dots: dict[str, Any] = {"markersize": 2.6, "markeredgewidth": 0, "color": MUTED, "alpha": 0.4}
    heights, is_large = np.maximum(data.gap, data.floor), len(data.x) > 2000
    ax.plot(data.x, heights, "o", **dots, rasterized=is_large, label="solutions made")
    heights = np.maximum(data.step_gap, data.floor)
    line: dict[str, Any] = {"where": "post", "color": OKABE_ITO[0], "linewidth": 2.2}
    ax.step(data.step_x, heights, **line, label="best so far")
    found = int(np.argmax(data.step_gap <= data.step_gap[-1]))
    dot: dict[str, Any] = {"markersize": 8, "color": OKABE_ITO[3], "clip_on": False}
    ax.plot(data.step_x[found], heights[found], "o", **dot, label="best found")
    return _finished(ax, data, data.gap, "offspring made" if x == "offspring" else "time (seconds)")


@described_like(plot_convergence)
def plot_population(history: Any, ax: Axes | None = None) -> Axes:
    """Draw how the population closed in on its best member.

    The band reaches from the best to the worst member after each selection of survivors, the
    line is the median; all in percent above the best found, in logarithms.
    """
    records = _history_of(history)
    if not isinstance(records, History):
        raise TypeError(
            f"{type(history).__name__} has no population; pass a fitted HGMeans, or its history_."
        )
    data = population_data(records)
    ax = get_axes(ax, (7.0, 4.2))
    if not data.worst.any():
        return say_instead(ax, ALL_EQUAL if len(data.number) else NO_SEARCH)
    best, median, worst = (
        np.maximum(line, data.floor) for line in (data.best, data.median, data.worst)
    )
    band: dict[str, Any] = {"step": "post", "color": OKABE_ITO[4], "alpha": 0.3, "linewidth": 0}
    ax.fill_between(data.number, best, worst, **band, label="from best to worst member")
    ax.step(data.number, median, where="post", color=INK, linewidth=1.6, label="median member")
    ax.step(data.number, best, where="post", color=OKABE_ITO[0], linewidth=2.2, label="best member")
    return _finished(ax, data, data.worst, "offspring made")


def _history_of(source: Any) -> Sequence[Any]:
    """Return a history as it is, and that of a fitted model."""
    if isinstance(source, History):
        return source
    check_fitted(source)
    history: Sequence[Any] | None = getattr(source, "history_", None)
    if history is None:
        raise TypeError(
            f"{type(source).__name__} keeps no history of its search; pass a fitted HGMeans, or "
            "its history_."
        )
    return history


def _finished(
    ax: Axes, data: Convergence | PopulationCourse, gaps: FloatArray, x_label: str
) -> Axes:
    """Scale and name the axes, and put the legend above them, where it hides nothing.

    The vertical axis is one of percent in logarithms, whose lowest tick says "best".
    """
    from matplotlib.ticker import NullLocator

    floor, top = data.floor, max(float(gaps.max()), 10 * data.floor)
    decades = np.arange(np.log10(floor).round() + 1, np.floor(np.log10(top)) + 1)
    decades = decades[:: -(-len(decades) // 7)]
    ax.set_yscale("log")
    ax.set_ylim(floor * 0.72, top * 1.4)
    labels = [f"{10.0**decade:,.{max(0, -int(decade))}f} %" for decade in decades]
    ax.set_yticks([floor, *10.0**decades], ["best", *labels])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(data.unit.removeprefix("% "))
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.set_xlim(left=0)
    ax.set_xlabel(x_label)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=3,
        frameon=False,
        labelcolor=INK,
        borderaxespad=0.2,
        handletextpad=0.5,
        columnspacing=1.6,
    )
    return ax
