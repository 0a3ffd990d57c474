"""What requests cost on few workers and on many; see ``benchmarks.dask_engine``."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measure import mixture
from evomeans import HGMeans
from evomeans.engines import Start, create_engine
from evomeans.engines.dask import runners
from evomeans.engines.dask.placement import Group
from evomeans.engines.dask.questions import (
    Ground,
    Question,
    Reply,
    Request,
    Wanted,
    merge_replies,
)
from evomeans.engines.frame import Frame

# What is asked: the centres of so many solutions.
SOLUTIONS, CLUSTERS, FEATURES = 25, 20, 10


@contextmanager
def local_cluster(workers: int = 2, memory: str = "auto", processes: bool = True) -> Iterator[Any]:
    """Start workers with a thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            # Through sockets in any case, so that everything is serialized.
            protocol="tcp",
            memory_limit=memory if processes else 0,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def paper_search(n_clusters: int, **parameters: Any) -> HGMeans:
    """Return a model with the fast setting and the strategy of the paper."""
    return HGMeans.fast(n_clusters, strategy="paper", **parameters)


def timed_fit(model: HGMeans, X: Any, warm: Any = None) -> float:
    """Fit and return the seconds; compiled code is loaded before, by a fit to a few rows."""
    if warm is not None:
        paper_search(model.n_clusters, engine=model.engine, max_offspring=1).fit(warm)
    began = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - began


# ---- overhead ------------------------------------------------------------------------------------


def overhead() -> None:
    """Measure what a request costs where there is next to no work."""
    X = mixture(4000, FEATURES, CLUSTERS, 4.0)
    local = per_request(X)
    with local_cluster():
        cluster = per_request(X)
    print(
        f"A request of {SOLUTIONS} solutions (m = {CLUSTERS}, d = {FEATURES}), beyond its work: "
        f"{1e3 * local:.1f} ms on the local scheduler, {1e3 * cluster:.1f} ms on two processes",
        flush=True,
    )


def per_request(X: Any, rounds: int = 200) -> float:
    """Seconds of a request beyond the work."""
    engine: Any = create_engine("dask", X, None)
    centers = engine.samples_at((np.arange(CLUSTERS) + 0.5) / CLUSTERS)
    engine.refine([])
    questions = [Question(Wanted.SUMS, name, centers) for name in range(SOLUTIONS)]
    for _ in range(10):
        engine.end(engine.begin(questions))
    engine.work_seconds = 0.0
    began = time.perf_counter()
    for _ in range(rounds):
        engine.end(engine.begin(questions))
    taken = time.perf_counter() - began
    engine.close()
    return float((taken - engine.work_seconds) / rounds)


# ---- many workers --------------------------------------------------------------------------------

ROWS_IN_ALL = 10**9


def simulation() -> None:
    """Run requests on up to 100 workers that sleep for as long as their blocks would take."""
    work = ROWS_IN_ALL * per_row()
    print(
        f"{ROWS_IN_ALL:.0e} rows, {1e9 * work / ROWS_IN_ALL:.1f} ns of work for a row and "
        f"{SOLUTIONS} solutions (measured), m = {CLUSTERS}, d = {FEATURES}; workers are threads of "
        "one process with a socket each, and sleep for that long",
        flush=True,
    )
    for workers in (10, 30, 100):
        with local_cluster(workers, processes=False) as client:
            idle = statistics.median(pretended(client, 0.0) for _ in range(5))
            share = work / workers
            busy = pretended(client, share)
        print(
            f"  {workers:>4} workers: {1e3 * idle:6.1f} ms without work; with {share:.2f} s of "
            f"work each {busy:.2f} s, {share / busy:.0%} of it work",
            flush=True,
        )


def per_row(n: int = 200_000) -> float:
    """Seconds that one thread takes for a row and all solutions, on average over a round."""
    import dask

    X = mixture(n, FEATURES, CLUSTERS, 4.0)
    with dask.config.set(scheduler="sync"):
        paper_search(CLUSTERS, engine="dask", max_offspring=1, random_state=0).fit(X[:2000])
        engine: Any = create_engine("dask", X, None)
        centers = engine.samples_at((np.arange(SOLUTIONS * CLUSTERS) + 0.5) / 500)
        starts = centers.reshape(SOLUTIONS, CLUSTERS, FEATURES)
        results = engine.refine([Start(start) for start in starts])
    iterations = sum(result.n_iter for result in results)
    return float(engine.work_seconds / iterations * SOLUTIONS / n)


def pretended(client: Any, seconds: float) -> float:
    """Return how long a request takes whose work takes this long on every worker."""
    workers = sorted(client.nthreads())
    ground = Ground("pretended", Frame(np.zeros(FEATURES), 0), np.ones(FEATURES + 1), 1.0)
    centers = np.random.default_rng(0).normal(size=(CLUSTERS, FEATURES))
    questions = tuple(Question(Wanted.SUMS, name, centers) for name in range(SOLUTIONS))
    groups = [Group(worker, (number,)) for number, worker in enumerate(workers)]
    runner = runners.ClientRunner(client)
    with mock.patch.object(runners, "ask_blocks", partial(_pretend, seconds)):
        began = time.perf_counter()
        pending = runner.begin(Request(ground, questions, 0), groups, {})
        merge_replies(pending.result())
        return time.perf_counter() - began


def _pretend(seconds: float, blocks: Any, request: Request, n_threads: int = 1) -> Reply:
    time.sleep(seconds)
    sums = np.random.default_rng(0).integers(2**50, size=(CLUSTERS, 2, FEATURES + 1))
    return Reply([sums for _ in request.questions], {})
