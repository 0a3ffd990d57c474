"""Tables 8 and 9: Gaussian mixtures, and whether a deeper solution tells more of the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from evomeans.metrics import centroid_index
from lab.measure import timed
from lab.mixtures import N_SAMPLES, SETUPS
from lab.paper.analysis import averaged, compare, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size, Task
from lab.paper.markdown import number, p_value, seconds, table
from lab.paper.methods import (
    HG_MEANS,
    KMEANS,
    KMEANS_PLUS,
    Result,
    best_of,
    hg_means,
    repeated,
)
from lab.paper.printed import printed
from lab.paper.problems import Problem, mixture_name, problem
from lab.paper.statistics import correlation
from lab.paper.tasks import MethodTask, row_of

SMALL_SAMPLES, SMALL_SETUPS = (
    20_000,
    ((20, 20), (20, 100), (20, 500), (50, 20), (50, 100), (50, 500)),
)
SMOKE_SAMPLES, SMOKE_SETUPS = 400, ((5, 20), (5, 50), (8, 20))
RUNS = {Size.SMOKE: 5, Size.SMALL: 100, Size.PAPER: 500}
# A single run is measured by several, each for itself.
SINGLE_RUNS = {Size.SMOKE: 2, Size.SMALL: 5, Size.PAPER: 10}

TRUTH = "from the true means"
COLUMNS = {
    KMEANS: "K-means",
    repeated(KMEANS): "K-means x500",
    KMEANS_PLUS: "K-means++",
    repeated(KMEANS_PLUS): "K-means++ x500",
    HG_MEANS: "HG-means",
    TRUTH: "K-means from the true means",
}
MEASURES = {"crand": "{:.2f}", "nmi": "{:.2f}", "ci": "{:.1f}"}
TITLES = {"crand": "adjusted Rand", "nmi": "NMI", "ci": "CI"}


def validity(problem: Problem, result: Result) -> Row:
    """Compare a result with the mixture that the samples were drawn from."""
    return {
        "crand": adjusted_rand_score(problem.labels, result.model.labels_),
        "nmi": normalized_mutual_info_score(problem.labels, result.model.labels_),
        "ci": centroid_index(problem.means, result.model.cluster_centers_),
    }


@dataclass(frozen=True)
class TruthTask:
    """Run K-means from the true means: a depth that a search should reach, if it does not pass it.

    Parameters
    ----------
    dataset : str
        Name of a mixture.
    m : int
        Its number of components.
    """

    dataset: str
    m: int

    @property
    def key(self) -> tuple[str, ...]:
        """Mixture and method."""
        return self.dataset, str(self.m), TRUTH, "0"

    def run(self) -> list[Row]:
        """Return one row."""
        given = problem(self.dataset)
        model, cpu_s = timed(
            lambda: KMeans(self.m, init=given.means, n_init=1, tol=0, max_iter=1000).fit(given.X)
        )
        result = Result(TRUTH, self.m, model.inertia_, cpu_s, model)
        return [{**row_of(self.dataset, given, result, 0), **validity(given, result)}]


def plan(size: Size) -> Plan:
    """Return all methods on all mixtures, the largest first."""
    n, setups = {
        Size.SMOKE: (SMOKE_SAMPLES, SMOKE_SETUPS),
        Size.SMALL: (SMALL_SAMPLES, SMALL_SETUPS),
        Size.PAPER: (N_SAMPLES, SETUPS),
    }[size]
    methods = [hg_means()]
    methods += [best_of(init, RUNS[size]) for init in ("random", "k-means++")]
    tasks: list[Task] = []
    for m, d in sorted(setups, key=lambda setup: -setup[0] * setup[1]):
        name = mixture_name(n, m, d)
        tasks.append(TruthTask(name, m))
        tasks += [MethodTask(name, (m,), method, 0, validity) for method in methods]
        for init in ("random", "k-means++"):
            tasks += [
                MethodTask(name, (m,), best_of(init, 1), seed, validity)
                for seed in range(SINGLE_RUNS[size])
            ]
    return Plan(tasks)


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return both tables, the tests, and what the gap says about the truth."""
    scored = with_gaps(rows)
    runs = f"*Repeated* is the best of {RUNS[size]} runs, the paper's of 500.\n"
    return "\n".join(
        [runs, _table_8(scored), _table_9(scored), _tests(scored), _correlations(scored)]
    )


