"""How long a fit takes that has a time limit, and how soon Ctrl-C ends one.

Run ``python -m lab time_limit`` (ten minutes), or with the names of problems. Each row is a
fit in a process of its own, after one of half a second that loads its kernels. ``asked`` is
``max_time``, or with ``--interrupt`` the second at which SIGINT is sent; ``taken`` is the wall time
from the call of ``fit``, or from the signal, to its end. After ``--patience``, a fit is killed.
``--cpu`` lets limits, times and the moment of SIGINT count CPU seconds of one thread, for a machine
that is busy with other work (Linux only).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from lab.measure import Column, Table, parser_for

TOPICS = 300
LIMITS = (0.5, 2.0, 5.0)
# The promise: a limit is exceeded by at most this share and these seconds.
SHARE, SECONDS = 0.15, 0.3


def embeddings(n: int, d: int) -> NDArray[np.float32]:
    """Draw rows of length one around some directions."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((TOPICS, d))
    topics /= np.linalg.norm(topics, axis=1)[:, None]
    rows = topics[rng.integers(TOPICS, size=n)] + rng.standard_normal((n, d)) * (1.2 / d**0.5)
    return (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(np.float32)


def texts(n: int, d: int) -> Any:
    """Draw counts of words as a CSR matrix, by Zipf's law within topics."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 100, size=n)
    topics = np.repeat(rng.integers(TOPICS, size=n), lengths)
    words = (rng.zipf(1.3, size=lengths.sum()) + topics * 61) % d
    rows = np.repeat(np.arange(n), lengths)
    counts = csr_matrix((np.ones(len(words), np.float32), (rows, words)), shape=(n, d))
    counts.sum_duplicates()
    return counts


def points(n: int, d: int) -> NDArray[np.float32]:
    """Draw clusters that overlap."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=4.0 / (2 * d) ** 0.5, size=(50, d))
    return (centers[rng.integers(50, size=n)] + rng.standard_normal((n, d))).astype(np.float32)


def estimator(name: str, clusters: Any, **parameters: Any) -> Any:
    """Make an estimator of the package, which is imported once its clock is known."""
    import evomeans

    return getattr(evomeans, name)(clusters, **parameters)


class Problem(NamedTuple):
    """Samples, and what makes an estimator for them."""

    draw: Callable[[], Any]
    make: Callable[..., Any]


PROBLEMS = {
    "embeddings, k = 1000": Problem(
        partial(embeddings, 40_000, 384), partial(estimator, "HGMeans", 1000)
    ),
    "embeddings, k = 4096": Problem(
        partial(embeddings, 40_000, 384), partial(estimator, "HGMeans", 4096)
    ),
    "a million rows, k = 50": Problem(
        partial(points, 1_000_000, 10), partial(estimator, "HGMeans", 50)
    ),
    "patches, k = 256": Problem(partial(points, 200_000, 64), partial(estimator, "HGMeans", 256)),
    "texts, k = 50": Problem(partial(texts, 50_000, 20_000), partial(estimator, "HGMeans", 50)),
    "spherical, k = 200": Problem(
        partial(embeddings, 20_000, 384), partial(estimator, "SphericalHGMeans", 200)
    ),
    "spherical, k = 500": Problem(
        partial(embeddings, 40_000, 384), partial(estimator, "SphericalHGMeans", 500)
    ),
    "spherical texts, k = 50": Problem(
        partial(texts, 50_000, 20_000), partial(estimator, "SphericalHGMeans", 50)
    ),
    "trimmed, k = 100": Problem(
        partial(embeddings, 20_000, 384), partial(estimator, "TrimmedHGMeans", 100)
    ),
    "constrained, k = 50": Problem(
        partial(points, 20_000, 10),
        partial(estimator, "ConstrainedHGMeans", 50, size_min=300, size_max=500),
    ),
    "constrained, k = 200": Problem(
        partial(points, 50_000, 10), partial(estimator, "ConstrainedHGMeans", 200, size_max=260)
    ),
    "few wide rows, k = 100": Problem(
        partial(points, 2_000, 20_000), partial(estimator, "HGMeans", 100)
    ),
    "a million rows, k = 2000": Problem(
        partial(points, 1_000_000, 20), partial(estimator, "HGMeans", 2_000)
    ),
    "a million texts, k = 100": Problem(
        partial(texts, 1_000_000, 20_000), partial(estimator, "HGMeans", 100)
    ),
    "trimmed rows, k = 500": Problem(
        partial(points, 200_000, 20), partial(estimator, "TrimmedHGMeans", 500, n_outliers=2_000)
    ),
    "spherical rows, k = 1000": Problem(
        partial(points, 500_000, 20), partial(estimator, "SphericalHGMeans", 1_000)
    ),
    "balanced, k = 1000": Problem(
        partial(points, 50_000, 10), partial(estimator, "ConstrainedHGMeans", 1_000, size_max=51)
    ),
    "proof, k = 20": Problem(partial(points, 20_000, 2), partial(estimator, "ExactKMeans", 20)),
    "proof, k = 200": Problem(partial(points, 200_000, 20), partial(estimator, "ExactKMeans", 200)),
    "path, k = 2 to 30": Problem(
        partial(points, 200_000, 64), partial(estimator, "HGMeansPath", (2, 30))
    ),
}


def fit(problem: Problem, limit: float | None, is_cpu: bool, connection: Any) -> None:
    """Fit in this process, and say when it began and how it ended."""
    own: dict[str, Any] = {"random_state": 0}
    if is_cpu:
        time.perf_counter = time.monotonic = time.process_time
        threadpool_limits(1)
        own["n_jobs"] = 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    X = problem.draw()
    problem.make(**own, max_time=0.5).fit(X)
    model = problem.make(**own, max_time=limit)
    connection.send("begun")
    began, cpu = time.perf_counter(), time.process_time()
    try:
        model.fit(X)
    except KeyboardInterrupt:
        connection.send((began, time.perf_counter(), time.process_time() - cpu, "raised", 0, 0.0))
        return
    ended, cpu = time.perf_counter(), time.process_time() - cpu
    made = getattr(model, "history_", ())
    inertia = getattr(model, "inertia_", None)
    connection.send((began, ended, cpu, str(model.stop_reason_), len(made), inertia))


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process, from Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(
    name: str, asked: float, is_interrupted: bool, patience: float, is_cpu: bool
) -> dict[str, Any]:
    """Fit in another process, and return the row of the table."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    limit = None if is_interrupted else asked
    process = context.Process(target=fit, args=(PROBLEMS[name], limit, is_cpu, there))
    process.start()
    row: dict[str, Any] = {"problem": name, "asked": asked}
    assert here.poll(600.0)
    assert here.recv() == "begun"
    sent = None
    if is_interrupted:
        assert process.pid is not None
        clock = partial(cpu_seconds, process.pid) if is_cpu else time.perf_counter
        begun = clock()
        while clock() < begun + asked:
            time.sleep(0.01)
        sent = clock()
        os.kill(process.pid, signal.SIGINT)
    if not here.poll(patience):
        process.kill()
        process.join()
        return row | {"end": "killed"}
    began, ended, cpu, end, made, inertia = here.recv()
    process.join()
    taken = ended - (began if sent is None else sent)
    most = 2.0 if is_interrupted else asked * (1.0 + SHARE) + SECONDS
    kept = "yes" if taken <= most else "NO"
    return row | {
        "taken": taken,
        "cpu": cpu,
        "kept": kept,
        "end": end,
        "made": made,
        "inertia": inertia,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = parser_for("time_limit", __doc__)
    parser.add_argument("problems", nargs="*", metavar="problem", help=", ".join(PROBLEMS))
    parser.add_argument("--limits", nargs="+", type=float, default=LIMITS, metavar="SECONDS")
    parser.add_argument("--interrupt", action="store_true", help="send SIGINT instead of a limit")
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds")
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    columns = [
        Column("problem", "problem"),
        Column("asked", "asked", "{:.1f} s"),
        Column("taken", "taken", "{:.2f} s"),
        Column("CPU", "cpu", "{:.2f} s"),
        Column("kept", "kept"),
        Column("end", "end"),
        Column("solutions", "made"),
        Column("inertia", "inertia", "{:.6g}"),
    ]
    table = Table(columns, max(PROBLEMS, key=len))
    table.print_head()
    for name in options.problems or PROBLEMS:
        for asked in options.limits:
            table.print_row(measure(name, asked, options.interrupt, options.patience, options.cpu))
