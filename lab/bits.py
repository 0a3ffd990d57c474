"""Fits whose results must keep their bits when the code is rearranged.

Run ``python -m lab bits`` for the table of this version, or compare two versions:

    python -m lab bits --against v0.1      # this working tree and a revision of it
    python -m lab bits --write before.json # keep the table in a file
    python -m lab bits --read before.json  # compare with the table in that file

A comparison prints the rows that differ, and exits with 1 if there are any. Tables depend on the
machine and on the versions of NumPy and its libraries, so compare only what the same machine made.

Each row has the inertia and ``n_iter_`` of a fit, ``n_rediscoveries_`` where there is one, and the
beginnings of three SHA-256 digests: of the labels, of the centres, and of the course, which is the
inertia of every solution that the search made. Fits that need a package which is not installed are
skipped, and the table says so. Only the public interface is used, so that other versions can be
run by the same script.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris

from lab.measure import mixture, parser_for
from lab.revisions import (
    ROOT,
    baselines_beside,
    check_imported,
    environment_of,
    estimator,
    source_of,
)

COLUMNS = ("inertia", "labels", "centers", "course", "n_iter", "n_rediscoveries")
DIGITS = 12
SHORT = {"min_population": 5, "max_population": 10, "n_iter_no_change": 20}

Row = dict[str, str]
Rows = dict[str, Row]


# ---- samples -------------------------------------------------------------------------------------


@cache
def digits() -> NDArray[np.float64]:
    samples: NDArray[np.float64] = load_digits().data
    return samples


@cache
def iris() -> NDArray[np.float64]:
    samples: NDArray[np.float64] = load_iris().data
    return samples


@cache
def blobs(n: int, d: int, m: int) -> NDArray[np.float64]:
    """Overlapping Gaussians: local optima are many, and close to each other."""
    return mixture(n, d, m, separation=4.0)


def weights(n: int) -> NDArray[np.float64]:
    """Return weights of which a tenth are zero."""
    drawn = np.random.default_rng(1).random(n) * 3.0
    drawn[::10] = 0.0
    return drawn


def sparse() -> Any:
    return sp.random_array((900, 40), density=0.1, rng=np.random.default_rng(2), format="csr")


def duplicates() -> NDArray[np.float64]:
    """Return 400 samples at 25 places."""
    return np.random.default_rng(3).integers(5, size=(400, 2)).astype(float)


def far_away() -> NDArray[np.float64]:
    """Return two columns whose values differ from the seventh digit on."""
    return np.add(blobs(600, 2, 12), [1e7, -3e6])


# ---- fits ----------------------------------------------------------------------------------------


def fit(
    samples: Any, m: int, *, weight: Any = None, offspring: int = 120, **parameters: Any
) -> Any:
    """Fit HGMeans with a short search."""
    given = {**SHORT, "random_state": 0, **parameters}
    return estimator(m, offspring, **given).fit(samples, sample_weight=weight)


def fit_fast() -> Any:
    from evomeans import HGMeans

    return HGMeans.fast(10, random_state=4).fit(digits()[:600])


def fit_resumed(samples: Any, m: int, **parameters: Any) -> Any:
    """Stop twice, once by a limit and once by an observer, and continue from the checkpoint."""
    parameters["n_iter_no_change"] = 50
    with tempfile.TemporaryDirectory() as folder:
        parameters["checkpoint"] = Path(folder) / "search.checkpoint"
        stops: list[dict[str, Any]] = [
            {"offspring": 31},
            {"observers": lambda record: record.number == 43},
        ]
        for stop in stops:
            model = fit(samples, m, **stop, **parameters)
            if model.n_iter_ not in (31, 43):
                raise RuntimeError(f"the search was to stop early, not after {model.n_iter_}")
        return fit(samples, m, **parameters)


def fit_again() -> Any:
    """Fit some samples, then fewer of them from the population of that fit."""
    model = fit(blobs(500, 3, 9), 9, offspring=40, warm_start=True)
    return model.set_params(random_state=5).fit(blobs(500, 3, 9)[:400])


def fit_from(engine: str) -> Any:
    """Begin with two given sets of centres."""
    samples = blobs(500, 3, 9)
    init = np.stack([samples[:9], samples[100:109]])
    return fit(samples, 9, init=init, offspring=40, engine=engine)


def fit_gpu(strategy: str) -> Any:
    """Fit with the GPU engine on the CPU, on one thread."""
    import torch

    os.environ["EVOMEANS_GPU_DEVICE"] = "cpu"
    torch.set_num_threads(1)
    return fit(blobs(2000, 6, 8), 8, strategy=strategy, engine="gpu", offspring=60)


def fit_lazy(chunks: tuple[int, ...], *, weighted: bool = False, **parameters: Any) -> Any:
    """Fit samples held by Dask, in blocks that are just large enough not to be put together."""
    import dask
    import dask.array as da

    samples = da.from_array(blobs(40_000, 4, 8), chunks=(chunks, 4))
    weight = weights(40_000) if weighted else None
    with dask.config.set(scheduler="threads", num_workers=2):
        model = fit(samples, 8, weight=weight, offspring=50, **parameters)
        model.labels_ = model.labels_.compute()
    return model


def fit_baseline(baselines: ModuleType, name: str, samples: Any, m: int, **parameters: Any) -> Any:
    return getattr(baselines, name)(m, **parameters).fit(samples)


def fits(baselines: ModuleType) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Give every fit a name; all are independent of each other."""
    # Strategies do different things up to 64 and up to 256 samples per cluster.
    for size, (n, m) in {"30": (300, 10), "150": (1500, 10), "400": (4000, 10)}.items():
        for strategy in ("deep", "paper"):
            samples = partial(blobs, n, 5, m)
            yield f"{strategy}, {size} per cluster", later(samples, m, strategy=strategy)
    for strategy in ("deep", "paper"):
        single = later(lambda: digits().astype(np.float32), 10, strategy=strategy)
        yield f"{strategy}, digits in float32", single
        yield f"{strategy}, CSR", later(sparse, 12, strategy=strategy)
        weighted = later(iris, 6, weight=weights(150), strategy=strategy)
        yield f"{strategy}, iris with weights", weighted
        yield f"{strategy}, resumed", partial(fit_resumed, blobs(300, 5, 10), 10, strategy=strategy)
        yield f"{strategy}, reference engine", later(iris, 4, strategy=strategy, engine="reference")
        # Enough work for a second thread, which smaller fits do not use.
        for n, m in ((9000, 20), (4000, 70)):
            for n_jobs in (1, 2):
                samples = partial(blobs, n, 12, 20)
                threads = later(samples, m, n_jobs=n_jobs, strategy=strategy, offspring=20)
                yield f"{strategy}, n_jobs={n_jobs}, {m} clusters", threads
        yield f"{strategy}, GPU engine on the CPU", needs("torch", partial(fit_gpu, strategy))
        lazy = partial(fit_lazy, (10_000,) * 4, strategy=strategy)
        yield f"{strategy}, Dask in 4 blocks", needs("dask", lazy)
    lazy = partial(fit_lazy, (9_000, 22_000, 9_000), weighted=True)
    yield "Dask in 3 uneven blocks with weights", needs("dask", lazy)
    yield "float32 far from the origin", later(lambda: far_away().astype(np.float32), 12)
    yield "two columns far from the origin", later(far_away, 12)
    yield "CSR with weights, resumed", partial(fit_resumed, sparse(), 5, weight=weights(900))
    yield "more clusters than distinct samples", later(duplicates, 30)
    yield "duplicates", later(duplicates, 20)
    yield "as many clusters as samples", later(lambda: iris()[50:90] + weights(40)[:, None], 40)
    yield "almost as many clusters as samples", later(lambda: iris()[50:90], 33)
    yield "one cluster", later(iris, 1)
    yield "one column, exact", later(lambda: iris()[:, 2:3], 6)
    yield "one column, exact with weights", later(lambda: iris()[:, 2:3], 6, weight=weights(150))
    yield "one column, searched", later(lambda: iris()[:, 2:3], 6, engine="cpu")
    yield "warm start", fit_again
    yield "init", partial(fit_from, "cpu")
    yield "init, reference engine", partial(fit_from, "reference")
    yield "HGMeans.fast", fit_fast
    anytime: dict[str, dict[str, Any]] = {
        "MultiStartKMeans": {"n_runs": 30, "init": "k-means++"},
        "RandomSwap": {"n_swaps": 60},
        "BreathingKMeans": {},
        "SAGA": {"population_size": 10, "n_generations": 5},
        "MDEClust": {"population_size": 10, "n_iter_no_change": 20},
        "RecombinatorKMeans": {"population_size": 5, "n_generations": 5},
        "FLSpp": {},
        "DRSMeans": {"n_swaps": 40},
        "Smartigan": {"n_runs": 3},
        "BigMeans": {"chunk_size": 200, "n_chunks": 20},
        "GlobalKMeansPP": {"n_candidates": 5},
    }
    for name, parameters in anytime.items():
        given = {"random_state": 0, **parameters}
        yield name, partial(fit_baseline, baselines, name, blobs(800, 4, 10), 10, **given)
    for name in ("GlobalKMeans", "ModifiedGlobalKMeans", "MultiStartModifiedGlobalKMeans"):
        yield name, partial(fit_baseline, baselines, name, blobs(800, 4, 10), 10)
    for name in ("DCClust", "MSDCA", "DCDBundle", "LMBMClust"):
        yield name, partial(fit_baseline, baselines, name, blobs(800, 4, 10), 5)


