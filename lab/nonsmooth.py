"""The nonsmooth methods of the paper: starts, evaluations, CPU time and gaps.

Run ``python -m lab nonsmooth`` (minutes), or with problems of one's own, such as
``python -m lab nonsmooth pla85900:25 shuttle:25 skin:25 --methods DCClust LMBM-Clust``
(minutes; MS-MGKM, which is among the methods if none are named, takes much longer there). Data sets
come from the folder EVOMEANS_DATA, or are downloaded.

An *evaluation* is one assignment of all samples to all centres. Gaps are in percent of the best
value known, averaged over the numbers of clusters of the paper up to the given one. The last column
is what Table 3 of the paper prints for the method above what it prints for HG-means; it is there
for large data only, and goes up to 25 clusters.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from numpy.typing import NDArray

from lab.baselines.nonsmooth.evaluation import Evaluation
from lab.baselines.nonsmooth.objective import ClusterFunction
from lab.best_known import best_known
from lab.data import dataset_named, exit_on_data_errors, load
from lab.measure import Column, Table, parse_setup, parser_for, timed
from lab.paper.methods import HG_MEANS, Method, incremental, lmbm, nonsmooth
from lab.paper.printed import printed

SETUPS = (
    "german_towns:10",
    "iris:10",
    "liver:20",
    "heart:20",
    "tsplib1060:30",
    "d15112:25",
    "eeg_eye_state:25",
)
LARGE = 3


@dataclass
class Count:
    """How many evaluations were made."""

    evaluations: int = 0


@contextmanager
def counted() -> Iterator[Count]:
    """Count the evaluations of the objective."""
    count, original = Count(), ClusterFunction.__call__

    def call(function: ClusterFunction, offsets: NDArray) -> Evaluation:
        count.evaluations += 1
        return original(function, offsets)

    with patch.object(ClusterFunction, "__call__", call):
        yield count


def methods() -> list[Method]:
    """Return the four, LMBM-Clust as described, and the best of the methods with K-means."""
    return [*nonsmooth(), *lmbm(), incremental()[-1]]


def label(name: str, m: int, method: Method) -> str:
    """Return the value in the first column."""
    return f"{name}:{m} {method.name}"


def measure(name: str, m: int, method: Method) -> dict[str, object]:
    """Fit a method to a data set, and return a row of the table."""
    X = load(name)
    # Compile before the clock starts.
    method.make(2, 0).fit(X[: min(len(X), 200)])
    with counted() as count:
        model, seconds = timed(lambda: method.make(m, 0).fit(X))
    gaps = [
        100.0 * (model.inertias_[k - 1] / known.value - 1.0)
        for k in dataset_named(name).clusters
        if k <= m and (known := best_known(name, k)) is not None
    ]
    theirs = printed(LARGE, "gap", dataset=name, method=method.name)
    best = printed(LARGE, "gap", dataset=name, method=HG_MEANS)
    return {
        "label": label(name, m, method),
        "searches": model.n_iter_,
        "evaluations": count.evaluations / model.n_iter_ if count.evaluations else None,
        "cpu": seconds,
        "gap": statistics.fmean(gaps) if gaps else None,
        "paper": None if theirs is None or best is None else theirs - best,
    }


COLUMNS = (
    Column("problem, method", "label"),
    Column("searches", "searches", "{:,}"),
    Column("evaluations each", "evaluations", "{:.1f}"),
    Column("CPU s", "cpu", "{:.2f}"),
    Column("gap %", "gap", "{:.3f}"),
    Column("paper", "paper", "{:.2f}"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_for("nonsmooth", __doc__)
    parser.add_argument("setups", nargs="*", default=SETUPS, help="such as letters:50")
    names = [method.name for method in methods()]
    parser.add_argument("--methods", nargs="+", choices=names, default=names, metavar="NAME")
    chosen = parser.parse_args(arguments)
    setups = [parse_setup(setup) for setup in chosen.setups]
    wanted = [method for method in methods() if method.name in chosen.methods]
    labels = [label(name, m, method) for name, m in setups for method in wanted]
    table = Table(COLUMNS, max(labels, key=len))
    table.print_head()
    with exit_on_data_errors():
        for name, m in setups:
            for method in wanted:
                table.print_row(measure(name, m, method))
