"""Single fits of very large data, for ``python -m lab large --file`` and ``--gpu``."""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from evomeans import HGMeans

FEATURES, CLUSTERS = 10, 20


def fit_file(rows: int, minutes: float) -> None:
    """Fit a memory map, and print the answer and the memory it took."""
    import resource

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, FEATURES))
        rng = np.random.default_rng(0)
        centers = rng.normal(scale=2.0, size=(CLUSTERS, FEATURES)).astype(np.float32)
        for begin in range(0, rows, 2**20):
            part = X[begin : begin + 2**20]
            rng.standard_normal(part.shape, dtype=np.float32, out=part)
            part += centers[rng.integers(CLUSTERS, size=len(part))]
        X.flush()
        del X
        X = np.load(path, mmap_mode="r")
        # Compiles what is needed for many rows before anything is measured.
        HGMeans(CLUSTERS, max_offspring=2, max_population=2, min_population=2).fit(X[:300_000])
        began = time.perf_counter()
        model = HGMeans(CLUSTERS, max_time=60.0 * minutes, random_state=0, verbose=1)
        model.fit(X)
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{rows:,} x {FEATURES} float32 ({rows * FEATURES * 4 / 2**30:.1f} GiB), m = {CLUSTERS}: "
        f"{len(model.history_)} solutions on all rows in {seconds:.0f} s ({model.stop_reason_}), "
        f"inertia {model.inertia_:.8g}, first after {model.history_[0].seconds:.0f} s; peak memory "
        f"{peak:.1f} GiB, pages of the file included"
    )


def fit_on_gpu(setup: str, minutes: float, seed: int) -> None:
    """Fit a mixture that overlaps on a GPU, and print when it improved."""
    n, d, m = map(int, setup.split(":"))
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=4.0 / math.sqrt(2 * d), size=(m, d)).astype(np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    for begin in range(0, n, 2**20):
        X[begin : begin + 2**20] += centers[rng.integers(m, size=len(X[begin : begin + 2**20]))]
    # Compiles what is needed for as many features and clusters before anything is measured. From
    # 2,000 rows per cluster on, K-means has momentum.
    HGMeans(m, engine="gpu", subsample=300 * m, max_offspring=2).fit(X[: 2000 * m])
    began = time.perf_counter()

    def watch(record: Any) -> None:
        if record.inertia == record.best:
            now = time.perf_counter() - began
            print(
                f"{record.seconds:7.2f} s of search, {now:7.2f} s of fit: offspring "
                f"{record.number}, inertia {record.best:.9g}, {record.made_by}",
                flush=True,
            )

    model = HGMeans(m, engine="gpu", max_time=60.0 * minutes, random_state=seed)
    model.set_params(observers=watch).fit(X)
    print(f"{model.stop_reason_} after {model.n_iter_} offspring: {model.inertia_:.9g}")
