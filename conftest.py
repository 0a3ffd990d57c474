"""What all tests share: a deterministic hypothesis profile and a guard against hanging."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from evomeans.compiled import ready
from evomeans.engines import Order, create_engine
from limits import time_limit
from optional import require_torch

pytest.register_assert_rewrite("oracles")

# A shell lets what it runs in the background ignore Ctrl-C; tests that send it want it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "evomeans",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=40,
    print_blob=False,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
settings.load_profile("evomeans")

SECONDS_PER_TEST = 120


def pytest_configure(config: pytest.Config) -> None:
    """Give every worker of pytest-xdist one thread, unless a test asks for more.

    As many workers as cores, with as many threads each, would mostly wait for each other. So would
    processes that help to compile.
    """
    if getattr(config.option, "numprocesses", None):
        # Workers are started later; libraries look at it when they are loaded.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if hasattr(config, "workerinput"):
        ready.MOST_PROCESSES = 1


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking at thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_test_hangs() -> Iterator[None]:
    with time_limit(SECONDS_PER_TEST):
        yield


@pytest.fixture(scope="session")
def _compiled_kernels() -> None:
    """Compile before the time limits of single examples begin to count."""
    for dtype in (np.float32, np.float64):
        engine = create_engine("cpu", np.eye(3, dtype=dtype), None)
        engine.refine([Order(np.eye(3), removed=0)])


@pytest.fixture
def gpu_device(monkeypatch) -> str:
    """Let the GPU engine run: on a GPU if there is one, else on the CPU."""
    torch = require_torch()
    name = "cuda" if torch.cuda.is_available() else "cpu"
    # The samples are few; threads would only wait for each other.
    torch.set_num_threads(1)
    if name == "cuda":
        monkeypatch.setattr("limits.FACTOR", 20.0)
    monkeypatch.setenv("EVOMEANS_GPU_DEVICE", name)
    return name


# Without a GPU, PyTorch does on the CPU what kernels would do: many times as slowly.
FAST_ENGINES = ["cpu", pytest.param("gpu", marks=pytest.mark.slow), "dask"]


@pytest.fixture(params=["reference", *FAST_ENGINES])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Every engine: what takes this fixture is a parity test."""
    return ready_engine(request)


@pytest.fixture(params=FAST_ENGINES)
def fast_engine_name(request: pytest.FixtureRequest) -> str:
    """Every engine that can be compared with the reference engine."""
    return ready_engine(request)


def ready_engine(request: pytest.FixtureRequest) -> str:
    """Return the name of an engine when all that it needs is there."""
    if request.param != "reference":
        request.getfixturevalue("_compiled_kernels")
    if request.param == "gpu":
        request.getfixturevalue("gpu_device")
    if request.param == "dask":
        request.getfixturevalue("small_blocks")
    return request.param


@pytest.fixture(params=["reference", "cpu"])
def rival_engine_name(request: pytest.FixtureRequest) -> str:
    """Every engine that also answers what only the rivals ask."""
    if request.param == "cpu":
        request.getfixturevalue("_compiled_kernels")
    return request.param


@pytest.fixture(scope="session")
def _compiled_steps(_compiled_kernels) -> None:
    """Compile what only the Dask engine calls; skip where Dask is missing."""
    pytest.importorskip("distributed")
    for dtype in (np.float32, np.float64):
        engine = create_engine("dask", np.eye(3, dtype=dtype), None)
        engine.refine([Order(np.eye(3), removed=0)])


@pytest.fixture
def small_blocks(_compiled_steps, monkeypatch) -> Iterator[None]:
    """Let the Dask engine divide any data into three blocks, and its tasks run in this thread."""
    import dask

    monkeypatch.setattr("evomeans.engines.dask.blocks.SMALLEST_LIMIT", 1)
    monkeypatch.setattr("evomeans.engines.dask.blocks.SMALLEST_BLOCK", 0)
    monkeypatch.setattr("evomeans.engines.dask.blocks.PARTS", 3)
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture(scope="session")
def cluster(_compiled_steps) -> Iterator[Any]:
    """Two workers, processes; other numbers by ``scale``. They load the kernels that are on disk.

    One for all tests that need one: to start it takes seconds.
    """
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit="1GiB",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster) -> Iterator[Any]:
    """Return a client of the cluster when that has its two workers."""
    yield from _client_of(cluster, n_workers=2)


@pytest.fixture
def lone_client(cluster) -> Iterator[Any]:
    """Return a client of the cluster when that has a single worker."""
    yield from _client_of(cluster, n_workers=1)


def _client_of(cluster: Any, n_workers: int) -> Iterator[Any]:
    from distributed import Client

    cluster.scale(n_workers)
    with Client(cluster) as client:
        while len(client.nthreads()) != n_workers:
            time.sleep(0.02)
        yield client


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> type[np.floating]:
    """Both precisions of the samples."""
    return request.param


@pytest.fixture(params=[False, True], ids=["equal", "weighted"])
def weighted(request: pytest.FixtureRequest) -> bool:
    """Equal and given sample weights."""
    return request.param


@pytest.fixture
def eager_threads(monkeypatch) -> None:
    """Use all threads asked for, also on data for which one would do."""
    for worth in ("WORTH_A_THREAD", "WORTH_A_CALL", "WORTH_A_WORKER"):
        monkeypatch.setattr(f"evomeans.engines.cpu.engine.{worth}", 0)
