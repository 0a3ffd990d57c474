"""Serving: seconds until a loaded model answers, and bulk speed compared with KMeans.

Run with ``python -m lab serving``, or with ``--rows 100000 --threads 1`` and the like. Both
sides have the same centres and take turns; a ratio is the median over the turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._testing import ignore_warnings

from evomeans import HGMeans
from lab.measure import Column, Table, parser_for

SHAPES = [(8, 2), (20, 10), (8, 50), (100, 50), (100, 200)]
METHODS = ("predict", "transform", "score")
COLUMNS = (
    Column("rows", "rows", "{:,}"),
    *(Column(name, name) for name in ("k", "features", "threads", "type")),
    *(
        Column(title, f"{method} {key}", form)
        for method in METHODS
        for title, key, form in (
            (f"{method}, ms", "ours", "{:.1f}"),
            ("KMeans, ms", "theirs", "{:.1f}"),
            ("ratio", "ratio", "{:.2f}"),
        )
    ),
)
PROCESS = """
import time
began = time.perf_counter()
import sys
import numpy as np
import evomeans
model = evomeans.load(sys.argv[1])
loaded = time.perf_counter()
model.predict(np.zeros((1, model.n_features_in_)))
done = time.perf_counter()
print(f"import and load {loaded - began:.2f} s, predict of one row {done - loaded:.2f} s")
"""


@ignore_warnings(category=ConvergenceWarning)
def twins(X: np.ndarray, k: int, n_threads: int) -> tuple[HGMeans, KMeans]:
    """Return two models with the same centres."""
    few = X[:1000]
    ours = HGMeans.fast(k, random_state=0, max_offspring=1, n_jobs=n_threads).fit(few)
    theirs = KMeans(k, init=ours.cluster_centers_, n_init=1, max_iter=1).fit(few)
    theirs.cluster_centers_, theirs._n_threads = ours.cluster_centers_, n_threads
    return ours, theirs


def compare(ours: Any, theirs: Any, method: str, X: np.ndarray, turns: int) -> dict[str, float]:
    """Return milliseconds of both, and the ratio, by column."""
    seconds = []
    for _ in range(turns + 1):
        times = [perf_counter()]
        for model in (ours, theirs):
            getattr(model, method)(X)
            times.append(perf_counter())
        seconds.append(np.diff(times))
    # The first turn may compile.
    one, other = np.transpose(seconds[1:])
    return {
        f"{method} ours": 1e3 * min(one),
        f"{method} theirs": 1e3 * min(other),
        f"{method} ratio": median(one / other),
    }


def cold_start() -> None:
    """Time the first answer of two processes, the first with an empty cache of kernels."""
    X = np.random.default_rng(0).normal(size=(1000, 10))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.evo"
        HGMeans.fast(20, random_state=0, max_offspring=1).fit(X).save(path)
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for turn in ("empty", "filled"):
            print(f"Cache of kernels, {turn}: ", end="", flush=True)
            subprocess.run([sys.executable, "-c", PROCESS, path], env=environment, check=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("serving", __doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args(given)
    cold_start()
    table = Table(COLUMNS, "1,000,000")
    table.print_head()
    for k, d in SHAPES:
        for dtype in ("float64", "float32"):
            for n in options.rows:
                rng = np.random.default_rng(0)
                X = rng.normal(size=(n, d)).astype(dtype) + rng.integers(0, 4, (n, 1)).astype(dtype)
                for n_threads in options.threads:
                    models = twins(X, k, n_threads)
                    row: dict[str, Any] = {"rows": n, "k": k, "features": d}
                    row |= {"threads": n_threads, "type": dtype}
                    for method in METHODS:
                        row |= compare(*models, method, X, options.turns)
                    table.print_row(row)
