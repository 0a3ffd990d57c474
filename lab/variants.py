"""Variants of the deep strategy at equal CPU time: what ``ideas`` and ``shares`` have in common.

The strategy of the paper runs to its own end on every set-up and with every seed; then the deep
strategy and variants of it run for a share of that CPU time.
"""

from __future__ import annotations

import argparse
import os
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evomeans.search import DEEP, PAPER, SearchSettings
from lab.measure import RESULTS, parse_setup, parser_for
from lab.paper.ablation import SUCCESS, compile_kernels, search
from lab.paper.analysis import EQUAL, in_order, with_gaps
from lab.paper.experiment import Row
from lab.paper.markdown import number, p_value, table
from lab.paper.runner import complete_rows, run_tasks
from lab.paper.statistics import wilcoxon
from lab.setups import samples_of


@dataclass(frozen=True)
class VariantsTask(ABC):
    """Run the paper's strategy, the deep one and its variants on a set-up, with one seed."""

    setup: str
    seed: int
    share: float

    @property
    def key(self) -> tuple[str, ...]:
        """Set-up, seed and share of the time."""
        return self.setup, str(self.seed), str(self.share)

    @abstractmethod
    def variants(self) -> Mapping[str, SearchSettings]:
        """Return what is compared with the deep strategy."""

    def run(self) -> list[Row]:
        """Return a row per variant."""
        X, m = samples_of(self.setup)
        deep = {"deep": SearchSettings(strategy=DEEP), **self.variants()}
        compile_kernels(X, m)
        brief = {"min_population": 4, "max_population": 8, "max_offspring": 40}
        for settings in deep.values():
            search(X[:200], min(m, 50), 0, replace(settings, **brief))
        result, seconds = search(X, m, self.seed, SearchSettings(strategy=PAPER))
        rows = [self._row("paper", result, seconds)]
        budget = self.share * seconds
        for name, settings in deep.items():
            # It has as much time as it is given, not as many offspring.
            timed = replace(settings, max_time=budget, max_offspring=10**9)
            rows.append(self._row(name, *search(X, m, self.seed, timed)))
        return rows

    def _row(self, name: str, result: Any, seconds: float) -> Row:
        dataset, m = parse_setup(self.setup)
        return {
            "dataset": dataset,
            "m": m,
            "method": name,
            "seed": self.seed,
            "share": self.share,
            "inertia": result.best.inertia,
            "cpu_s": round(seconds, 6),
            "offspring": result.n_offspring,
        }


def summary(rows: Sequence[Row]) -> str:
    """Return a table with a row per variant."""
    scored = with_gaps(rows)
    gaps: dict[str, dict[Any, float]] = {}
    for row in scored:
        gaps.setdefault(row["method"], {})[row["dataset"], row["m"], row["seed"]] = row["gap"]
    lines = []
    for method in in_order(row["method"] for row in scored):
        own = gaps[method]
        pairs = [own[key] - gaps["deep"][key] for key in own]
        pairs = [0.0 if abs(one) <= EQUAL else one for one in pairs]
        lines.append(
            [
                method,
                number(statistics.fmean(own.values()), "{:.4f}"),
                number(max(own.values()), "{:.3f}"),
                f"{100 * statistics.fmean(gap <= SUCCESS for gap in own.values()):.0f} %",
                f"{sum(one < 0 for one in pairs)} / {sum(one > 0 for one in pairs)}",
                "–" if method == "deep" else p_value(wilcoxon(pairs)),
            ]
        )
    titles = ["", "mean gap (%)", "worst gap", "success", "better / worse than deep", "p"]
    return table(titles, lines)


def parse_arguments(doc: str | None, share: float) -> argparse.Namespace:
    parser = parser_for(doc)
    parser.add_argument("setups", nargs="*", help="dataset:clusters")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=700)
    parser.add_argument("--share", type=float, default=share, help="of the paper's CPU time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def compare(
    kind: type[VariantsTask], file: str, setups: Sequence[str], share: float, doc: str | None
) -> None:
    """Run what the command line asks for, keep the rows, and print the table."""
    chosen = parse_arguments(doc, share)
    path = chosen.results / file
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    tasks = [kind(setup, seed, chosen.share) for seed in seeds for setup in chosen.setups or setups]
    run_tasks(tasks, path, chosen.workers)
    rows = [row for row in complete_rows(path) if row["share"] == chosen.share]
    found = {(row["dataset"], row["m"]) for row in rows}
    print(f"{len(found)} set-ups, {len({row['seed'] for row in rows})} seeds")
    print(summary(rows))