def later(samples: Callable[[], Any], m: int, **parameters: Any) -> Callable[[], Any]:
    return lambda: fit(samples(), m, **parameters)


def needs(package: str, make: Callable[[], Any]) -> Callable[[], Any]:
    """Skip the fit where the package is missing."""

    def make_if_possible() -> Any:
        return make() if importlib.util.find_spec(package) else f"{package} is not installed"

    return make_if_possible


# ---- rows ----------------------------------------------------------------------------------------


def measured(source: Path) -> Iterator[tuple[str, Row]]:
    """Make all fits with the package in ``source``, one after the other."""
    for name, make in fits(baselines_beside(source)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
        yield name, {"skipped": model} if isinstance(model, str) else row_of(model)


def row_of(model: Any) -> Row:
    """Condense a fitted model into a row of texts."""
    course = [record.inertia for record in getattr(model, "history_", ())]
    return {
        "inertia": repr(float(model.inertia_)),
        "labels": digest(np.asarray(model.labels_, np.int32)),
        "centers": digest(model.cluster_centers_),
        "course": digest(np.array(course)),
        "n_iter": str(model.n_iter_),
        "n_rediscoveries": str(getattr(model, "n_rediscoveries_", "-")),
    }


def digest(array: NDArray[Any]) -> str:
    """Return the beginning of the SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:DIGITS]


def text_of(name: str, row: Row) -> str:
    """Format a row of the table."""
    if "skipped" in row:
        return f"{name:38} skipped: {row['skipped']}"
    inertia, *others = (row[column] for column in COLUMNS)
    return f"{name:38} {inertia:>24} {' '.join(f'{text:>{DIGITS}}' for text in others)}".rstrip()


def table_of(source: Path) -> Rows:
    """Run this script in another process, on the package in ``source``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "lab", "bits", "--write", str(file), "--quiet"]
        command += ["--source", str(source)]
        done = subprocess.run(command, cwd=ROOT, env=environment_of(source), check=False)
        if done.returncode:
            raise SystemExit(f"The fits with the package in {source} failed.")
        return read(file)


