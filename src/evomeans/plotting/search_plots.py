"""How a search went: convergence, its population, and several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evomeans.plotting.axes import (
    FAINT,
    INK,
    MUTED,
    OKABE_ITO,
    gap_axis,
    get_axes,
    plain,
    say_instead,
)
from evomeans.plotting.cluster_data import check_fitted
from evomeans.plotting.search_data import (
    Convergence,
    comparison_data,
    convergence_data,
    population_data,
)
from evomeans.search.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_SEARCH = "The answer was computed exactly,\nwithout a search."
ALL_EQUAL = "Every solution was equally good,\nso there is no convergence curve."
LINE_STYLES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))


def plot_convergence(
    history: Any,
    *,
    x: Literal["offspring", "seconds"] = "offspring",
    ax: Axes | None = None,
) -> Axes:
    """Draw how the search came down to its best solution.

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
    ax.plot(
        data.x,
        np.maximum(data.gap, data.floor),
        "o",
        markersize=2.6,
        markeredgewidth=0,
        color=MUTED,
        alpha=0.4,
        label="solutions made",
        rasterized=len(data.x) > 2000,
    )
    heights = np.maximum(data.step_gap, data.floor)
    ax.step(
        data.step_x, heights, where="post", color=OKABE_ITO[0], linewidth=2.2, label="best so far"
    )
    found = int(np.argmax(data.step_gap <= data.step_gap[-1]))
    ax.plot(
        data.step_x[found],
        heights[found],
        "o",
        color=OKABE_ITO[3],
        markersize=8,
        clip_on=False,
        label="best found",
    )
    gap_axis(ax, data.floor, float(data.gap.max()), data.unit)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.set_xlim(left=0)
    return _labelled(ax, "offspring made" if x == "offspring" else "time (seconds)")


def plot_population(history: Any, ax: Axes | None = None) -> Axes:
    """Draw how the population closed in on its best member.

    The band reaches from the best to the worst member after each selection of survivors, the
    line is the median; all in percent above the best found, in logarithms.

    Parameters
    ----------
    history : History or HGMeans
        As in ``model.history_``, or the fitted model itself.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
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
    ax.fill_between(
        data.number,
        best,
        worst,
        step="post",
        color=OKABE_ITO[4],
        alpha=0.3,
        linewidth=0,
        label="from best to worst member",
    )
    ax.step(data.number, median, where="post", color=INK, linewidth=1.6, label="median member")
    ax.step(data.number, best, where="post", color=OKABE_ITO[0], linewidth=2.2, label="best member")
    gap_axis(ax, data.floor, float(data.worst.max()), data.unit)
    ax.set_xlim(left=0)
    return _labelled(ax, "offspring made")


def plot_comparison(runs: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Draw the courses of several runs over time, on one scale.

    Parameters
    ----------
    runs : mapping of str to fitted models or (seconds, best)
        A fitted model with a ``history_``, such as HGMeans or a baseline; or two equally long
        sequences for each run, when, and the lowest inertia by then.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    data = comparison_data(runs)
    ax = get_axes(ax, (7.0, 4.2))
    earliest = min((float(s[s > 0].min()) for s in data.seconds if (s > 0).any()), default=1e-3)
    for i, (name, seconds, gap) in enumerate(zip(data.names, data.seconds, data.gap, strict=True)):
        color = OKABE_ITO[i] if i < len(OKABE_ITO) else FAINT
        end = "best of all" if gap[-1] == 0 else f"+{gap[-1]:.2g} %"
        when, heights = np.maximum(seconds, earliest), np.maximum(gap, data.floor)
        ax.step(
            when,
            heights,
            where="post",
            color=color,
            linewidth=2,
            linestyle=LINE_STYLES[i % len(LINE_STYLES)],
            label=f"{plain(name)}   {end}",
            zorder=3 - i / 100,
        )
        ax.plot(when[-1], heights[-1], "o", color=color, markersize=6, zorder=3, clip_on=False)
    gap_axis(ax, data.floor, max(float(gap.max()) for gap in data.gap), data.unit)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    return _labelled(ax, "time (seconds)", n_columns=1 if len(runs) < 6 else 2)


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


def _labelled(ax: Axes, x_label: str, n_columns: int = 3) -> Axes:
    """Name the horizontal axis, and put the legend above the axes, where it hides nothing."""
    ax.set_xlabel(x_label)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=n_columns,
        frameon=False,
        labelcolor=INK,
        borderaxespad=0.2,
        handletextpad=0.5,
        columnspacing=1.6,
    )
    return ax
