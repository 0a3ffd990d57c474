"""Planted clusters in many dimensions, and how many of them a search misses.

Run ``python -m lab planted`` (an hour of CPU time, shared by all cores); ``--seeds`` and
``--problems`` make it shorter. The data is drawn by this file.

Samples like those that people cluster: embeddings (dense, clusters of unequal size, noise above the
spread of the centres), texts (sparse rows of word counts, scaled to length one) and genes (few
samples, thousands of features). The centres that the data was drawn from are known. A planted
cluster is *missed* if no centre of a solution has it as the closest one (the centroid index [1]_).
Some planted clusters do not survive K-means from their own centres; where that is so, nobody can be
expected to find them, and the first column says how many these are. ``--engine gpu --processes 1``
lets HGMeans search on a GPU; its CPU time says little then.

``--picture FILE`` draws the missed clusters of ``KMeans`` and HGMeans side by side.

References
----------
.. [1] Fränti, P., Rezaei, M. and Zhao, Q. (2014). "Centroid index: cluster level similarity
   measure". Pattern Recognition 47, 3034-3045.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from evomeans import HGMeans
from evomeans.metrics import centroid_index
from lab.measure import Column, Table, parser_for, timed

METHODS = ("KMeans", "HGMeans")
STARTS = 10


class Planted(NamedTuple):
    """Samples, dense or CSR, and the centres they were drawn from."""

    X: Any
    centers: NDArray[np.float64]


def embeddings(n: int, d: int, k: int, noise: float, rng: np.random.Generator) -> Planted:
    """Draw clusters of unequal size; ``noise`` is in units of the spread of their centres."""
    centers = rng.normal(size=(k, d))
    shares = rng.dirichlet(np.full(k, 5.0))
    labels = rng.choice(k, size=n, p=shares)
    return Planted(centers[labels] + noise * rng.normal(size=(n, d)), centers)


def texts(n: int, n_words: int, k: int, rng: np.random.Generator) -> Planted:
    """Draw rows of 60 words: three in ten from the words of a topic, the others from all words."""
    topics = np.repeat(np.arange(k), n // k)
    vocabulary = np.stack([rng.choice(n_words, n_words // 20, replace=False) for _ in range(k)])
    rows = np.repeat(np.arange(n, dtype=np.int32), 60)
    words = rng.integers(n_words, size=rows.size).astype(np.int32)
    is_own = rng.random(rows.size) < 0.3
    drawn = rng.integers(vocabulary.shape[1], size=int(is_own.sum()))
    words[is_own] = vocabulary[topics[rows[is_own]], drawn]
    X = sp.csr_array((np.ones(rows.size), (rows, words)), shape=(n, n_words))
    X.sum_duplicates()
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return Planted(X, np.vstack([X[topics == topic].mean(axis=0) for topic in range(k)]))


def genes(n: int, d: int, k: int, rng: np.random.Generator) -> Planted:
    """Draw groups that differ in one feature out of fifty, with noise everywhere."""
    centers = np.zeros((k, d))
    for center in centers:
        center[rng.choice(d, size=d // 50, replace=False)] = rng.normal(0.0, 2.0, size=d // 50)
    labels = rng.integers(k, size=n)
    return Planted(centers[labels] + rng.normal(size=(n, d)), centers)


PROBLEMS: dict[str, Callable[[np.random.Generator], Planted]] = {
    "embeddings 384, noise 1.5": lambda rng: embeddings(10_000, 384, 50, 1.5, rng),
    "embeddings 384, noise 2.5": lambda rng: embeddings(10_000, 384, 50, 2.5, rng),
    "embeddings 768, noise 2.5": lambda rng: embeddings(10_000, 768, 50, 2.5, rng),
    "texts 6,000 x 8,000": lambda rng: texts(6_000, 8_000, 20, rng),
    "texts 15,000 x 20,000": lambda rng: texts(15_000, 20_000, 20, rng),
    "genes 2,000 x 5,000": lambda rng: genes(2_000, 5_000, 20, rng),
}
Run = tuple[str, int, str]
"""Problem, seed and method."""


def missed(planted: Planted, centers: NDArray[np.float64]) -> int:
    """Return how many planted clusters have no centre of their own."""
    return centroid_index(planted.centers, centers)


def search(run: Run, engine: str = "cpu") -> dict[str, float]:
    """Draw a problem and solve it with one thread; return what was missed, and the time."""
    problem, seed, method = run
    # Every seed has data of its own.
    planted = PROBLEMS[problem](np.random.default_rng(seed))
    X, k = planted.X, len(planted.centers)
    reached = KMeans(k, init=planted.centers, n_init=1).fit(X)
    if method == "KMeans":
        model: Any = KMeans(k, n_init=STARTS, random_state=seed)
    else:
        model = HGMeans(k, random_state=seed, n_jobs=1, engine=engine)
        # Kernels are compiled, or loaded, before the clock counts.
        HGMeans(2, max_offspring=4, n_jobs=1, engine=engine).fit(X[:50])
    # Threads of KMeans that wait for each other would count as CPU time.
    with threadpool_limits(1):
        _, seconds = timed(lambda: model.fit(X))
    return {
        "seconds": seconds,
        "missed": missed(planted, model.cluster_centers_),
        "lost": missed(planted, reached.cluster_centers_),
        "gap": 100.0 * (model.inertia_ / reached.inertia_ - 1.0),
    }


def summary(problem: str, found: dict[Run, dict[str, float]]) -> dict[str, Any]:
    """Return a row of the table."""
    row: dict[str, Any] = {"problem": problem}
    own = {method: [] for method in METHODS}
    for (name, _, method), values in found.items():
        if name == problem:
            own[method].append(values)
    row["lost"] = statistics.fmean(one["lost"] for one in own["KMeans"])
    for method, runs in own.items():
        for quantity in ("missed", "gap", "seconds"):
            row[f"{method} {quantity}"] = statistics.fmean(one[quantity] for one in runs)
        row[f"{method} worst"] = max(one["missed"] for one in runs)
    row["ratio"] = row["HGMeans seconds"] / row["KMeans seconds"]
    return row


def columns() -> list[Column]:
    shown = [Column("planted clusters", "problem"), Column("lost", "lost", "{:.1f}")]
    for method in METHODS:
        shown += [
            Column(f"{method}: missed", f"{method} missed", "{:.1f}"),
            Column("worst", f"{method} worst", "{:.0f}"),
            Column("gap", f"{method} gap", "{:.2f} %"),
            Column("CPU s", f"{method} seconds", "{:.1f}"),
        ]
    return [*shown, Column("ratio", "ratio", "{:.2f}x")]


def draw(found: dict[Run, dict[str, float]], path: Path) -> None:
    """Draw the missed clusters of every run, KMeans compared with HGMeans."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    problems = list(dict.fromkeys(name for name, _, _ in found))
    figure, axes = plt.subplots(figsize=(8.0, 0.55 * len(problems) + 1.2), layout="constrained")
    shown = {
        "KMeans": ("#c44e52", f"KMeans(n_init={STARTS})", 0.15),
        "HGMeans": ("#2a6f97", "HGMeans", -0.15),
    }
    for method, (color, label, shift) in shown.items():
        points = [
            (values["missed"], problems.index(name) + shift)
            for (name, _, own), values in found.items()
            if own == method
        ]
        axes.scatter(*zip(*points, strict=True), color=color, alpha=0.6, s=36, label=label)
    axes.set_yticks(range(len(problems)), problems)
    axes.invert_yaxis()
    axes.set_xlabel("planted clusters without a centre, one point per run")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("planted", __doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--engine", default="cpu", help="of HGMeans; texts need the CPU engine")
    parser.add_argument("--picture", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse_arguments(arguments)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    runs: list[Run] = list(product(chosen.problems, seeds, METHODS))
    with ProcessPoolExecutor(chosen.processes) as pool:
        solve = partial(search, engine=chosen.engine)
        found = dict(zip(runs, pool.map(solve, runs), strict=True))
    table = Table(columns(), max(chosen.problems, key=len))
    table.print_head()
    for problem in chosen.problems:
        table.print_row(summary(problem, found))
    if chosen.picture is not None:
        draw(found, chosen.picture)
