"""How far the clusterings of known data sets can be proven to be optimal.

Run with ``python -m lab proof``; ``--group`` chooses the problems:

small      German Towns, Bavaria 1 and 2 and Iris, 2 to 10 clusters
medium     Heart, Liver, Ionosphere, Congressional Voting, Breast Cancer and Pima
sklearn    wine, scaled, and diabetes, 2 to 10 clusters
plane      TSPLib1060 by column generation
large      Pendigit and Letters in parts, by several processes
separated  a mixture of 100,000 rows, proven in closed form

Problems can also be named, as ``dataset:clusters``. The clustering comes from HGMeans with seed 0,
which is not timed. Seconds are those of the processor, on one thread; with ``--jobs`` above 1,
they are seconds of the clock. ``--processes`` works on several problems at a time. Every proof is
checked once more. ``--output`` appends the rows to a CSV file, from which ``--accept`` writes what
is proven into best_known.csv, and ``--table`` prints the table of docs/laboratory/proofs.md.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

import evomeans
from evomeans.exact.cases import Limits
from evomeans.exact.certify import attempt, prepare
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import Method
from lab.best_known import best_known, record_proofs
from lab.data import load
from lab.measure import mixture, parse_setup, parser_for

MEDIUM = ("heart", "liver", "ionosphere", "congressional_voting")
GROUPS: dict[str, dict[str, float]] = {
    "small": {
        f"{name}:{k}": 60.0
        for name in ("german_towns", "bavaria1", "bavaria2", "iris")
        for k in range(2, 11)
    },
    "medium": {
        **{f"{name}:{k}": 120.0 for k in (2, 5, 10, 20, 50) for name in MEDIUM},
        **{f"breast_cancer:{k}": 300.0 for k in (2, 5, 10)},
        "pima:10": 300.0,
    },
    "sklearn": {f"{name}:{k}": 120.0 for name in ("wine", "diabetes") for k in range(2, 11)},
    "plane": {
        **{f"tsplib1060:{k}": 300.0 for k in (100, 80, 60, 50, 40, 30)},
        **{f"tsplib1060:{k}": 1800.0 for k in (20, 10, 2)},
    },
    "large": {"pendigit:10": 900.0, "letters:10": 900.0},
    "separated": {"mixture:10": 60.0},
}
"""Problems with the seconds that they may take."""


@dataclass(frozen=True)
class Row:
    """What was proven of a problem."""

    dataset: str
    m: int
    upper_bound: float
    lower_bound: float
    gap_percent: float
    status: str
    method: str
    nodes: int
    cuts: int
    seconds: float
    verified_seconds: float


def samples(name: str) -> NDArray[np.float64]:
    """Return a data set, or one of scikit-learn's, or a well-separated mixture."""
    if name == "wine":
        return np.asarray(scale(load_wine().data))
    if name == "diabetes":
        return np.asarray(load_diabetes().data)
    if name == "mixture":
        return np.asarray(mixture(100_000, 16, 10, 24.0), np.float64)
    return np.asarray(load(name), np.float64)


def measure(
    setup: str,
    max_time: float,
    n_jobs: int = 1,
    method: str | None = None,
    part_size: int | None = None,
) -> Row:
    """Search, prove and check."""
    name, k = parse_setup(setup)
    X = samples(name)
    labels = evomeans.HGMeans(k, random_state=0, n_jobs=n_jobs).fit(X).labels_
    if n_jobs > 1:
        options: dict[str, Any] = {"n_jobs": n_jobs, "part_size": part_size}
        found = evomeans.certify(X, labels, max_time=max_time, method=method or "auto", **options)
        began = time.process_time()
        found.verify(X)
        return Row(
            name,
            k,
            found.upper_bound,
            found.lower_bound,
            100 * found.gap,
            found.status,
            found.method,
            found.n_nodes,
            found.n_cuts,
            round(found.seconds, 2),
            round(time.process_time() - began, 2),
        )
    points = WeightedPoints.of_samples(X)
    known = points.labels_of_points(labels)
    wanted = Method(method) if method else None
    with threadpool_limits(1):
        limits = Limits(max_time=max_time, clock=time.process_time)
        finding = attempt(points, k, known, limits, method=wanted, part_size=part_size)
        seconds = limits.seconds
        began = time.process_time()
        lower = points.in_data_units(finding.proof.lower_bound(points, k))
        checked = time.process_time() - began
    upper = points.in_data_units(points.inertia(finding.labels))
    gap = max(0.0, (upper - lower) / upper)
    return Row(
        name,
        k,
        upper,
        min(lower, upper),
        100 * gap,
        "optimal" if gap <= limits.gap else "bounded",
        str(finding.proof.method),
        finding.n_nodes,
        finding.n_cuts,
        round(seconds, 2),
        round(checked, 2),
    )


