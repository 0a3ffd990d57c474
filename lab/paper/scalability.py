"""Tables 6 and 7 and the figure of CPU times: standard and fast settings by number of clusters."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from lab.measure import read_rows
from lab.paper.analysis import averaged, in_order, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.figures import draw_times
from lab.paper.markdown import number, seconds, table
from lab.paper.methods import HG_FAST, HG_MEANS, hg_fast, hg_means
from lab.paper.printed import (
    LARGEST_OTHER_POWER,
    POWER_IN_D,
    POWER_IN_M,
    POWER_IN_N,
    printed,
)
from lab.paper.statistics import fit_power_law
from lab.paper.tasks import at_hand, in_groups, method_tasks, not_larger

SEEDS = {Size.SMOKE: 1, Size.SMALL: 1, Size.PAPER: 3}
TABLES = {HG_MEANS: 6, HG_FAST: 7}
SMOKE_CLUSTERS = (2, 3, 5)
# The law in n and d is fitted at this number of clusters, to data sets of groups B and C.
CLUSTERS_OF_LAW = 10
# Whose times are in the figure too, where Tables 2 and 3 have been run in the same folder.
BASELINES = ("K-means repeated", "SAGA", "GKM", "MGKM", "MS-MGKM")


def plan(size: Size) -> Plan:
    """Return the largest data sets first."""
    methods, seeds = [hg_means(), hg_fast()], SEEDS[size]
    if size is Size.SMOKE:
        tasks = list(method_tasks("german_towns", SMOKE_CLUSTERS, methods, seeds))
        return Plan([*tasks, *method_tasks("iris", SMOKE_CLUSTERS, methods, seeds)])
    large, missing = at_hand(not_larger(in_groups("C"), size))
    medium, also_missing = at_hand(in_groups("B"))
    large.sort(key=lambda dataset: -dataset.n * dataset.d)
    tasks = [
        task
        for dataset in large
        for task in method_tasks(dataset.name, dataset.clusters, methods, seeds)
    ]
    for dataset in medium:
        tasks += method_tasks(dataset.name, (CLUSTERS_OF_LAW,), methods, seeds)
    return Plan(tasks, [*missing, *also_missing])


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return both tables, the power laws, and draw the figure."""
    scored = with_gaps(rows)
    baselines = [row for row in read_rows(folder / "comparison.csv") if row["method"] in BASELINES]
    draw_times(scored, baselines, folder / "scalability.png")
    parts = [_table(scored, method) for method in TABLES]
    parts += [_laws_in_m(scored), _law_in_n_and_d(scored, size), _speed_of_fast(scored)]
    parts.append("![CPU time by number of clusters](scalability.png)\n")
    return "\n".join(parts)


def _table(rows: Sequence[Row], method: str) -> str:
    own = [row for row in rows if row["method"] == method]
    by_setup = _several_clusters(own)
    clusters = sorted({m for _, m in by_setup})
    gaps = averaged(own, "gap", lambda row: (row["dataset"], row["m"]))
    times = averaged(own, "cpu_s", lambda row: (row["dataset"], row["m"]))
    gap_lines, time_lines = [], []
    for dataset in in_order(name for name, _ in by_setup):
        gap_cells, time_cells = [dataset], [dataset]
        for m in clusters:
            where = {"dataset": dataset, "m": m}
            theirs = number(printed(TABLES[method], "gap", **where))
            gap_cells.append(f"{number(gaps.get((dataset, m)))} ({theirs})")
            theirs = seconds(printed(TABLES[method], "seconds", **where))
            time_cells.append(f"{seconds(times.get((dataset, m)))} ({theirs})")
        gap_lines.append(gap_cells)
        time_lines.append(time_cells)
    titles = ["", *(f"m = {m}" for m in clusters)]
    return (
        f"## Table {TABLES[method]}: {method}\n\nGap in percent, ours (the paper's):\n\n"
        + table(titles, gap_lines)
        + "\nCPU seconds, ours (the paper's):\n\n"
        + table(titles, time_lines)
    )


def _several_clusters(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Return the problems of data sets that were run for several numbers of clusters."""
    setups = [(row["dataset"], row["m"]) for row in rows]
    return [one for one in setups if len({m for name, m in setups if name == one[0]}) > 1]


def _laws_in_m(rows: Sequence[Row]) -> str:
    lines = []
    own = [row for row in rows if row["method"] == HG_MEANS]
    for dataset in in_order(name for name, _ in _several_clusters(own)):
        times = averaged(
            (row for row in own if row["dataset"] == dataset), "cpu_s", lambda row: row["m"]
        )
        law = fit_power_law(list(times.values()), list(times))  # type: ignore[arg-type]
        theirs = POWER_IN_M.get(dataset)
        lines.append(
            [
                dataset,
                number(law.exponents[0]),
                number(theirs) if theirs else f"≤ {LARGEST_OTHER_POWER}",
                number(law.r_squared),
            ]
        )
    titles = ["", "exponent of m", "paper", "R²"]
    return "## Time as a power of the number of clusters, standard setting\n\n" + table(
        titles, lines
    )


def _law_in_n_and_d(rows: Sequence[Row], size: Size) -> str:
    clusters = SMOKE_CLUSTERS[0] if size is Size.SMOKE else CLUSTERS_OF_LAW
    own = [row for row in rows if row["method"] == HG_MEANS and row["m"] == clusters]
    shapes = averaged(own, "cpu_s", lambda row: (row["n"], row["d"]))
    if len(shapes) < 4:
        return f"Only {len(shapes)} data sets were run with m = {clusters}: no law in n and d.\n"
    n, d = zip(*shapes, strict=True)  # type: ignore[misc]
    law = fit_power_law(list(shapes.values()), n, d)
    return (
        f"For m = {clusters}, over {len(shapes)} data sets, the time of the standard setting grows "
        f"like n^{law.exponents[0]:.2f} · d^{law.exponents[1]:.2f} (R² = {law.r_squared:.2f}); the "
        f"paper, over its large data sets alone, has n^{POWER_IN_N} · d^{POWER_IN_D}.\n"
    )


def _speed_of_fast(rows: Sequence[Row]) -> str:
    times = averaged(rows, "cpu_s", lambda row: (row["dataset"], row["m"], row["method"]))
    gaps = averaged(rows, "gap", lambda row: row["method"])
    ratios = [
        value / times[(*key[:2], HG_FAST)]  # type: ignore[index]
        for key, value in times.items()
        if key[2] == HG_MEANS  # type: ignore[index]
    ]
    return (
        f"The fast setting is {statistics.fmean(ratios):.1f} times as fast as the standard one on "
        f"average (the paper: 7), with an average gap of {number(gaps[HG_FAST], '{:.3f}')} % "
        f"instead of {number(gaps[HG_MEANS], '{:.3f}')} %.\n"
    )


SCALABILITY = Experiment(
    "scalability",
    "Tables 6 and 7, the figure of CPU times, and power laws in m and in n and d",
    plan,
    render,
)