def read(file: Path) -> Rows:
    rows: Rows = json.loads(file.read_text())
    return rows


def print_differences(before: Rows, after: Rows) -> int:
    """Print the rows that differ; return how many they are."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    missing = {"skipped": "no such row"}
    for name in names:
        print(text_of(name, before.get(name, missing)))
        print(text_of("  now", after.get(name, missing)))
    skipped = sum("skipped" in row for row in after.values())
    print(f"{len(names)} of {len({**before, **after})} fits differ, {skipped} skipped")
    return len(names)


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("bits", __doc__)
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--against", metavar="REV", help="compare with a revision of the repository")
    other.add_argument("--read", type=Path, metavar="FILE", help="compare with a kept table")
    other.add_argument("--write", type=Path, metavar="FILE", help="keep the table, as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not print the table")
    parser.add_argument(
        "--source", type=Path, default=ROOT / "src", help="folder with the package to run"
    )
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    if arguments.against:
        before, after = table_of(source_of(arguments.against)), table_of(arguments.source)
        sys.exit(print_differences(before, after) > 0)
    check_imported(arguments.source)
    rows: Rows = {}
    for name, row in measured(arguments.source):
        rows[name] = row
        if not arguments.quiet:
            print(text_of(name, row), flush=True)
    if arguments.write:
        arguments.write.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.read:
        sys.exit(print_differences(read(arguments.read), rows) > 0)
