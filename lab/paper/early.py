"""Early answers: how deep a search is when its rivals have an answer, on each problem by itself.

Time is counted as for the anytime curves, in single-threaded scikit-learn runs. The search is run
once for every time, with that as its ``max_time``, as a user would set it: where there are many
rows, it decides by the time that is left how long to search on a sample. A rival is followed once,
and begins again with new random numbers if it ends before its time is up.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

from lab.paper.analysis import in_order, with_gaps
from lab.paper.anytime import TraceTask, setup_of, tracer
from lab.paper.experiment import Experiment, Plan, Row, Size, Task
from lab.paper.markdown import number, table
from lab.paper.methods import HG_DEEP, KMEANS_PLUS, repeated
from lab.paper.tasks import SeedTask, split_setups

TIMES = (1, 2, 5, 10, 20, 50)
"""In scikit-learn runs."""
RIVALS = (repeated(KMEANS_PLUS), "breathing k-means", "FLS++", "bkmeans", "flspp")
"""What people use today: ours where there are two, and the authors' packages."""
# Percent that a rival has to be lower by; the search takes such differences for nothing, too.
NOTHING = 1e-3
SETUPS = {
    Size.SMOKE: ("iris:6",),
    Size.SMALL: (
        # A few samples lie far out, and clusters are large: an early answer is easily a bad one.
        "page_blocks:20",
        "eeg_eye_state:20",
        "shuttle:15",
        "heart:20",
        "ionosphere:20",
        "tsplib3038:50",
        "pendigit:50",
        "letters:26",
        "skin:20",
    ),
    Size.PAPER: (
        *(f"page_blocks:{m}" for m in (10, 20)),
        *(f"eeg_eye_state:{m}" for m in (10, 20)),
        *(f"shuttle:{m}" for m in (10, 15, 20)),
        *(f"skin:{m}" for m in (10, 20)),
        *(f"heart:{m}" for m in (20, 40)),
        *(f"ionosphere:{m}" for m in (10, 20, 50)),
        *(f"tsplib3038:{m}" for m in (20, 50, 100)),
        *(f"pendigit:{m}" for m in (20, 50, 100)),
        *(f"letters:{m}" for m in (26, 100)),
        *(f"d15112:{m}" for m in (25, 100)),
    ),
}
SEEDS = {Size.SMOKE: 1, Size.SMALL: 3, Size.PAPER: 5}


@dataclass(frozen=True)
class EarlyTask(SeedTask):
    """Let the search have each of the times."""

    @property
    def key(self) -> tuple[str, ...]:
        """As if it were followed once."""
        return TraceTask(self.dataset, self.m, HG_DEEP, self.seed, max(TIMES)).key

    def run(self) -> list[Row]:
        """Return a row for every time after which there is a solution."""
        found = [
            row
            for y in TIMES
            for row in TraceTask(self.dataset, self.m, HG_DEEP, self.seed, y).run()
            if row["y"] == y
        ]
        if not found:
            raise RuntimeError(f"no solution of {self.dataset}:{self.m} after {max(TIMES)} runs")
        return found


def plan(size: Size) -> Plan:
    """Return the default search and all rivals that are installed, on all problems."""
    setups, missing = split_setups(SETUPS[size])
    tracers = [tracer(name) for name in RIVALS]
    tasks: list[Task] = []
    for (dataset, m), seed in product(setups, range(SEEDS[size])):
        tasks.append(EarlyTask(dataset, m, seed))
        tasks += [
            TraceTask(dataset, m, one.name, seed, max(TIMES)) for one in tracers if one.is_installed
        ]
    absent = [f"the package {one.package}" for one in tracers if not one.is_installed]
    return Plan(tasks, [*missing, *absent])


class Cell(NamedTuple):
    """Mean gaps on a problem after some time, None where not every run had a solution.

    Parameters
    ----------
    ours, theirs : float, optional
    rival : str
        The best one, if there is one.
    """

    ours: float | None
    theirs: float | None
    rival: str = ""

    @property
    def is_behind(self) -> bool:
        """Whether the rival is ahead."""
        if self.theirs is None:
            return False
        return self.ours is None or self.theirs < self.ours - NOTHING

    @property
    def text(self) -> str:
        """Both gaps; in bold if the rival is ahead."""
        text = f"{number(self.ours, '{:.3f}')} / {number(self.theirs, '{:.3f}')}"
        return f"**{text}**" if self.is_behind else text

    @property
    def lag(self) -> str:
        """By how much it is behind."""
        if self.ours is None or self.theirs is None:
            return f"no answer yet, {self.rival} has one"
        return f"{self.ours - self.theirs:.3g} % behind {self.rival}"


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return the mean gaps of the search and of the best rival, and where a rival is ahead."""
    means = mean_gaps(with_gaps(rows))
    setups = in_order(setup_of(row) for row in rows)
    cells = {(setup, y): cell(means, setup, y) for setup, y in product(setups, TIMES)}
    behind = [f"- {at[0]} at {at[1]} Y: {one.lag}" for at, one in cells.items() if one.is_behind]
    n_compared = sum(one.theirs is not None for one in cells.values())
    seeds = sorted({len({row["seed"] for row in rows if setup_of(row) == own}) for own in setups})
    rivals = in_order(row["method"] for row in rows if row["method"] in RIVALS)
    text = [
        f"Mean gap in percent to the best value known, over {' or '.join(map(str, seeds))} seeds, "
        f"after the CPU time of 1 to {max(TIMES)} scikit-learn runs (Y): {HG_DEEP} / the best of "
        f"{', '.join(rivals)}. In bold: the rival is ahead by more than {NOTHING} %. A dash: not "
        "every run had a solution yet.\n",
        table(
            ["", *(f"{y} Y" for y in TIMES)],
            [[setup, *(cells[setup, y].text for y in TIMES)] for setup in setups],
        ),
        f"A rival is ahead in {len(behind)} of {n_compared} cells.\n",
    ]
    return "\n".join([*text, *behind, ""])


def cell(means: dict[tuple[str, str, float], float], setup: str, y: float) -> Cell:
    """Compare the search with the best of its rivals."""
    rivals = {name: means[setup, name, y] for name in RIVALS if (setup, name, y) in means}
    ours = means.get((setup, HG_DEEP, y))
    if not rivals:
        return Cell(ours, None)
    best = min(rivals, key=lambda name: rivals[name])
    return Cell(ours, rivals[best], best)


def mean_gaps(rows: Sequence[Row]) -> dict[tuple[str, str, float], float]:
    """Return the gap by problem, method and time, where there is one for every seed."""
    gaps: dict[tuple[str, str, float], list[float]] = {}
    seeds: dict[str, set[int]] = {}
    for row in rows:
        gaps.setdefault((setup_of(row), row["method"], row["y"]), []).append(row["gap"])
        seeds.setdefault(setup_of(row), set()).add(row["seed"])
    return {
        key: statistics.fmean(own) for key, own in gaps.items() if len(own) == len(seeds[key[0]])
    }


EARLY = Experiment(
    "early",
    "Early answers: the default search compared with the best rival, one by one",
    plan,
    render,
)
