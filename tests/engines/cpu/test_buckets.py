"""Many samples in order: buckets first."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order, create_engine
from evomeans.engines.cpu import order
from evomeans.engines.cpu.order import find_planes, ordered_rows, route
from evomeans.engines.cpu.samples import encode_samples
from evomeans.engines.frame import Frame
from oracles import assert_same_bits
from problems import make_samples


@pytest.fixture(autouse=True)
def _small_buckets(monkeypatch) -> None:
    monkeypatch.setattr(order, "BUCKET_ROWS", 300)
    monkeypatch.setattr(order, "ROUTED_AT_ONCE", 1000)


def spread_of_runs(rows: np.ndarray) -> float:
    """Return the mean squared distance of samples from the mean of their run of 64."""
    runs = rows[: len(rows) // 64 * 64].reshape(-1, 64, rows.shape[1]).astype(float)
    return float(((runs - runs.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).mean())


@pytest.mark.parametrize("kind", ["normal", "blobs", "duplicates", "constant", "outliers"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_every_row_has_one_place(kind, n_jobs, dtype) -> None:
    X = make_samples(kind, 5_003, 4, dtype, np.random.default_rng(0))
    frame = Frame.around(X)
    order, rows = ordered_rows(X, frame, 64, n_jobs)
    assert_array_equal(np.sort(order), np.arange(len(X)))
    assert_array_equal(rows, frame.encode(X)[order])
    assert rows.dtype == dtype


def test_the_order_does_not_depend_on_threads_or_chunks(monkeypatch) -> None:
    X = make_samples("blobs", 4_000, 3, np.float64, np.random.default_rng(1))
    expected, _ = ordered_rows(X, Frame.around(X), 64, 1)
    monkeypatch.setattr(order, "ROUTED_AT_ONCE", 77)
    found, _ = ordered_rows(X, Frame.around(X), 64, 4)
    assert_array_equal(found, expected)


def test_neighbours_stand_together(monkeypatch) -> None:
    """As well as without buckets, within a few percent, if buckets are not too small."""
    monkeypatch.setattr(order, "BUCKET_ROWS", 5_000)
    X = np.random.default_rng(2).normal(size=(20_000, 3))
    frame = Frame.around(X)
    whole = encode_samples(X, None, frame, in_order=True).rows
    _, rows = ordered_rows(X, frame, 64, 1)
    assert spread_of_runs(rows) < 1.1 * spread_of_runs(whole)


def test_buckets_have_about_the_same_size() -> None:
    X = np.random.default_rng(3).normal(size=(20_000, 5))
    tree, found = find_planes(X, Frame.around(X), 4), np.empty(len(X), np.uint16)
    route(Frame.around(X).encode(X), *tree, 4, found)
    sizes = np.bincount(found, minlength=16)
    assert len(sizes) == 16
    assert sizes.min() > 0.6 * len(X) / 16
    assert sizes.max() < 1.5 * len(X) / 16


def test_a_refinement_does_not_depend_on_it(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    X, weights = make_samples("blobs", 3_000, 3, np.float32, rng), rng.random(3_000)
    results = []
    for many in (10**9, 1):
        monkeypatch.setattr("evomeans.engines.cpu.samples.MANY_ROWS", many)
        engine = create_engine("cpu", X, weights, n_jobs=2)
        results += engine.refine([Order(engine.samples_at(np.linspace(0.1, 0.9, 6)))])
    assert_same_bits(*results)
