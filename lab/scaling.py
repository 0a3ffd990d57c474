"""How the cost of an offspring grows with m, n and d.

Run with ``python -m lab scaling`` (some minutes), or with ``--quick`` for a look at smaller
sizes. One thread, CPU time of an offspring without what comes before the first one; the exponents
of the power laws are least-squares slopes on logarithms. K-means itself takes more iterations when
there is more to cluster, so the exponents per iteration are given too.

The measurements go to lab/results/scaling.csv, and a picture beside it (which needs the
extra ``plot``); ``--output`` names another folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.search import SearchSettings
from lab.anatomy import dissect
from lab.data import load
from lab.measure import (
    RESULTS,
    Column,
    Samples,
    Table,
    append_row,
    mixture,
    parser_for,
    slope,
)

# Okabe and Ito's colours, told apart by everybody, and markers for prints in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
MARKERS = "osD^v"
# What the panels of the picture vary, and the exponent that is drawn for comparison.
PANELS = {"m": ("number of clusters m", 0.7), "n": ("samples n", 1.0), "d": ("features d", 1.0)}
SEPARATION = 4.0
COLUMNS = (
    Column("measured", "family"),
    Column("n", "n"),
    Column("d", "d"),
    Column("m", "m"),
    Column("offspring", "offspring"),
    Column("each", "each_s", "{:.2f} ms", 1e3),
    Column("iter", "iterations", "{:.1f}"),
    Column("per iter", "iteration_s", "{:.3f} ms", 1e3),
    Column("avoided", "avoided", "{:.1f} %", 100.0),
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """Measurements that differ in one size.

    Parameters
    ----------
    name : str
    varied : {"m", "n", "d"}
    sizes : sequence of int
        What it takes one after the other.
    setup : callable
        Returns the samples and the number of clusters for a size.
    offspring : int
        Of every search.
    """

    name: str
    varied: str
    sizes: Sequence[int]
    setup: Callable[[int], tuple[Samples, int]]
    offspring: int


FAMILIES = (
    Family("letters", "m", (10, 20, 50, 100, 200), lambda m: (load("letters"), m), 500),
    Family(
        "skin, m = 10",
        "n",
        (30_000, 60_000, 120_000, 245_057),
        lambda n: (subset("skin", n), 10),
        100,
    ),
    Family(
        "pla85900, m = 25",
        "n",
        (10_000, 20_000, 40_000, 85_900),
        lambda n: (subset("pla85900", n), 25),
        100,
    ),
    Family(
        "mixtures, d = 8, m = 20",
        "n",
        (100_000, 200_000, 500_000, 1_000_000),
        lambda n: (mixture(n, 8, 20, SEPARATION), 20),
        40,
    ),
    Family(
        "mixtures, n = 20,000, m = 25",
        "d",
        (2, 4, 8, 16, 32, 64, 128),
        lambda d: (mixture(20_000, d, 25, SEPARATION), 25),
        200,
    ),
)


def shortened(family: Family) -> Family:
    """Return the family for a quick look: its smaller sizes, and a fifth of the offspring."""
    sizes = family.sizes[: max(3, len(family.sizes) // 2)]
    return replace(family, sizes=sizes, offspring=family.offspring // 5)


def subset(name: str, n: int) -> Samples:
    """Take a random part of a data set."""
    X = load(name)
    return X[np.random.default_rng(0).permutation(len(X))[:n]]


def measure(family: Family) -> Iterator[Row]:
    """Yield a row for every size."""
    settings = SearchSettings(5, 10, max_offspring=family.offspring, patience=family.offspring)
    for size in family.sizes:
        X, m = family.setup(size)
        anatomy = dissect(X, m, settings, probe=False)
        yield {
            "family": family.name,
            "varied": family.varied,
            "n": X.shape[0],
            "d": X.shape[1],
            "m": m,
            "offspring": anatomy.offspring,
            "each_s": anatomy.each,
            "iterations": anatomy.iterations,
            "iteration_s": anatomy.each / anatomy.iterations,
            "avoided": anatomy.avoided,
        }


def exponents(family: Family, rows: Sequence[Row]) -> tuple[float, float]:
    """Slopes of the cost of an offspring, and of an iteration, in what the family varies."""
    sizes = [row[family.varied] for row in rows]
    each, iterations = ([row[key] for row in rows] for key in ("each_s", "iteration_s"))
    return slope(sizes, each), slope(sizes, iterations)


def draw(measured: Sequence[tuple[Family, Sequence[Row]]], path: Path) -> None:
    """Draw the cost of an offspring against m, n and d, with the exponents in the legends."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True, layout="constrained")
    for axis, (varied, (label, reference)) in zip(axes, PANELS.items(), strict=True):
        of_panel = [(f, rows) for f, rows in measured if f.varied == varied]
        for (family, rows), colour, marker in zip(of_panel, COLOURS, MARKERS, strict=False):
            exponent, _ = exponents(family, rows)
            sizes = [row[varied] for row in rows]
            each = [1e3 * row["each_s"] for row in rows]
            axis.loglog(
                sizes,
                each,
                color=colour,
                marker=marker,
                label=f"{family.name}: {varied}$^{{{exponent:.2f}}}$",
            )
        draw_reference(axis, varied, reference)
        axis.set_xlabel(label)
        # Long numbers overlap if there are more of them.
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if varied == "n" else (1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=9)
    figure.get_layout_engine().set(wspace=0.03)
    axes[0].yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes[0].set_ylabel("CPU time of an offspring [ms]")
    figure.savefig(path, dpi=150)


def draw_reference(axis: Any, varied: str, exponent: float) -> None:
    """Draw a dashed line of the slope that costs should not exceed, above what is drawn."""
    low, high = axis.get_xlim()
    sizes = np.geomspace(low * 1.2, high / 1.2, 2)
    lines = [np.asarray(line.get_data()) for line in axis.get_lines()]
    height = max((y / x**exponent).max() for x, y in lines)
    axis.loglog(
        sizes, 1.3 * height * sizes**exponent, "--", color="0.4", label=f"{varied}$^{{{exponent}}}$"
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("scaling", __doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few offspring")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for CSV and picture")
    arguments = parser.parse_args(given)
    arguments.output.mkdir(parents=True, exist_ok=True)
    file = arguments.output / "scaling.csv"
    file.unlink(missing_ok=True)
    chosen = [shortened(family) if arguments.quick else family for family in FAMILIES]
    table = Table(COLUMNS, max((family.name for family in chosen), key=len))
    table.print_head()
    measured = []
    for family in chosen:
        rows = []
        for row in measure(family):
            table.print_row(row)
            append_row(file, row)
            rows.append(row)
        measured.append((family, rows))
        each, iteration = exponents(family, rows)
        x = family.varied
        print(f"  an offspring costs {x}^{each:.2f}, an iteration {x}^{iteration:.2f}", flush=True)
    draw(measured, arguments.output / "scaling.png")