def measured(calls: list[tuple[Any, ...]], processes: int) -> Iterator[Row]:
    """Measure problems, in processes of their own if there are several; rows in any order."""
    if processes == 1:
        yield from (measure(*call) for call in calls)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        # The longest first.
        ordered = sorted(calls, key=lambda call: -call[1])
        for done in as_completed([pool.submit(measure, *call) for call in ordered]):
            yield done.result()


def shown(row: Row) -> str:
    """Write a row of the table."""
    known = best_known(row.dataset, row.m) if row.dataset not in OTHERS else None
    note = ""
    if known is not None and row.upper_bound > known.value * (1 + 1e-6):
        note = f"   above the best known {known.value:.8g}"
    return (
        f"{row.dataset:<21} {row.m:>4} {row.upper_bound:>16.10g} {row.lower_bound:>16.10g} "
        f"{row.gap_percent:>9.2g} {row.status:<8} {row.method:<11} {row.nodes:>5} {row.cuts:>8} "
        f"{row.seconds:>8.1f} {row.verified_seconds:>7.2f}{note}"
    )


OTHERS = ("wine", "diabetes", "mixture")
HEADER = (
    f"{'data':<21} {'k':>4} {'upper bound':>16} {'lower bound':>16} {'gap %':>9} {'status':<8} "
    f"{'method':<11} {'nodes':>5} {'cuts':>8} {'seconds':>8} {'check':>7}"
)


TITLES = {
    "congressional_voting": "Congressional Voting",
    "breast_cancer": "Breast Cancer",
    "wine": "wine, scaled",
    "diabetes": "diabetes",
    "tsplib1060": "TSPLib1060",
    "mixture": "mixture, 100,000 × 16",
}


def table(rows: list[Row]) -> str:
    """Write rows in Markdown, in the order of the groups, without the smallest sets."""
    order = [setup for group in GROUPS if group != "small" for setup in GROUPS[group]]
    found = {f"{row.dataset}:{row.m}": row for row in rows}
    names = list(dict.fromkeys(setup.partition(":")[0] for setup in order))
    order.sort(key=lambda setup: names.index(setup.partition(":")[0]))
    lines = [
        "| data | samples | k | inertia | proven gap | method | nodes | seconds |",
        "|---|--:|--:|--:|---|---|--:|--:|",
    ]
    for setup in order:
        row = found.get(setup)
        if row is None:
            continue
        title = TITLES.get(row.dataset, row.dataset.capitalize())
        gap = "optimal" if row.status == "optimal" else f"{row.gap_percent:.2g} %"
        lines.append(
            f"| {title} | {len(samples(row.dataset)):,} | {row.m} | {row.upper_bound:.8g} | {gap} "
            f"| {row.method} | {row.nodes} | {row.seconds:.1f} |"
        )
    return "\n".join(lines)


def rows_of(path: Path) -> Iterator[Row]:
    """Read the rows of a CSV file."""
    with path.open(newline="") as file:
        for record in csv.DictReader(file):
            kinds = {"str": str, "int": int, "float": float}
            yield Row(
                **{field.name: kinds[field.type](record[field.name]) for field in fields(Row)}
            )


def append(path: Path, row: Row) -> None:
    """Add a row to a CSV file."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(row))


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("proof", __doc__)
    parser.add_argument("setups", nargs="*", metavar="DATASET:K")
    parser.add_argument("--group", action="append", choices=tuple(GROUPS), default=[])
    parser.add_argument("--seconds", type=float, help="for each problem, instead of the usual ones")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part-size", type=int, help="of parts, instead of one that suits")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--method", choices=[str(method) for method in Method])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--accept", type=Path, metavar="CSV")
    parser.add_argument("--table", type=Path, metavar="CSV")
    arguments = parser.parse_args(given)
    if arguments.table:
        print(table(list(rows_of(arguments.table))))
        return
    if arguments.accept:
        proven = {
            (row.dataset, row.m): row.lower_bound
            for row in rows_of(arguments.accept)
            if row.dataset not in OTHERS
        }
        print(f"best_known.csv: {record_proofs(proven)} problems with a proven bound")
        return
    chosen = dict.fromkeys(arguments.setups, 120.0)
    for group in arguments.group or ([] if chosen else ["small"]):
        chosen |= GROUPS[group]
    prepare()
    print(HEADER, flush=True)
    total = 0.0
    options = arguments.jobs, arguments.method, arguments.part_size
    calls = [(setup, arguments.seconds or seconds, *options) for setup, seconds in chosen.items()]
    for row in measured(calls, arguments.processes):
        total += row.seconds
        print(shown(row), flush=True)
        if arguments.output:
            append(arguments.output, row)
    print(f"{len(chosen)} problems, {total:.1f} s")
