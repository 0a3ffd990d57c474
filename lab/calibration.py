"""Are searches as good as they say? ``n_rediscoveries_`` against how often the best was found.

Run these commands one after the other; the first two take ten minutes of CPU time or so::

    python -m lab whole_runs --results lab/results/whole_runs.csv
    python -m lab whole_runs --fast --results lab/results/whole_runs_fast.csv
    python -m lab calibration --picture docs/images/calibration.png

The last one prints a table of what the rows say, and draws it. A success is a run within 0.01 % of
the best value known. The interval is Wilson's, with a confidence of 95 % [1]_; it takes runs as
independent, though ten of them share a data set and a number of clusters.

References
----------
.. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22, 209-212, 1927.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import binomtest

from lab.measure import RESULTS, Column, Table, parser_for, read_rows
from lab.paper.ablation import SUCCESS

FILES = {"default": "whole_runs.csv", "fast": "whole_runs_fast.csv"}
COLORS = {"default": "#2a6f97", "fast": "#c44e52"}
# Runs with at least this many rediscoveries are counted together.
MANY = 3
COLUMNS = (
    Column("setting", "setting"),
    Column("n_rediscoveries_", "said"),
    Column("runs", "runs"),
    Column("success", "share", "{:.1f} %", 100.0),
    Column("from", "low", "{:.1f} %", 100.0),
    Column("to", "high", "{:.1f} %", 100.0),
)


class Group(NamedTuple):
    """Runs of a setting that say the same of themselves.

    Parameters
    ----------
    setting : str
    said : str
        ``n_rediscoveries_``.
    runs : int
    share, low, high : float
        Successes among them, and the interval.
    """

    setting: str
    said: str
    runs: int
    share: float
    low: float
    high: float


def grouped(setting: str, rows: Sequence[dict[str, Any]]) -> list[Group]:
    """Group the runs of a setting by what they say."""
    groups = []
    for said in range(MANY + 1):
        own = [row["gap"] <= SUCCESS for row in rows if min(row["rediscoveries"], MANY) == said]
        if own:
            name = f"{said} or more" if said == MANY else str(said)
            interval = binomtest(sum(own), len(own)).proportion_ci(0.95, method="wilson")
            share = sum(own) / len(own)
            groups.append(Group(setting, name, len(own), share, interval.low, interval.high))
    return groups


def draw(groups: Sequence[Group], path: Path) -> None:
    """Draw the shares of successes, with their intervals and numbers of runs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    said = [*map(str, range(MANY)), f"{MANY} or more"]
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for setting, shift in zip(FILES, (-0.08, 0.08), strict=True):
        own = [group for group in groups if group.setting == setting]
        if not own:
            continue
        places = [said.index(group.said) + shift for group in own]
        shares = [100.0 * group.share for group in own]
        below = [100.0 * (group.share - group.low) for group in own]
        above = [100.0 * (group.high - group.share) for group in own]
        label = "HGMeans" if setting == "default" else f"HGMeans.{setting}"
        style = {"color": COLORS[setting], "capsize": 3, "marker": "o", "linestyle": ""}
        axes.errorbar(places, shares, yerr=[below, above], label=label, **style)
        for place, group in zip(places, own, strict=True):
            side = "right" if shift < 0.0 else "left"
            axes.annotate(
                f"{group.runs} runs",
                (place, 100.0 * group.share),
                xytext=(-6.0 if shift < 0.0 else 6.0, 0.0),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=8,
                color=COLORS[setting],
            )
    axes.set_xticks(range(len(said)), said)
    axes.set_xlim(-0.6, len(said) - 0.4)
    axes.set_xlabel("n_rediscoveries_ of a run")
    axes.set_ylabel("within 0.01 % of the best known, %")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=150)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("calibration", __doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the rows")
    parser.add_argument("--picture", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse_arguments(arguments)
    groups = [
        group
        for setting, name in FILES.items()
        for group in grouped(setting, read_rows(chosen.results / name))
    ]
    if not groups:
        names = " and ".join(FILES.values())
        raise SystemExit(f"There is neither of {names} in {chosen.results}; see --help.")
    table = Table(COLUMNS, max(FILES, key=len))
    table.print_head()
    for group in groups:
        table.print_row(group._asdict())
    if chosen.picture is not None:
        draw(groups, chosen.picture)
