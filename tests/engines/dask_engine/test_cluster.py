"""A real cluster of processes: the same bits for any number of workers, and whatever dies."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from evomeans import HGMeans
from evomeans.storage.archive import read_archive
from evomeans.storage.checkpoint import FORMAT, VERSION

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from evomeans.engines.dask import DaskEngine, runners, steps  # noqa: E402
from evomeans.engines.dask.cache import CACHE  # noqa: E402
from evomeans.engines.dask.steps import Request  # noqa: E402
from evomeans.engines.protocol import Abandoned  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL"),
    # Of a connection to a worker that was killed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1500, 4)) + 8.0 * RNG.integers(0, 4, size=(1500, 1))
CHUNKS = (430, 0, 70, 230, 370, 400)
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 12, "n_iter_no_change": 12}


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """Chunks of the small arrays here are blocks as they are."""
    monkeypatch.setattr("evomeans.engines.dask.blocks.SMALLEST_BLOCK", 0)


def lazy(samples=X, chunks=CHUNKS):
    return da.from_array(samples, chunks=(chunks, samples.shape[1]))


def quick(**parameters):
    return HGMeans(4, **{**QUICK, "random_state": 3, **parameters})


@pytest.fixture(scope="module")
def undisturbed():
    """Return a fit in this process: what all others have to equal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evomeans.engines.dask.blocks.SMALLEST_BLOCK", 0)
        return quick().fit(lazy())


def assert_same_fit(one, two):
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert one.inertia_ == two.inertia_
    for a, b in zip(one.history_, two.history_, strict=True):
        assert dataclasses.replace(a, seconds=0.0) == dataclasses.replace(b, seconds=0.0)
    for a, b in zip(one.population_, two.population_, strict=True):
        assert_array_equal(a.centers, b.centers)


# ---- the same bits ---------------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True])
def test_two_workers_give_the_same_bits(client, undisturbed, monkeypatch, many):
    """Also with what is done for many: replies merged in a tree.

    Labels are lazy, and those of predict. One worker: see the one that joins it.
    """
    if many:
        monkeypatch.setattr(runners, "FAN_IN", 2)
    model = quick().fit(lazy())
    assert_same_fit(model, undisturbed)
    assert_array_equal(model.labels_.compute(), model.predict(X))


def test_a_deep_search_with_new_populations_gives_the_same_bits(client):
    """On the local scheduler and on the cluster."""
    deep = quick(strategy="deep", n_iter_no_change=5, max_offspring=60)
    with dask.config.set(scheduler="threads"):
        here = clone(deep).fit(lazy())
    assert here.n_rediscoveries_ >= 1, "there was a second population"
    assert_same_fit(deep.fit(lazy()), here)


def test_any_number_of_threads_gives_the_same_bits(undisturbed, monkeypatch):
    """Three threads of a worker share its blocks, and end with the request."""
    pools = []

    def pool_of(*arguments):
        pools.append(ThreadPoolExecutor(*arguments))
        return pools[-1]

    monkeypatch.setattr(steps, "ThreadPoolExecutor", pool_of)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        assert_same_fit(quick().fit(lazy()), undisturbed)
    assert max(len(pool._threads) for pool in pools) == 3
    assert not any(thread.is_alive() for pool in pools for thread in pool._threads)


def kept_within(budget, client, undisturbed):
    """Fit with so many bytes on each worker; return what they kept after each solution."""
    seen = []
    client.run(shrink, budget)
    try:
        model = quick(observers=lambda _: seen.extend(client.run(kept).values())).fit(lazy())
    finally:
        client.run(shrink, 10**8)
    assert_same_fit(model, undisturbed)
    return seen


def test_workers_without_room_for_anything(client, undisturbed, monkeypatch):
    """Every block is loaded for every request, where it answered last: its labels may be there."""
    asked, homes = [], {}
    ask = runners.ClientRunner.ask

    def ask_and_look(runner, request, kept, visits, is_abandoned):
        assert not kept
        wanted = {worker: len(those) for worker, those in visits.items()}
        asked.append((wanted, Counter(homes.values())))
        replies = ask(runner, request, kept, visits, is_abandoned)
        homes.update({b: worker for r in replies for b, (worker, _) in r.homes.items()})
        return replies

    monkeypatch.setattr(runners.ClientRunner, "ask", ask_and_look)
    assert set(kept_within(0, client, undisturbed)) == {(0, 0)}
    assert asked[0][0].keys() == {""}
    later = [each for each in asked if each[1].total() == 5]
    assert len(later) > 10
    for wanted, known in later:
        assert wanted == known or sum(wanted.values()) < 5


def test_workers_keep_no_more_than_they_may(client, undisturbed):
    """Room for some of the blocks and labels: it is used, never exceeded, and changes no bit."""
    seen = kept_within(60_000, client, undisturbed)
    assert max(map(sum, seen)) <= 60_000
    assert (np.max(seen, axis=0) > 0).all()


def shrink(budget):
    CACHE.budget = budget


def test_a_fit_leaves_nothing_behind(client):
    quick(max_offspring=1).fit(lazy())
    assert not any(map(sum, client.run(kept).values()))


