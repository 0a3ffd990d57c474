"""From the rows of all races to a table, two pictures, and a page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.paper.ablation import SUCCESS
from lab.paper.analysis import EQUAL, averaged, in_order, setup_of, with_gaps
from lab.paper.experiment import Row
from lab.paper.markdown import number, p_value, table
from lab.rivals.figures import draw_anytime, draw_ranks
from lab.rivals.ranks import Ranking, ranked

TITLES = ["", "mean gap (%)", "worst gap (%)", "success", "mean rank", "runs", "late", "lost"]


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return a row per method, the best rank first.

    Gaps are averaged over all problems and seeds. ``late`` is the share of the races in which the
    method had no solution in time; its first one counts then. ``lost`` are those in which there was
    none when it was abandoned; they have the last rank, and no gap.
    """
    scored = with_gaps(rows)
    methods, ranking = ranking_of(scored)
    found = []
    for method in methods:
        own = [row for row in scored if row["method"] == method]
        gaps = [row["gap"] for row in own if math.isfinite(row["gap"])]
        found.append(
            {
                "method": method,
                "mean": statistics.fmean(gaps) if gaps else math.nan,
                "worst": max(gaps, default=math.nan),
                "success": statistics.fmean(row["gap"] <= SUCCESS for row in own),
                "rank": math.nan if ranking is None else ranking.ranks[methods.index(method)],
                "runs": statistics.median(row["runs"] for row in own),
                "late": statistics.fmean(row["is_late"] for row in own),
                "lost": 1.0 - len(gaps) / len(own),
            }
        )
    return sorted(found, key=lambda one: (one["rank"], one["mean"]))


def ranking_of(scored: Sequence[Row]) -> tuple[list[str], Ranking | None]:
    """Rank the methods by their mean gaps on the problems that all of them have.

    There are no ranks with fewer than two methods or problems.
    """
    methods = in_order(row["method"] for row in scored)
    gaps: dict[Any, float] = averaged(scored, "gap", lambda row: (setup_of(row), row["method"]))
    setups = in_order(setup_of(row) for row in scored)
    shared = [one for one in setups if all((one, method) in gaps for method in methods)]
    if len(shared) < 2 or len(methods) < 2:
        return methods, None
    values = np.array([[gaps[one, method] for method in methods] for one in shared])
    # Differences that are a matter of rounding are ties.
    return methods, ranked(np.round(values / EQUAL) * EQUAL)


def summary_table(rows: Sequence[Row]) -> str:
    """Return the summary as a Markdown table."""
    lines = [
        [
            one["method"],
            number(one["mean"], "{:.4f}"),
            number(one["worst"], "{:.3f}"),
            f"{100 * one['success']:.0f} %",
            number(one["rank"], "{:.2f}"),
            f"{one['runs']:.0f}",
            f"{100 * one['late']:.0f} %",
            f"{100 * one['lost']:.0f} %",
        ]
        for one in summary(rows)
    ]
    return table(TITLES, lines)


def setup_table(rows: Sequence[Row]) -> str:
    """Return the mean gap of every method on every problem."""
    scored = with_gaps(rows)
    methods = [one["method"] for one in summary(rows)]
    gaps: dict[Any, float] = averaged(scored, "gap", lambda row: (setup_of(row), row["method"]))
    setups = in_order(setup_of(row) for row in scored)
    lines = []
    for dataset, m in setups:
        own = [gaps.get(((dataset, m), method)) for method in methods]
        cells = ["lost" if gap == math.inf else number(gap, "{:.3f}") for gap in own]
        lines.append([f"{dataset}:{m}", *cells])
    return table(["", *methods], lines)


def write_page(rows: Sequence[Row], path: Path, command: str) -> str:
    """Write the page and its pictures beside the rows; return the table of methods."""
    scored = with_gaps(rows)
    setups, seeds = in_order(setup_of(row) for row in rows), {row["seed"] for row in rows}
    methods, ranking = ranking_of(scored)
    main = summary_table(rows)
    parts = [
        "# All methods at equal CPU time",
        f"{len(setups)} problems, {len(seeds)} seeds. Written by `{command}` from "
        f"[{path.with_suffix('.csv').name}]({path.with_suffix('.csv').name}). Every method is "
        "restarted with new seeds until the CPU time of the problem is used up, on one thread. "
        f"Gaps are to the lowest value known; a success is a race within {SUCCESS} % of it. "
        "`late` are races in which the method had no solution in time; its first one counts then. "
        "`lost` are those in which it had none when it was abandoned, long after. They have the "
        "last rank, and no gap.",
        main,
    ]
    anytime = path.with_name(f"{path.stem}-anytime.png")
    draw_anytime(scored, [one["method"] for one in summary(rows)], anytime)
    parts.append(f"![Mean gap against CPU time]({anytime.name})")
    if ranking is not None:
        picture = path.with_name(f"{path.stem}-ranks.png")
        draw_ranks(methods, ranking, picture)
        parts.append(
            f"Friedman's test: p = {p_value(ranking.p_value)} over {ranking.setups} problems. "
            "Methods that a bar joins are not told apart by Nemenyi's test at 5 %: their mean "
            f"ranks differ by less than {ranking.critical_difference:.2f}."
        )
        parts.append(f"![Mean ranks, and their critical difference]({picture.name})")
    parts += ["Mean gap in percent, one by one:", setup_table(rows)]
    path.write_text("\n\n".join(parts), encoding="utf-8")
    return main
