"""Ideas of newer rivals as operators of the deep strategy, at equal CPU time.

``python -m benchmarks.ideas`` runs the strategy of the paper to its own end on every set-up and
with every seed, then the deep strategy and variants of it, each in ``--share`` of that CPU time. In
a variant, a part of the offspring is made by an operator that a rival suggests:

  thresholds   matching crossover, then passes of single moves under a falling threshold (Smartigan)
  shaken       no crossover: such passes perturb the first parent, and no centre is relocated
  pooled       k-means++ draws from the centres of both parents (recombinator K-means)
  differences  a parent plus a share of the difference of two others (MDEClust)

Gaps are to the lowest value known. The p-value is that of the Wilcoxon test of the paired gaps of a
variant and of the deep strategy. Rows are kept as in ``benchmarks.rivals``.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import exit_on_data_errors
from benchmarks.measure import RESULTS, parse_setup, parser_for
from benchmarks.paper.ablation import SUCCESS, compile_kernels, search
from benchmarks.paper.analysis import EQUAL, in_order, with_gaps
from benchmarks.paper.experiment import Row
from benchmarks.paper.markdown import number, p_value, table
from benchmarks.paper.runner import complete_rows, run_tasks
from benchmarks.paper.statistics import wilcoxon
from benchmarks.setups import samples_of
from evomeans.baselines.mdeclust import difference_child
from evomeans.baselines.smartigan import threshold_accepting
from evomeans.search import DEEP, PAPER, Crossing, Individual, SearchSettings, Strategy
from evomeans.search.crossover import Breeding, Child, squared_matching_crossover

SETUPS = (
    *("liver:50", "liver:40", "pima:100", "pima:40", "ionosphere:50", "ionosphere:20"),
    *("tsplib1060:50", "tsplib3038:100", "image_segmentation:100", "image_segmentation:40"),
)
# Of the offspring that an idea makes, and its parameters. Many passes with the published threshold
# of 1.5 would leave nothing of the parents.
PART, PASSES, THRESHOLD, CANDIDATES = 0.3, 3, 1.2, 4
Crossover = Callable[[Individual, Individual, Breeding], Child | None]


def perturbed(centers: np.ndarray, breeding: Breeding) -> np.ndarray:
    """Make passes of single moves under a threshold."""
    engine: Any = breeding.engine
    rng = breeding.rng
    orders = [rng.permutation(engine.n_samples) for _ in range(PASSES)]
    return threshold_accepting(engine, centers, orders, THRESHOLD)


def threshold_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Match the parents, then perturb the child."""
    child = squared_matching_crossover(first, second, breeding)
    return Child(perturbed(child.centers, breeding), child.parent)


def shaken_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Perturb the first parent; its relocation is left out."""
    return Child(perturbed(first.centers, breeding), first, is_complete=True)


def pooled_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Draw the centres of the child from those of both parents by k-means++."""
    engine: Any = breeding.engine
    pool, k = np.concatenate([first.centers, second.centers]), len(first.centers)
    drawn = engine.seed_from(pool, np.ones(2 * k), breeding.rng.random((k, CANDIDATES)))
    # Centres of the first parent stay where they were, so that the engine can build on it.
    own = np.sort(drawn[drawn < k])
    centers = np.empty_like(first.centers)
    centers[own] = first.centers[own]
    centers[np.setdiff1d(np.arange(k), own)] = pool[drawn[drawn >= k]]
    return Child(centers, first)


@dataclass(eq=False)
class Differences:
    """S₁ + F·(S₂ − S₃), where S₃ is a parent of an earlier child."""

    __name__ = "difference_crossover"
    earlier: Individual | None = field(default=None, init=False)

    def __call__(self, first: Individual, second: Individual, breeding: Breeding) -> Child | None:
        """Make a child, unless there is no third solution of the same search yet."""
        third, self.earlier = self.earlier, first
        if third is None or third.centers.shape != first.centers.shape:
            return None
        factor = float(breeding.rng.uniform(0.5, 0.8))
        centers = difference_child(first.centers, second.centers, third.centers, factor)
        return Child(centers, third)


def with_idea(crossover: Crossover) -> Strategy:
    """Let an idea make a part of the offspring of the deep strategy, before matching."""
    *others, last = DEEP.crossovers
    name = f"deep, {Crossing(crossover).name}"
    return replace(DEEP, name=name, crossovers=(*others, Crossing(crossover, PART), last))


def variants() -> dict[str, Strategy]:
    """Return the strategies that are compared, the paper's first, which sets the time."""
    ideas = {
        "thresholds": threshold_crossover,
        "shaken": shaken_crossover,
        "pooled": pooled_crossover,
        "differences": Differences(),
    }
    named = {f"deep, {name}": with_idea(crossover) for name, crossover in ideas.items()}
    return {"paper": PAPER, "deep": DEEP, **named}


@dataclass(frozen=True)
class IdeaTask:
    """Run all variants on a set-up, with one seed."""

    setup: str
    seed: int
    share: float

    @property
    def key(self) -> tuple[str, ...]:
        """Set-up, seed and share of the time."""
        return self.setup, str(self.seed), str(self.share)

    def run(self) -> list[Row]:
        """Return a row per variant."""
        X, m = samples_of(self.setup)
        compile_kernels(X, m)
        brief = SearchSettings(4, 8, max_offspring=40)
        for strategy in variants().values():
            search(X[:200], min(m, 50), 0, replace(brief, strategy=strategy))
        rows: list[Row] = []
        budget = 0.0
        for name, strategy in variants().items():
            settings = SearchSettings(strategy=strategy)
            if rows:
                # It has as much time as it is given, not as many offspring.
                settings = replace(settings, max_time=budget, max_offspring=10**9)
            result, seconds = search(X, m, self.seed, settings)
            budget = budget or self.share * seconds
            rows.append(
                {
                    "dataset": parse_setup(self.setup)[0],
                    "m": m,
                    "method": name,
                    "seed": self.seed,
                    "share": self.share,
                    "inertia": result.best.inertia,
                    "cpu_s": round(seconds, 6),
                    "offspring": result.n_offspring,
                }
            )
        return rows


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


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=700)
    parser.add_argument("--share", type=float, default=0.3, help="of the paper's CPU time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    chosen = parse_arguments()
    path = chosen.results / "ideas.csv"
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    tasks = [
        IdeaTask(setup, seed, chosen.share) for setup in chosen.setups or SETUPS for seed in seeds
    ]
    run_tasks(tasks, path, chosen.workers)
    rows = [row for row in complete_rows(path) if row["share"] == chosen.share]
    setups = {(row["dataset"], row["m"]) for row in rows}
    print(f"{len(setups)} set-ups, {len({row['seed'] for row in rows})} seeds")
    print(summary(rows))


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
