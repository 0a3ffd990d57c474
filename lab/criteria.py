"""How often criteria find the number of clusters, where that number is known.

Run ``python -m lab criteria`` (half an hour of CPU time on one core); ``--seeds`` and
``--free`` make it shorter. Rows that ``lab/results/criteria.csv`` has are not measured
again; ``--table`` only prints them.

Mixtures of spherical Gaussians as in section 4.5 of the paper (``lab/mixtures.py``), of 600
samples: 5 in 10 dimensions, 10 in 20 and 15 in 50. Their means are moved apart or together by a
factor: 1 is the separation of the paper, at which clusters overlap. Gaussians in the plane, 4 and 9
of them on a grid that is shaken, with 3, 5 and 8 deviations between neighbours. And real samples
with classes: iris, wine and breast cancer (both standardised) and digits. Classes need not be
clusters, so that nobody can be blamed for missing these. The path goes from k = 2 to 20.

For each criterion the table has the share of samples for which it suggests the true number (*hits*)
and the mean of the absolute difference (*error*); a criterion that suggests nothing counts as if it
had suggested 20.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from evomeans import HGMeansPath
from evomeans.criteria import (
    CRITERIA,
    DEFAULT_CRITERIA,
    Gap,
    PredictionStrength,
    Silhouette,
)
from lab.measure import RESULTS, Column, Table, append_row, parser_for, read_rows
from lab.mixtures import gaussian_mixture

FILE = RESULTS / "criteria.csv"
SHAPES = ((5, 10), (10, 20), (15, 50))
FACTORS = (0.75, 1.0, 1.5)
APART = (3.0, 5.0, 8.0)
N_SAMPLES, LAST = 600, 20
COSTLY = (Silhouette(), Gap(n_references=5), PredictionStrength(n_divisions=3))
Problem = tuple[str, NDArray[np.float64], int]
"""A name, samples, and the true number of clusters."""


def mixtures(seeds: Sequence[int]) -> Iterator[Problem]:
    """Draw mixtures at several separations."""
    for seed in seeds:
        for m, d in SHAPES:
            drawn = gaussian_mixture(N_SAMPLES, m, d, seed)
            for factor in FACTORS:
                X = drawn.X + (factor - 1.0) * drawn.means[drawn.labels]
                yield f"mixture:{m}:{d}:{factor}:{seed}", X, m


def planes(seeds: Sequence[int]) -> Iterator[Problem]:
    """Draw Gaussians around the points of a grid, which are shaken by a fifth of their distance."""
    for seed in seeds:
        for side in (2, 3):
            rng = np.random.default_rng([seed, side])
            grid = np.stack(np.meshgrid(*[np.arange(side)] * 2), axis=-1).reshape(-1, 2)
            centers = grid + rng.normal(scale=0.2, size=grid.shape)
            labels = rng.integers(len(grid), size=N_SAMPLES)
            noise = rng.normal(size=(N_SAMPLES, 2))
            for apart in APART:
                yield (
                    f"plane:{side * side}:2:{apart}:{seed}",
                    apart * centers[labels] + noise,
                    side**2,
                )


def real_sets() -> Iterator[Problem]:
    """Load samples with classes."""
    yield "real:iris", load_iris().data, 3
    yield "real:wine", StandardScaler().fit_transform(load_wine().data), 3
    yield "real:breast_cancer", StandardScaler().fit_transform(load_breast_cancer().data), 2
    yield "real:digits", load_digits().data, 10


def measure(seeds: Sequence[int], with_costly: bool) -> None:
    """Add the rows that the file lacks."""
    criteria = [*DEFAULT_CRITERIA, *(COSTLY if with_costly else ())]
    names = [one if isinstance(one, str) else one.name for one in criteria]
    known = {(row["samples"], row["criterion"]) for row in read_rows(FILE)}
    for name, X, truth in [*real_sets(), *planes(seeds), *mixtures(seeds)]:
        if all((name, criterion) in known for criterion in names):
            continue
        path = HGMeansPath((2, LAST), criteria=criteria, select=None, n_jobs=1, random_state=0)
        path.fit(X)
        for criterion, choice in path.suggestions_.items():
            if (name, criterion) not in known:
                row = {"samples": name, "truth": truth, "criterion": criterion}
                append_row(FILE, row | {"choice": "" if choice is None else choice})


def group_of(name: str) -> str:
    """Return the column of the table that some samples belong to."""
    parts = name.split(":")
    return parts[0] if parts[0] != "mixture" else parts[3]


def summaries(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line of the table for each criterion, the best on drawn samples first."""
    errors: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        choice = row["choice"] if row["choice"] != "" else LAST
        error = abs(choice - row["truth"])
        errors[row["criterion"]][group_of(row["samples"])].append(error)
    lines = []
    for criterion, groups in errors.items():
        line: dict[str, Any] = {"criterion": criterion}
        mixed = [error for group, own in groups.items() if group != "real" for error in own]
        for group, own in [*groups.items(), ("all", mixed)]:
            if own:
                line[f"hits {group}"] = 100.0 * statistics.fmean(error == 0 for error in own)
                line[f"error {group}"] = statistics.fmean(own)
        lines.append(line)
    return sorted(lines, key=lambda line: (-line.get("hits all", 0.0), line.get("error all", 0.0)))


COLUMNS = (
    Column("criterion", "criterion"),
    *(
        Column(f"{kind} {group}", f"{kind} {group}", form)
        for group in ("0.75", "1.0", "1.5", "plane", "all", "real")
        for kind, form in (("hits", "{:.0f} %"), ("error", "{:.1f}"))
    ),
)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_for("criteria", __doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--free", action="store_true", help="no criteria that need more fits")
    parser.add_argument("--table", action="store_true", help="print what has been measured")
    return parser.parse_args(arguments)


def main(given: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print the table."""
    options = parse(given)
    if not options.table:
        measure(options.seeds, not options.free)
    table = Table(COLUMNS, max(CRITERIA, key=len))
    table.print_head()
    for line in summaries(read_rows(FILE)):
        table.print_row(line)
