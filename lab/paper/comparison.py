"""Tables 2 and 3: every data set, number of clusters and method, and the printed figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.data import Dataset
from lab.paper.analysis import averaged, compare, in_order, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.markdown import number, p_value, seconds, table
from lab.paper.methods import (
    HG_MEANS,
    KMEANS,
    KMEANS_PLUS,
    LMBM,
    LMBM_DESCRIBED,
    Method,
    hg_means,
    incremental,
    lmbm,
    multi_start,
    nonsmooth,
    repeated,
    saga,
)
from lab.paper.printed import printed, printed_table
from lab.paper.tasks import MethodTask, at_hand, in_groups, method_tasks, not_larger

SEEDS = {Size.SMOKE: 1, Size.SMALL: 3, Size.PAPER: 10}
SMOKE_CLUSTERS = {"german_towns": (3, 6), "iris": (3, 6)}
SMALL_CLUSTERS = {
    "A1": (2, 3, 4, 5, 6, 7, 8, 9, 10),
    "A2": (5, 10, 20, 30, 50),
    "B": (10, 30, 60),
    "C": (5, 15, 25),
}
# Beyond this many samples, n² distances per added centre, and the generations of SAGA, take too
# long for a small run.
LARGEST_FOR_BASELINES = 20_000
# Beyond this many, a small run has one seed.
LARGEST_FOR_SEEDS = 4000

# Our names, in the order of the columns, and the paper's.
COLUMNS = {
    KMEANS: "K-means",
    repeated(KMEANS): "K-means x5000",
    KMEANS_PLUS: "K-means++",
    repeated(KMEANS_PLUS): "K-means++ x5000",
    "GKM": "GKM",
    "SAGA": "SAGA",
    "MGKM": "MGKM",
    "MS-MGKM": "MS-MGKM",
    "DCClust": "DCClust",
    "MS-DCA": "MS-DCA",
    "DCD-Bundle": "DCD-Bundle",
    LMBM: "LMBM-Clust",
    # Not in the paper: its program leaves one start.
    LMBM_DESCRIBED: LMBM_DESCRIBED,
    HG_MEANS: "HG-means",
}


REPEATS = {
    Size.SMALL: "5000 runs for n < 1,100, 500 for n < 10,000 and 100 for more samples; the paper's "
    "of 5000.\n",
    Size.PAPER: "5000 runs.\n",
}


def n_runs(dataset: Dataset, size: Size) -> int:
    """Return how many runs of K-means compete: fewer on larger data unless all is as printed."""
    if size is Size.SMOKE:
        return 20
    if size is Size.PAPER or dataset.n < 1100:
        return 5000
    return 500 if dataset.n < 10_000 else 100


def methods(dataset: Dataset, size: Size) -> list[Method]:
    """Return the methods that are run on a data set."""
    count = n_runs(dataset, size)
    chosen = [multi_start("random", count), multi_start("k-means++", count), hg_means()]
    chosen += [*nonsmooth(), *lmbm()]
    if size is not Size.SMALL or dataset.n <= LARGEST_FOR_BASELINES:
        chosen += [saga(), *incremental()]
    return chosen


def plan(size: Size) -> Plan:
    """Return the largest data sets first."""
    found, missing = at_hand(not_larger(in_groups("A1", "A2", "B", "C"), size))
    if size is Size.SMOKE:
        found, missing = [one for one in found if one.name in SMOKE_CLUSTERS], []
    found.sort(key=lambda dataset: -dataset.n * dataset.d)
    return Plan(list(_tasks(found, size)), missing)


def _tasks(datasets: Sequence[Dataset], size: Size) -> Iterator[MethodTask]:
    for dataset in datasets:
        clusters: Sequence[int] = dataset.clusters
        if size is Size.SMOKE:
            clusters = SMOKE_CLUSTERS[dataset.name]
        elif size is Size.SMALL:
            clusters = SMALL_CLUSTERS[dataset.group]
        for method in methods(dataset, size):
            yield from method_tasks(dataset.name, clusters, [method], _seeds(method, dataset, size))


def _seeds(method: Method, dataset: Dataset, size: Size) -> int:
    if method.name in (KMEANS, KMEANS_PLUS):
        # One multi-start holds many runs already.
        return 1
    if size is Size.SMALL and dataset.n > LARGEST_FOR_SEEDS:
        return 1
    return SEEDS[size]


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return gaps and times side by side, and the Wilcoxon tests."""
    scored = with_gaps(rows)
    parts = []
    for number_, groups, noun in ((2, ("A1", "A2", "B"), "small and medium"), (3, ("C",), "large")):
        names = {dataset.name for dataset in in_groups(*groups)}
        chosen = [row for row in scored if row["dataset"] in names]
        if chosen:
            parts.append(f"## Table {number_}: {noun} data sets\n\n" + _tables(chosen, number_))
    parts.append("## HG-means compared with each method\n\n" + _tests(scored))
    parts.append(
        "K-means and K-means++ *repeated* are the best of "
        + ("20 runs.\n" if size is Size.SMOKE else REPEATS[size])
    )
    return "\n".join(parts)


