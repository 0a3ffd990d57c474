"""The parts of the Dask engine that need no Dask."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import create_engine
from evomeans.engines.cpu.layout import State
from evomeans.engines.cpu.samples import encode_samples
from evomeans.engines.dask import blocks, cache
from evomeans.engines.dask.blocks import combine, row_chunks, summarize
from evomeans.engines.dask.cache import Standing, WorkerCache, memory_of
from evomeans.engines.dask.engine import locate, positions
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


def test_a_survey_is_that_of_all_rows():
    X = np.random.default_rng(0).normal(size=(100, 3))
    w = np.random.default_rng(1).random(100)
    parts = [summarize(X[a:b], w[a:b]) for a, b in [(0, 30), (30, 30), (30, 100)]]
    survey = combine(parts, [30, 0, 70], [100], weighted=True)
    assert survey.sizes.tolist() == [30, 70]
    assert_array_equal(survey.low, X.min(axis=0))
    assert_array_equal(survey.high, X.max(axis=0))
    assert survey.total_weight == pytest.approx(w.sum())
    assert survey.heaviest == w.max()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named_by_block_and_row(value):
    X = np.zeros((10, 3), np.float32)
    X[7, 2] = value
    parts = [summarize(np.zeros((5, 3)), None), summarize(X, None)]
    for chunks, place in (((5, 10), "block 1, row 7"), ((12, 0, 3), "block 2, row 0")):
        with pytest.raises(ValueError, match=f"X has {value} in {place} of it, column 2. K-means"):
            combine(parts, [5, 10], chunks, weighted=False)


def test_bad_weights_are_named_by_block_and_row():
    X = np.zeros((4, 1))
    for bad in (-1.0, np.nan):
        part = summarize(X, np.array([1.0, 0.0, bad, 2.0]))
        with pytest.raises(ValueError, match=f"sample_weight has {bad} in block 0, row 2 of it"):
            combine([part], [4], [4], weighted=True)
    with pytest.raises(ValueError, match="must not be all zero"):
        combine([summarize(X, np.zeros(4))], [4], [4], weighted=True)


# ---- draws -----------------------------------------------------------------------------------


def test_a_draw_over_blocks_is_a_draw_over_all():
    """For every quantile: the block and the rest that one cumulated sum would give."""
    totals = [0.0, 2.0, 0.0, 1.0, 5.0, 0.0]
    for quantile in np.arange(64) / 64:
        block, rest = locate(totals, quantile)
        cumulated = np.cumsum(totals)
        expected = int(np.searchsorted(cumulated, quantile * 8.0, side="right"))
        assert block == expected
        assert rest == quantile * 8.0 - (cumulated[block] - totals[block])
    assert locate([0.0, 0.0], 0.3) is None
    assert locate(totals, 1.0)[0] == 4


@pytest.mark.parametrize("weighted", [False, True])
def test_positions_are_those_of_all_rows_together(weighted):
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 3, 50).astype(float)
    parts = [(0, 20), (20, 25), (25, 50)]
    w = [weights[a:b] if weighted else None for a, b in parts]
    survey = combine(
        [summarize(np.zeros((b - a, 1)), w[i]) for i, (a, b) in enumerate(parts)],
        [20, 5, 25],
        [50],
        weighted=weighted,
    )
    quantiles = rng.random(200)
    picks, order = positions(survey, quantiles)
    cumulated = np.cumsum(weights if weighted else np.ones(50))
    for quantile, (block, place) in zip(quantiles, order, strict=True):
        row = np.searchsorted(cumulated, quantile * cumulated[-1], side="right")
        begin, end = parts[block]
        assert begin <= row < end
        rest = picks[block][place]
        if weighted:
            rest = np.searchsorted(np.cumsum(weights[begin:end]), rest, side="right")
        assert row - begin == rest


# ---- the cache -------------------------------------------------------------------------------


def samples_of(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    return encode_samples(X, None, Frame.around(X), in_order=True)


def standing_of(n, k=300):
    state = State(*(np.zeros_like(array) for array in State.allocate(n, k)))
    return Standing(state, np.zeros((k, 2)), np.zeros((k, 2, 3), np.int64))


def test_blocks_are_kept_while_there_is_room():
    """The blocks of one data set do not push each other out; those of another one do."""
    one = samples_of(640)
    cache = WorkerCache(3 * memory_of(one))
    assert cache.keep_samples(("x", 0), one)
    assert cache.keep_samples(("x", 1), one)
    assert not cache.keep_samples(("x", 2), one), "a third is for standings"
    assert cache.samples(("x", 2)) is None
    assert cache.keep_samples(("y", 0), one)
    assert cache.keep_samples(("y", 1), one)
    assert cache.samples(("x", 0)) is None
    assert cache.samples(("x", 1)) is one
    assert cache.nbytes == (3 * memory_of(one), 0)
    cache.drop("x")
    assert cache.nbytes == (2 * memory_of(one), 0)


def test_blocks_of_data_that_does_not_fit_give_way_to_standings_for_good():
    one, state = samples_of(640), standing_of(640)
    cache = WorkerCache(3 * memory_of(one))
    cache.keep_samples(("x", 0), one)
    cache.keep_samples(("x", 1), one)
    fill(cache, "x", state)
    assert cache.samples(("x", 1)) is one, "all data is here as far as anybody knows"
    assert not cache.keep_samples(("x", 2), one)
    fill(cache, "x", state)
    assert cache.samples(("x", 1)) is None
    assert not cache.has_room("x", 1)
    cache.drop("x")
    assert cache.has_room("x", memory_of(one))
    assert cache.nbytes == (0, 0)


def test_blocks_that_move_leave_with_their_standings():
    one, state = samples_of(640), standing_of(64)
    cache = WorkerCache(10**9)
    for token, block in [("x", 0), ("x", 1), ("y", 1)]:
        cache.keep_samples((token, block), one)
        cache.give((token, 7, block, True), state, serial=0)
    cache.give(("x", 8, 1, True), state, serial=0)
    cache.forget("x", frozenset([8]))
    assert cache.take(("x", 8, 1, True)) is None
    cache.drop("x", [1])
    assert cache.samples(("x", 1)) is None
    assert cache.nbytes == (2 * memory_of(one), 2 * state.nbytes)
    assert cache.take(("x", 7, 0, True)) is not None
    assert cache.take(("x", 7, 1, True)) is None


def fill(cache, token, standing):
    """Give as many standings as one request could."""
    for name in range(3 * cache.budget // standing.nbytes):
        cache.give((token, name, 0, True), standing, serial=0)
        assert sum(cache.nbytes) <= cache.budget


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


def test_threads_that_ask_at_once_get_one_cache(monkeypatch):
    made = []

    def slow_budget():
        made.append(1)
        time.sleep(0.05)
        return 10**6

    monkeypatch.setattr(cache, "budget_here", slow_budget)
    cache._cache_of_process.cache_clear()
    try:
        assert cache.known_cache() is None
        with ThreadPoolExecutor(4) as threads:
            found = [threads.submit(cache.cache_here) for _ in range(4)]
        assert len({id(one.result()) for one in found}) == len(made) == 1
        assert cache.known_cache() is found[0].result()
    finally:
        cache._cache_of_process.cache_clear()


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
