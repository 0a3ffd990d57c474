"""Axes, and colours that stay apart for colour-blind readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evomeans.wording import how_to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


OKABE_ITO = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#D55E00",  # vermillion
    "#56B4E9",  # sky blue
    "#CC79A7",  # purple
    "#555555",  # the palette's black, softened: it must not look like text
    "#E3D22E",  # yellow, a little darker than theirs: it has to show on white
)
"""The colours of M. Okabe and K. Ito, "Color Universal Design" (2008)."""

INK = "#1b1f24"
MUTED = "#59616b"
FAINT = "#d5d9de"
PAPER = "#ffffff"


def diverging(low: str, middle: str, high: str) -> tuple[str, ...]:
    """Mix the 13 levels of a scale from ``low`` over ``middle`` to ``high``."""
    first, second, third = map(_channels, (low, middle, high))
    below = [first + i / 6 * (second - first) for i in range(6)]
    above = [second + i / 6 * (third - second) for i in range(7)]
    return tuple("#{:02x}{:02x}{:02x}".format(*map(round, color)) for color in below + above)


def _channels(color: str) -> NDArray[np.float64]:
    """Return red, green and blue of a colour like ``"#56B4E9"``, from 0 to 255."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


DIFFERENCES = diverging("#0a5c8f", "#f3f3f1", "#b84d00")
"""From far below the mean to far above it."""


def cluster_colors(centers: NDArray[Any], n_colors: int = len(OKABE_ITO)) -> NDArray[np.intp]:
    """Give every cluster one of a few colours, and neighbours different ones, as on a map.

    Up to ``n_colors`` clusters have a colour of their own. Beyond that, colours repeat: each
    cluster in turn takes the colour whose nearest owner so far is farthest away. The centres alone
    decide, so that one model has the same colours in every plot.
    """
    k = len(centers)
    colors = np.arange(k) % n_colors
    if k <= n_colors:
        return colors
    extent = np.abs(centers).max() or 1.0
    places = np.asarray(centers, dtype=np.float64) / extent
    nearest = np.full((n_colors, k), np.inf)
    for cluster in range(k):
        if cluster >= n_colors:
            colors[cluster] = nearest[:, cluster].argmax()
        away = np.linalg.norm(places - places[cluster], axis=1)
        row = nearest[colors[cluster]]
        np.minimum(row, away, out=row)
    return colors


def ink_on(color: str) -> str:
    """Return black or white, whichever is easier to read on a colour like ``"#56B4E9"``."""
    return PAPER if luminance(color) < 0.22 else "#000000"


def luminance(color: str) -> float:
    """Return the relative luminance of a colour as WCAG 2 defines it, from 0 to 1."""
    channels = _channels(color) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


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


def badge(ax: Axes, x: float, y: float, cluster: int, color: str, **more: Any) -> None:
    """Write the number of a cluster on its colour."""
    box = {"boxstyle": "round,pad=0.38,rounding_size=0.7", "fc": color, "ec": PAPER, "lw": 1.2}
    style = {"size": 8, "weight": "bold", "color": ink_on(color), "va": "center", "bbox": box}
    ax.text(x, y, str(cluster), **{**style, "ha": "center", "zorder": 4, **more})


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