def _tables(rows: Sequence[Row], table_number: int) -> str:
    shown = [name for name in COLUMNS if any(row["method"] == name for row in rows)]
    order = in_order(row["dataset"] for row in printed_table(table_number))
    datasets = [name for name in order if any(row["dataset"] == name for row in rows)]
    gaps = averaged(rows, "gap", lambda row: (row["dataset"], row["method"]))
    times = averaged(rows, "cpu_s", lambda row: (row["dataset"], row["method"]))
    gap_rows, time_rows = [], []
    for dataset in datasets:
        gap_cells, time_cells = [dataset], [dataset]
        for name in shown:
            where = {"dataset": dataset, "method": COLUMNS[name]}
            theirs = number(printed(table_number, "gap", **where))
            gap_cells.append(f"{number(gaps.get((dataset, name)))} ({theirs})")
            theirs = seconds(printed(table_number, "seconds", **where))
            time_cells.append(f"{seconds(times.get((dataset, name)))} ({theirs})")
        gap_rows.append(gap_cells)
        time_rows.append(time_cells)
    gap_rows.append(["**median above HG-means**", *_excess(gaps, datasets, shown, table_number)])
    titles = ["", *shown]
    return (
        "Gap in percent, ours (the paper's), each averaged over the numbers of clusters that were "
        "run:\n\n"
        + table(titles, gap_rows)
        + "\nCPU seconds, ours (the paper's):\n\n"
        + table(titles, time_rows)
    )


def _excess(
    gaps: dict[object, float], datasets: Sequence[str], shown: Sequence[str], table_number: int
) -> Iterator[str]:
    """Yield each method's median excess over HG-means, which needs no common reference value."""
    for name in shown:
        ours, theirs = [], []
        for dataset in datasets:
            pair = gaps.get((dataset, name)), gaps.get((dataset, HG_MEANS))
            if pair[0] is not None and pair[1] is not None:
                ours.append(pair[0] - pair[1])
            there = printed(table_number, "gap", dataset=dataset, method=COLUMNS[name])
            best = printed(table_number, "gap", dataset=dataset, method="HG-means")
            if there is not None and best is not None:
                theirs.append(there - best)
        yield (
            f"{number(statistics.median(ours) if ours else None)} "
            f"({number(statistics.median(theirs) if theirs else None)})"
        )


def _tests(rows: Sequence[Row]) -> str:
    lines = []
    for name in COLUMNS:
        if name == HG_MEANS or not any(row["method"] == name for row in rows):
            continue
        result = compare(rows, HG_MEANS, name)
        equal = result.setups - result.better - result.worse
        counts = [result.setups, result.better, equal, result.worse]
        lines.append([name, *counts, p_value(result.p_value)])
    titles = ["", "problems", "HG-means lower", "equal", "higher", "Wilcoxon p"]
    return table(titles, lines)


COMPARISON = Experiment(
    "comparison", "Tables 2 and 3: gap and time of every method on every data set", plan, render
)
