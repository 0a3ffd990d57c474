"""Draw the picture of docs/guide/proof.md: how the lower bound rises until it meets the inertia.

Run it with ``make picture``. The proofs are those of the library, for Iris and four numbers of
clusters; the seconds are those of the processor, so that other programs do not matter.
"""

from __future__ import annotations

import time
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from sklearn.datasets import load_iris

from evomeans import HGMeans
from evomeans.exact.certify import prepare

IMAGES = Path(__file__).resolve().parents[1] / "images"
INK, TEXT, LINE = "#1b1f24", "#4a5058", "#d5d9de"
# Okabe and Ito's colours, which stay apart for colour-blind readers; the markers differ as well.
STYLES = {2: ("#0072B2", "o"), 3: ("#D55E00", "s"), 5: ("#009E73", "^"), 10: ("#CC79A7", "D")}
SHOWN = 3
GAP = 1e-6

Course = list[tuple[float, float, float]]
"""Seconds, lower bound and upper bound."""


def course_of(k: int) -> Course:
    """Prove Iris with k clusters, and note both bounds on the way."""
    X = load_iris().data
    model = HGMeans(k, random_state=0).fit(X)
    began = time.process_time()
    course: Course = []

    def note(lower: float, upper: float, nodes: int) -> None:
        course.append((time.process_time() - began, lower, upper))

    found = model.certify(X, gap=GAP, progress=note)
    course.append((time.process_time() - began, found.lower_bound, found.upper_bound))
    # A tree tells the bound of its root first; bounds only rise.
    best = 0.0
    rising: Course = []
    for seconds, lower, upper in course:
        best = max(best, lower)
        rising.append((seconds, best, upper))
    return rising


def plain(axes: Axes, title: str) -> None:
    """Leave out what is not needed."""
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=TEXT)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_xlabel("seconds", fontsize=9, color=TEXT)


def draw_bounds(axes: Axes, course: Course) -> None:
    """Draw both bounds of one problem."""
    seconds, lower, upper = zip(*course, strict=True)
    color, marker = STYLES[SHOWN]
    axes.fill_between(seconds, lower, upper, color=LINE, alpha=0.5, linewidth=0)
    axes.plot(seconds, upper, color=INK, linewidth=1.6)
    axes.plot(seconds, lower, color=color, marker=marker, markersize=3.5, linewidth=1.2)
    low = lower[0]
    axes.set_ylim(low - 0.1 * (upper[0] - low), upper[0] + 0.25 * (upper[0] - low))
    label = f"inertia of the clustering, {upper[0]:.4f}"
    place = upper[0] + 0.06 * (upper[0] - low)
    axes.text(seconds[-1] * 0.98, place, label, ha="right", va="bottom", fontsize=8)
    middle = 2
    axes.annotate(
        "no clustering is lower than this",
        (seconds[middle], lower[middle]),
        (seconds[-1] * 0.98, low + 0.15 * (upper[0] - low)),
        ha="right",
        fontsize=8,
        color=color,
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.7},
    )
    plain(axes, f"Iris, {SHOWN} clusters: both bounds meet")
    axes.set_ylabel("inertia", fontsize=9, color=TEXT)


def draw_gaps(axes: Axes, courses: dict[int, Course]) -> None:
    """Draw what is left between the bounds, for all problems."""
    for k, course in courses.items():
        color, marker = STYLES[k]
        seconds = [one[0] for one in course]
        gaps = [max(100 * (upper - lower) / upper, 1e-7) for _, lower, upper in course]
        axes.plot(seconds, gaps, color=color, marker=marker, markersize=3.5, linewidth=1.2)
        end, words = (seconds[-1], gaps[-1]), {"fontsize": 8, "color": color, "va": "top"}
        axes.annotate(f"k = {k}", end, (7, 0), textcoords="offset points", **words)
    axes.axhline(100 * GAP, color=INK, linewidth=0.8, linestyle="--")
    axes.margins(x=0.13)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    plain(axes, "Gap; optimal below the dashed line")


def main() -> None:
    """Draw and write."""
    prepare()
    courses = {k: course_of(k) for k in STYLES}
    figure = Figure(figsize=(9.0, 3.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_bounds(left, courses[SHOWN])
    draw_gaps(right, courses)
    path = IMAGES / "proof.png"
    figure.savefig(path)
    print(path)


if __name__ == "__main__":
    main()
