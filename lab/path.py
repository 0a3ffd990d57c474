"""A whole path of k compared with one default fit for each k, and with restarts of K-means.

Run ``python -m lab path`` (an hour of CPU time on one core); ``--seeds``, ``--datasets`` and
``--last`` make it shorter. Rows that ``lab/results/path.csv`` has are not measured again;
``--table`` only prints them.

Three methods find a clustering for every k from 2 to 30, each on one thread:

fits
    An independent ``HGMeans(k)`` for each k.
path
    One ``HGMeansPath((2, 30))``. Its criteria are not computed.
restarts
    What ``KElbowVisualizer(KMeans(n_init=10))`` of yellowbrick does: a ``KMeans`` for each k.

Gaps are in percent above the lowest inertia that the independent fits have found with any seed; the
mean is over k and seeds, the worst is the highest of all. A bump is a k whose inertia is not below
that of k − 1.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from evomeans import HGMeans, HGMeansPath
from lab.measure import (
    RESULTS,
    Column,
    Samples,
    Table,
    append_row,
    parser_for,
    read_rows,
    timed,
)
from lab.setups import samples_of

DATASETS = ("digits", "letters", "tsplib3038", "pendigit", "image_segmentation")
FIRST, LAST = 2, 30
FILE = RESULTS / "path.csv"
Found = Iterator[tuple[int, float, float]]
"""Number of clusters, inertia, CPU seconds."""


def fits(X: Samples, ks: Sequence[int], seed: int) -> Found:
    """Fit each k by itself."""
    for k in ks:
        model = HGMeans(k, n_jobs=1, random_state=seed)
        fitted, seconds = timed(lambda model=model: model.fit(X))  # type: ignore[misc]
        yield k, fitted.inertia_, seconds


def path(X: Samples, ks: Sequence[int], seed: int) -> Found:
    """Fit all k together; the time is divided among them."""
    model = HGMeansPath(ks, criteria=(), select=None, n_jobs=1, random_state=seed)
    fitted, seconds = timed(lambda: model.fit(X))
    for k, inertia in zip(ks, fitted.inertias_.tolist(), strict=True):
        yield k, inertia, seconds / len(ks)


def restarts(X: Samples, ks: Sequence[int], seed: int) -> Found:
    """Restart K-means for each k."""
    for k in ks:
        model = KMeans(k, n_init=10, random_state=seed)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted, seconds = timed(lambda model=model: model.fit(X))  # type: ignore[misc]
        yield k, fitted.inertia_, seconds


METHODS: dict[str, Callable[[Samples, Sequence[int], int], Found]] = {
    "path": path,
    "restarts": restarts,
    "fits": fits,
}


def measure(datasets: Sequence[str], seeds: Sequence[int], last: int) -> None:
    """Add the rows that the file lacks."""
    ks = list(range(FIRST, last + 1))
    known = {(row["dataset"], row["seed"], row["method"], row["k"]) for row in read_rows(FILE)}
    for seed in seeds:
        for name in datasets:
            X = np.asarray(samples_of(f"{name}:2")[0], dtype=np.float64)
            # Kernels are loaded before anything is measured.
            HGMeans(3, n_jobs=1, max_offspring=1, random_state=0).fit(X[:500])
            for method, run in METHODS.items():
                if all((name, seed, method, k) in known for k in ks):
                    continue
                for k, inertia, seconds in run(X, ks, seed):
                    row = {"dataset": name, "seed": seed, "method": method, "k": k}
                    append_row(FILE, row | {"inertia": repr(inertia), "seconds": f"{seconds:.4f}"})


def summaries(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line of the table for each data set and method."""
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        if row["method"] == "fits":
            key = row["dataset"], row["k"]
            best[key] = min(best.get(key, np.inf), row["inertia"])
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if (row["dataset"], row["k"]) in best:
            groups[row["dataset"], row["method"]].append(row)
    lines = []
    for (dataset, method), own in sorted(groups.items()):
        gaps = [100.0 * (row["inertia"] / best[dataset, row["k"]] - 1.0) for row in own]
        seconds = total_seconds(own)
        lines.append(
            {
                "dataset": dataset,
                "method": method,
                "seeds": len({row["seed"] for row in own}),
                "mean gap": statistics.fmean(gaps),
                "worst gap": max(gaps),
                "bumps": bumps(own),
                "seconds": seconds,
                "of fits": seconds / total_seconds(groups[dataset, "fits"]),
            }
        )
    return lines


def total_seconds(rows: Sequence[dict[str, Any]]) -> float:
    """Return the CPU seconds of all k together, as a mean over seeds."""
    return sum(row["seconds"] for row in rows) / len({row["seed"] for row in rows})


def bumps(rows: Sequence[dict[str, Any]]) -> int:
    """Count the k whose inertia is not below that of k − 1, over all seeds."""
    curves: dict[int, dict[int, float]] = defaultdict(dict)
    for row in rows:
        curves[row["seed"]][row["k"]] = row["inertia"]
    return sum(
        curve[b] >= curve[a]
        for curve in curves.values()
        for a, b in pairwise(sorted(curve))
        if b == a + 1
    )


COLUMNS = (
    Column("data set", "dataset"),
    Column("method", "method"),
    Column("seeds", "seeds"),
    Column("mean gap", "mean gap", "{:.4f} %"),
    Column("worst gap", "worst gap", "{:.4f} %"),
    Column("bumps", "bumps"),
    Column("CPU", "seconds", "{:.1f} s"),
    Column("of fits", "of fits", "{:.3f}"),
)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_for("path", __doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), metavar="NAME")
    parser.add_argument("--last", type=int, default=LAST, help="largest k")
    parser.add_argument("--table", action="store_true", help="print what has been measured")
    return parser.parse_args(arguments)


def main(given: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print the table."""
    options = parse(given)
    if not options.table:
        measure(options.datasets, options.seeds, options.last)
    table = Table(COLUMNS, "image_segmentation")
    table.print_head()
    for line in summaries(read_rows(FILE)):
        table.print_row(line)
