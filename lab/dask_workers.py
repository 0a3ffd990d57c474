"""Workers on this machine, and what a request to them costs; see ``lab.dask_engine``."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from evomeans import HGMeans
from evomeans.engines import create_engine
from evomeans.engines.dask.steps import Question
from lab.measure import mixture

# A request asks for the sums of 25 solutions.
SOLUTIONS, CLUSTERS, FEATURES = 25, 20, 10


@contextmanager
def local_cluster(memory: str = "auto") -> Iterator[Any]:
    """Start two workers, processes with a thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory,
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
    """Seconds of a request whose answers are known: centres do not move."""
    engine: Any = create_engine("dask", X, None)
    centers = engine.samples_at((np.arange(CLUSTERS) + 0.5) / CLUSTERS)
    questions = [Question("sums", name, centers) for name in range(SOLUTIONS)]
    for _ in range(10):
        engine.ask(questions)
    began = time.perf_counter()
    for _ in range(rounds):
        engine.ask(questions)
    taken = time.perf_counter() - began
    engine.close()
    return taken / rounds
