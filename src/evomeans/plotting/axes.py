"""What all plots share: late matplotlib, calm axes, a logarithmic axis that ends in "best"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evomeans.plotting.palette import FAINT, INK, MUTED
from evomeans.wording import how_to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def get_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or new ones in a figure of their own."""
    return calm(new_figure(size).subplots() if ax is None else ax)


def new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure of pyplot, or say what is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"Plots need matplotlib, which is not installed: {how_to_install('plot')}."
        ) from error
    return pyplot.figure(figsize=size, layout="constrained")


def calm(ax: Axes) -> Axes:
    """Remove everything from the axes that is not needed to read them."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(which="both", color=FAINT, labelcolor=MUTED)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.set_axisbelow(True)
    return ax


def gap_axis(ax: Axes, floor: float, top: float, unit: str) -> None:
    """Make the vertical axis one of percent in logarithms, whose lowest tick says "best"."""
    from matplotlib.ticker import NullLocator

    top = max(top, 10 * floor)
    decades = np.arange(np.log10(floor).round() + 1, np.floor(np.log10(top)) + 1)
    decades = decades[:: -(-len(decades) // 7)]
    ax.set_yscale("log")
    ax.set_ylim(floor * 0.72, top * 1.4)
    labels = [f"{10.0**decade:,.{max(0, -int(decade))}f} %" for decade in decades]
    ax.set_yticks([floor, *10.0**decades], ["best", *labels])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(unit.removeprefix("% "))
    ax.grid(axis="y", color=FAINT, linewidth=0.6)


def plain(name: str, length: int = 60) -> str:
    """Return a name on one line, not too long, that matplotlib does not take for mathematics."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    shown = shown if len(shown) <= length else shown[: length - 1] + "…"
    return shown.replace("$", r"\$")


def say_instead(ax: Axes, text: str) -> Axes:
    """Write a sentence where there is nothing to draw."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=MUTED)
    return ax