def _setup(row: Row) -> tuple[int, int]:
    return row["m"], row["d"]


def _table_8(rows: Sequence[Row]) -> str:
    parts = [
        f"## Table 8: depth and time, ours with n = {rows[0]['n']:,} (the paper's with "
        f"n = {N_SAMPLES:,})\n"
    ]
    parts.append("Gap in percent:\n\n" + _side_by_side(rows, "gap", 8, "gap", number))
    parts.append("CPU seconds:\n\n" + _side_by_side(rows, "cpu_s", 8, "seconds", seconds))
    return "\n".join(parts)


def _table_9(rows: Sequence[Row]) -> str:
    parts = ["## Table 9: how much of the truth is found, ours (the paper's)\n"]
    for measure, form in MEASURES.items():
        text = _side_by_side(rows, measure, 9, measure, partial(number, form=form))
        parts.append(f"{TITLES[measure]}:\n\n{text}")
    return "\n".join(parts)


def _side_by_side(
    rows: Sequence[Row],
    measure: str,
    table_number: int,
    printed_measure: str,
    shown: Callable[[float | None], str],
) -> str:
    """Return a measure of all methods on all mixtures, ours (the paper's)."""
    values = averaged(rows, measure, lambda row: (*_setup(row), row["method"]))
    lines = []
    for m, d in sorted({_setup(row) for row in rows}):
        cells = [str(m), str(d)]
        for ours, theirs in COLUMNS.items():
            there = printed(table_number, printed_measure, m=m, d=d, method=theirs)
            cells.append(f"{shown(values.get((m, d, ours)))} ({shown(there)})")
        lines.append(cells)
    return table(["m", "d", *COLUMNS], lines, left=0)


def _tests(rows: Sequence[Row]) -> str:
    # Larger is better for two of the measures.
    flipped = [{**row, "crand": -row["crand"], "nmi": -row["nmi"]} for row in rows]
    lines = [
        [
            name,
            *(
                p_value(compare(flipped, HG_MEANS, name, measure).p_value)
                for measure in ("gap", *MEASURES)
            ),
        ]
        for name in COLUMNS
        if name not in (HG_MEANS, TRUTH)
    ]
    titles = ["HG-means against", "gap", *(TITLES[measure] for measure in MEASURES)]
    return "## Wilcoxon p-values\n\n" + table(titles, lines)


def _correlations(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["method"] != TRUTH]
    lines = []
    for measure in MEASURES:
        over_all = correlation([row["gap"] for row in found], [row[measure] for row in found])
        within = correlation(_centred(found, "gap"), _centred(found, measure))
        lines.append([TITLES[measure], number(within), number(over_all)])
    for name in (repeated(KMEANS), repeated(KMEANS_PLUS)):
        own = [row for row in found if row["method"] == name]
        over_all = correlation([row["gap"] for row in own], [row["d"] for row in own])
        lines.append([f"dimension, {name}", "–", number(over_all)])
    titles = ["Pearson's r of the gap with", "within mixtures", "over all runs"]
    return "## Correlation of the gap with the truth\n\n" + table(titles, lines)


def _centred(rows: Sequence[Row], measure: str) -> list[float]:
    """Return a measure without what is common to all runs on a mixture, which may hide the rest."""
    means = averaged(rows, measure, _setup)
    return [row[measure] - means[_setup(row)] for row in rows]


VALIDITY = Experiment(
    "validity", "Tables 8 and 9: gap, time and cluster validity on Gaussian mixtures", plan, render
)