def kept():
    return CACHE.nbytes


# ---- faults ----------------------------------------------------------------------------------


def at_request(monkeypatch, number, action):
    """Do something while a request is under way, in the middle of a round."""
    submit, sent = runners.ClientRunner.submit, []

    def submit_and_act(*arguments):
        futures = submit(*arguments)
        sent.append(len(futures))
        if len(sent) == number:
            action()
        return futures

    monkeypatch.setattr(runners.ClientRunner, "submit", submit_and_act)
    return sent


@pytest.mark.parametrize("n_killed", [1, 2])
def test_workers_killed_in_the_middle_of_the_search(client, undisturbed, monkeypatch, n_killed):
    """Their tasks run elsewhere, their blocks are loaded there: the same bits."""
    pids = sorted(client.run(os.getpid).values())[:n_killed]
    sent = at_request(monkeypatch, 15, lambda: [os.kill(pid, signal.SIGKILL) for pid in pids])
    assert_same_fit(quick().fit(lazy()), undisturbed)
    assert len(sent) > 15
    assert not set(client.run(os.getpid).values()) & set(pids)


def test_a_search_without_workers_says_so_and_waits(
    cluster, client, undisturbed, monkeypatch, caplog
):
    def replace_all():
        cluster.scale(0)
        threading.Thread(target=bring_back, daemon=True).start()

    def bring_back():
        while "waits for one" not in caplog.text:
            time.sleep(0.02)
        # The next test wants one, and starting it takes seconds.
        cluster.scale(1)

    sent = at_request(monkeypatch, 15, replace_all)
    with caplog.at_level(logging.WARNING, "evomeans"):
        assert_same_fit(quick().fit(lazy()), undisturbed)
    assert len(sent) > 15
    assert caplog.text.count("waits for one") == 1


def test_a_worker_that_joins_gets_blocks(cluster, lone_client, undisturbed, monkeypatch):
    """In the middle of the search; from the next round on it has some of them."""
    homes = []
    ask = DaskEngine.ask

    def ask_and_look(engine, questions):
        answers = ask(engine, questions)
        homes.append({block: worker for block, (worker, _) in engine._homes.items()})
        return answers

    def add_one():
        cluster.scale(2)
        lone_client.wait_for_workers(2)

    monkeypatch.setattr(DaskEngine, "ask", ask_and_look)
    at_request(monkeypatch, 10, add_one)
    assert_same_fit(quick().fit(lazy()), undisturbed)
    assert len(set(homes[0].values())) == 1
    assert len(set(homes[-1].values())) == 2


def test_a_pass_that_nobody_wants_ends_before_its_tasks(client):
    """The tasks sleep for half a minute; those that have not begun are cancelled."""
    engine = DaskEngine(lazy(), runner=runners.ClientRunner(client))
    slow = [dask.delayed(time.sleep, pure=False)(3.0) for _ in range(20)]
    timer = threading.Timer(0.5, engine.abandon, [True])
    timer.start()
    with pytest.raises(Abandoned):
        engine.runner.ask(
            Request(engine.ground, [], 0, frozenset()),
            {},
            {runners.ANYWHERE: slow},
            lambda: engine.is_abandoned,
        )
    engine.abandon(False)
    timer.join()
    # The engine still works.
    assert len(engine.samples_at(np.array([0.5]))) == 1


CLIENT = """
    import sys
    import numpy as np
    import dask.array as da
    from distributed import Client
    from evomeans import HGMeans
    from evomeans.engines.dask import blocks
    from evomeans.storage import checkpoint

    blocks.SMALLEST_BLOCK = 0
    checkpoint.SECONDS_BETWEEN = checkpoint.PAUSE_PER_WRITE = 0.0
    address, path, samples = sys.argv[1:]
    with Client(address):
        X = da.from_array(np.load(samples), chunks=({chunks}, 4))
        HGMeans(4, **{parameters}, random_state=3, checkpoint=path).fit(X)
"""


def test_a_client_that_dies_and_its_successor(cluster, client, undisturbed, tmp_path):
    """The successor goes on from the checkpoint, to the same bits."""
    path = tmp_path / "checkpoint"
    np.save(tmp_path / "X.npy", X)
    script = tmp_path / "client.py"
    script.write_text(textwrap.dedent(CLIENT).format(chunks=CHUNKS, parameters=QUICK))
    arguments = [cluster.scheduler_address, str(path), str(tmp_path / "X.npy")]
    process = subprocess.Popen([sys.executable, str(script), *arguments])
    while process.poll() is None and (not path.exists() or n_records(path) < 6):
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert 6 <= n_records(path) < 18, "cut before its end"
    assert_same_fit(quick(checkpoint=path).fit(lazy()), undisturbed)


def n_records(path):
    return len(read_archive(path, FORMAT, VERSION).arrays["history_number"])


def test_a_memory_map_is_read_by_the_workers(client, undisturbed, tmp_path):
    np.save(tmp_path / "X.npy", X)
    model = quick(engine="dask").fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert model.inertia_ == pytest.approx(undisturbed.inertia_, rel=1e-6)
