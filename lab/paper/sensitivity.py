"""Tables 4 and 5: how the sizes of the population and the stopping criteria matter."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lab.paper.analysis import compare, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.markdown import number, p_value, seconds, table
from lab.paper.methods import Method, hg_means
from lab.paper.printed import printed, printed_table
from lab.paper.statistics import rank_correlation
from lab.paper.tasks import at_hand, in_groups, method_tasks

SMALL_GROUPS, SMALL_CLUSTERS = ("A2", "B"), (10, 50)
SMALL_LARGEST = 4000
SEEDS = {Size.SMOKE: 1, Size.SMALL: 2, Size.PAPER: 5}
STANDARD = (10, 20, 500, 5000)

Setting = tuple[int, int, int, int]
"""Π_min, Π_max, N₁ and N₂."""


def settings_of(table_number: int) -> list[Setting]:
    """Return the settings of Table 4 or 5 in their order."""
    chosen = []
    for row in printed_table(table_number):
        stop = (row["patience"], row["max_offspring"]) if table_number == 5 else STANDARD[2:]
        chosen.append((row["min_population"], row["max_population"], *stop))
    return chosen  # type: ignore[return-value]


def method(setting: Setting) -> Method:
    """Return HG-means with a setting, named after it."""
    smallest, largest, patience, offspring = setting
    return hg_means(
        name_of(setting),
        min_population=smallest,
        max_population=largest,
        n_iter_no_change=patience,
        max_offspring=offspring,
    )


def name_of(setting: Setting) -> str:
    """Return the name under which a setting is in the rows."""
    return "HG-means ({},{}) ({},{})".format(*setting)


def plan(table_number: int, size: Size) -> Plan:
    """Return all settings on all data sets."""
    methods = [method(setting) for setting in settings_of(table_number)]
    seeds = SEEDS[size]
    if size is Size.SMOKE:
        return Plan(list(method_tasks("german_towns", (4,), methods, seeds)))
    found, missing = at_hand(in_groups("A1", "A2", "B", "C"))
    if size is Size.PAPER:
        setups = [(dataset, dataset.clusters) for dataset in found]
    else:
        missing = []
        setups = [
            (dataset, SMALL_CLUSTERS)
            for dataset in found
            if dataset.group in SMALL_GROUPS and dataset.n < SMALL_LARGEST
        ]
    setups.sort(key=lambda setup: -setup[0].n * setup[0].d)
    tasks = [
        task
        for dataset, clusters in setups
        for task in method_tasks(dataset.name, clusters, methods, seeds)
    ]
    return Plan(tasks, missing)


def render(table_number: int, rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return average gap and median time of each setting, and its test against the standard."""
    scored = with_gaps(rows)
    lines = []
    for setting, theirs in zip(settings_of(table_number), printed_table(table_number), strict=True):
        name = name_of(setting)
        own = [row for row in scored if row["method"] == name]
        test = compare(scored, name_of(STANDARD), name)
        lines.append(
            [
                "({}, {})".format(*setting[:2]),
                "({}, {})".format(*setting[2:]),
                number(statistics.fmean(row["gap"] for row in own), "{:.3f}"),
                number(theirs["gap"]),  # type: ignore[arg-type]
                seconds(statistics.median(row["cpu_s"] for row in own)),
                seconds(theirs["seconds"]),  # type: ignore[arg-type]
                "–" if setting == STANDARD else p_value(test.p_value),
            ]
        )
    titles = [
        "(Π_min, Π_max)",
        "(N₁, N₂)",
        "average gap (%)",
        "paper",
        "median CPU s",
        "paper",
        "p against the standard",
    ]
    excess = _agreement(table_number, scored)
    return f"## Table {table_number}\n\n" + table(titles, lines, left=2) + f"\n{excess}\n"


def _agreement(table_number: int, rows: Sequence[Row]) -> str:
    """Say how far both orders of the settings agree."""
    ours, theirs = [], []
    for setting in settings_of(table_number):
        own = [row["gap"] for row in rows if row["method"] == name_of(setting)]
        where = {"min_population": setting[0], "max_population": setting[1]}
        if table_number == 5:
            where["patience"] = setting[2]
        ours.append(statistics.fmean(own))
        theirs.append(printed(table_number, "gap", **where))
    rank = rank_correlation(ours, theirs)
    return f"Rank correlation of our average gaps with the paper's: {number(rank)}."


POPULATION = Experiment(
    "population",
    "Table 4: sensitivity to the sizes of the population",
    partial(plan, 4),
    partial(render, 4),
)
TERMINATION = Experiment(
    "termination",
    "Table 5: sensitivity to the stopping criteria",
    partial(plan, 5),
    partial(render, 5),
)
