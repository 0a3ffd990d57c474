"""Two pictures: gaps against CPU time, and mean ranks with their critical difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from lab.paper.analysis import percent_above, references, setup_of
from lab.paper.experiment import Row
from lab.paper.figures import COLOURS, SMALLEST_GAP, STYLE, pyplot
from lab.paper.methods import HG_DEEP, HG_FAST, HG_MEANS
from lab.rivals.race import SHARES
from lab.rivals.ranks import Ranking

OURS = (HG_DEEP, HG_MEANS, HG_FAST)
# Lines of other methods are told apart by these, where colours come twice.
DASHES = ("-", "--", ":", "-.")
# The inches that a method takes beneath the axis of ranks, and those beside it.
ROW, MARGIN = 0.22, 2.1


def draw_anytime(rows: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Median over all races of the best gap so far, against the share of the CPU time.

    The median is defined as long as half of the races have a solution.
    """
    lowest = references(rows)
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, panel = plt.subplots(figsize=(9.0, 5.0), layout="constrained")
        others = cycle(_others())
        for method in methods:
            own = [row for row in rows if row["method"] == method]
            curve = []
            for share in SHARES:
                gaps = [percent_above(row[f"at_{share}"], lowest[setup_of(row)]) for row in own]
                middle = float(np.median([math.inf if math.isnan(gap) else gap for gap in gaps]))
                curve.append(max(middle, SMALLEST_GAP) if math.isfinite(middle) else math.nan)
            is_ours = method in OURS
            colour, dashes = (COLOURS[method], "-") if is_ours else next(others)
            panel.plot(
                SHARES,
                curve,
                color=colour,
                linestyle=dashes,
                linewidth=2.6 if is_ours else 1.3,
                zorder=3 if is_ours else 2,
                label=method,
            )
        panel.set(xscale="log", yscale="log", xlabel="share of the CPU time (%)")
        panel.set_ylabel("median gap (%)")
        panel.set_xticks(SHARES, [str(share) for share in SHARES])
        panel.minorticks_off()
        figure.legend(loc="outside right upper")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)


def _others() -> list[tuple[str, str]]:
    """Return colours and dashes for the methods that are not ours."""
    colours = ("#c23b4b", "#2a6fbb", "#e07a1f", "#8e4fa8", "#6b4f1d", "#6f6f6f", "#17a2b8")
    return [(colour, dashes) for dashes in DASHES for colour in colours]


def draw_ranks(methods: Sequence[str], ranking: Ranking, path: Path) -> None:
    """Draw a critical-difference diagram (Demšar 2006): an axis of ranks, and bars that join.

    The better half of the methods is named on the left, the other on the right.
    """
    plt = pyplot()
    order = np.argsort(ranking.ranks, kind="stable")
    count = len(order)
    left, right = order[: (count + 1) // 2], order[(count + 1) // 2 :][::-1]
    groups = ranking.groups()
    depth = 0.3 + 0.16 * len(groups)
    with plt.rc_context({**STYLE, "axes.grid": False}):
        height = 1.1 + depth + ROW * len(left)
        figure, axes = plt.subplots(figsize=(9.0, height))
        axes.set(xlim=(1, count), ylim=(depth + ROW * len(left) + 0.1, -0.75))
        axes.axis("off")
        figure.subplots_adjust(left=MARGIN / 9, right=1 - MARGIN / 9, top=0.99, bottom=0.01)
        axes.plot([1, count], [0, 0], color="black", linewidth=1)
        for rank in range(1, count + 1):
            axes.plot([rank, rank], [-0.07, 0], color="black", linewidth=1)
            axes.text(rank, -0.12, str(rank), ha="center", va="bottom", fontsize=8)
        width = min(ranking.critical_difference, count - 1)
        axes.plot([1, 1 + width], [-0.5, -0.5], color="black", linewidth=1.5)
        label = f"critical difference {ranking.critical_difference:.2f}"
        axes.text(1 + width / 2, -0.54, label, ha="center", va="bottom", fontsize=8)
        for place, (low, high) in enumerate(groups):
            y = 0.16 * (place + 1)
            axes.plot([low - 0.05, high + 0.05], [y, y], color="#444444", linewidth=3.2)
        for side, edge, align in ((left, 1.0, "right"), (right, float(count), "left")):
            for place, index in enumerate(side):
                y, rank = depth + ROW * (place + 0.5), ranking.ranks[index]
                name = methods[index]
                colour = COLOURS[name] if name in OURS else "#555555"
                axes.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=0.9)
                text = f"{name}  {rank:.2f}" if align == "right" else f"{rank:.2f}  {name}"
                axes.annotate(
                    text,
                    (edge, y),
                    xytext=(-5 if align == "right" else 5, 0),
                    textcoords="offset points",
                    ha=align,
                    va="center",
                    fontsize=9,
                    fontweight="bold" if name in OURS else "normal",
                    annotation_clip=False,
                )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)
