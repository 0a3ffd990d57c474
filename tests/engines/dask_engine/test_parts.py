"""The parts of the Dask engine that need no Dask."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import create_engine
from evomeans.engines.cpu.layout import State
from evomeans.engines.cpu.samples import encode_samples
from evomeans.engines.dask import blocks, cache
from evomeans.engines.dask.blocks import row_chunks
from evomeans.engines.dask.cache import Standing, WorkerCache, memory_of
from evomeans.engines.dask.steps import Reply, merge_replies
from evomeans.engines.frame import Frame
from evomeans.search.founding import KMeansPlusPlus

# ---- blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "row_bytes"),
    [([1000, 900, 1100], 2048), ([10, 10, 10, 100_000, 5], 400), ([10**8], 400), ([0, 5, 0], 8)],
)
def test_blocks_follow_chunks_within_the_limits(chunks, row_bytes):
    """No row is lost; those of a large chunk are even, and small chunks of a run share one."""
    rows = row_chunks(chunks, row_bytes)
    assert sum(rows) == sum(chunks)
    assert max(rows) * row_bytes <= blocks.LARGEST_BLOCK
    assert rows == tuple(chunks) if row_bytes == 2048 else len(rows) != len(chunks)
    parts = rows[1:-1] if len(chunks) == 5 else rows
    assert len(rows) < 4 or max(parts) - min(parts) <= 1


# ---- the cache -------------------------------------------------------------------------------


def samples_of(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    return encode_samples(X, None, Frame.around(X), in_order=True)


def standing_of(n, k=300):
    state = State(*(np.zeros_like(array) for array in State.allocate(n, k)))
    return Standing(state, np.zeros((k, 2)), np.zeros((k, 2, 3), np.int64))


def test_blocks_are_kept_while_there_is_room():
    """The blocks of one data set do not push each other out; those of another one do."""
    one, state = samples_of(640), standing_of(64, k=60)
    cache = WorkerCache(3 * memory_of(one))
    assert cache.keep_samples(("x", 0), one)
    assert cache.keep_samples(("x", 1), one)
    assert not cache.keep_samples(("x", 2), one), "a third is for standings"
    assert not cache.has_room("x", 1)
    assert cache.samples(("x", 2)) is None
    assert cache.keep_samples(("y", 0), one)
    assert cache.samples(("x", 0)) is None
    assert cache.samples(("x", 1)) is one
    for name, token in enumerate("xxy"):
        cache.give((token, name, 0, True), state, serial=0)
    assert cache.nbytes == (2 * memory_of(one), 3 * state.nbytes)
    cache.forget("x", frozenset([0]))
    assert cache.take(("x", 0, 0, True)) is None
    cache.drop("x")
    assert cache.take(("x", 1, 0, True)) is None
    assert cache.nbytes == (memory_of(one), state.nbytes)


def test_standings_are_bounded_and_the_oldest_leave_first():
    one = standing_of(640)
    cache = WorkerCache(9 * one.nbytes)
    for name in range(5):
        cache.give(("x", name, 0, True), one, serial=10 * name)
        assert cache.nbytes[1] <= 3 * one.nbytes
    assert cache.take(("x", 1, 0, True)) is None
    assert cache.take(("x", 4, 0, True)) is not None
    assert cache.take(("x", 4, 0, True)) is None


def test_standings_in_use_do_not_push_each_other_out():
    """More solutions than there is room for: some are remembered always, not all never."""
    one = standing_of(640)
    cache = WorkerCache(9 * one.nbytes)
    for serial in range(10):
        known = 0
        for name in range(5):
            known += cache.take(("x", name, 0, True)) is not None
            cache.give(("x", name, 0, True), one, serial)
        assert known == (3 if serial else 0)


def test_the_first_task_that_asks_decides_about_the_budget(monkeypatch):
    """Before that, there is nothing to drop."""
    budgets = iter([3 * memory_of(samples_of(640))])
    monkeypatch.setattr(cache, "budget_here", lambda: next(budgets))
    own = WorkerCache()
    own.drop("x")
    assert own.budget is None
    assert own.keep_samples(("x", 0), samples_of(640))
    assert own.has_room("x", 1)
    assert own.budget == 3 * memory_of(samples_of(640))


# ---- merging ---------------------------------------------------------------------------------


def test_replies_can_be_merged_in_any_order():
    """Integers of any size the engine makes, in a line or in a tree; one has nothing to say."""
    rng = np.random.default_rng(3)
    replies = [
        Reply([rng.integers(-(2**55), 2**55, (3, 2, 4)), {i: 0.1 * i}], {i: ("w", True)})
        for i in range(9)
    ]
    replies.insert(4, Reply([], {}))
    line = merge_replies(replies)
    tree = merge_replies(
        [merge_replies(replies[6:]), merge_replies(replies[:2]), merge_replies(replies[2:6])]
    )
    assert_array_equal(line.answers[0], tree.answers[0])
    assert line.answers[1] == tree.answers[1]
    assert line.homes == tree.homes


def test_rounds_of_large_data_are_small(monkeypatch) -> None:
    """By the number of values alone, so that a search does not depend on the cluster."""
    pytest.importorskip("dask")
    from evomeans.engines.dask import engine as module

    X = np.random.default_rng(0).normal(size=(100, 3))
    for most, batch in ((300, module.BATCH), (299, module.SMALL_BATCH)):
        monkeypatch.setattr(module, "MANY_VALUES", most)
        assert create_engine("dask", X, None).batch == batch


# ---- founders --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1500, 20_000])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_founders_of_a_round_see_outliers_in_a_few_passes(n_rows, is_weighted):
    """However many founders and centres: k-means++ on all rows would take a pass for each."""
    array = pytest.importorskip("dask.array")
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 3)) + 20.0 * np.eye(3)[rng.integers(3, size=n_rows)]
    outliers = rng.choice(n_rows, 6, replace=False)
    X[outliers] = 1e4 * rng.normal(size=(6, 3))
    weights = array.from_array(rng.uniform(0.5, 2.0, n_rows), chunks=700) if is_weighted else None
    engine = create_engine("dask", array.from_array(X, chunks=(700, 3)), weights)
    requests, ask = [], engine.ask
    engine.ask = lambda questions: requests.append(questions) or ask(questions)
    founding = KMeansPlusPlus(greedy=True)
    placed = founding.place(engine, [founding.draw(n_rows, 9, rng) for _ in range(3)])
    assert len(requests) == 5
    for centers in map(engine.frame.decode, placed):
        apart = np.linalg.norm(X[outliers, None] - centers, axis=2).min(axis=1)
        assert (apart < 1e-6).all()
    # An engine that cannot draw by distance has only the first of the passes.
    engine.most_sampled = 0
    founding.place(engine, [founding.draw(n_rows, 9, rng)])
    assert len(requests) == 6


def test_seeding_that_is_abandoned_has_samples_for_centres():
    array = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(5000, 3))
    engine, founding = create_engine("dask", array.from_array(X), None), KMeansPlusPlus()
    numbers = founding.draw(5000, 40, np.random.default_rng(1))

    def stopped(centers):
        engine.abandon(True)
        engine.check_abandoned()

    engine.weigh = stopped
    (centers,) = map(engine.frame.decode, founding.place(engine, [numbers]))
    apart = np.linalg.norm(X[:, None] - centers, axis=2).min(axis=0)
    assert (apart < 1e-6).all()
    assert len(np.unique(centers.round(9), axis=0)) == 40
