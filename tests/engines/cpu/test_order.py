"""The order of the samples: always all of them, and neighbours in the same tile."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from evomeans.engines import Order, create_engine
from evomeans.engines.cpu import order as module
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.order import (
    FEWEST_POLLED,
    LEADING,
    VALUES_AT_A_TIME,
    find_planes,
    leading,
    leading_directions,
    neighbour_order,
    ordered_rows,
    polled,
    route,
)
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Abandoned
from oracles import assert_same_bits
from problems import KINDS, arranged, make_samples


def assert_permutation(order, n: int) -> None:
    assert order.shape == (n,)
    assert order.dtype == np.uint32
    assert_array_equal(np.sort(order), np.arange(n))


def mean_radius(X, order) -> float:
    """Mean distance of the samples from the middle of their tile."""
    tiles = np.split(X[order].astype(np.float64), range(WIDTH, len(X), WIDTH))
    return float(
        np.concatenate([np.linalg.norm(tile - tile.mean(axis=0), axis=1) for tile in tiles]).mean()
    )


# ---- all of them, once -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_sample_has_one_place_in_data_of_all_kinds(dtype, kind) -> None:
    """Duplicates, huge offsets, outliers, constant columns, only one point: all come to an end."""
    for n in (1, 2, 64, 65, 129, 1000):
        for d in (1, 4):
            X = make_samples(kind, n, d, dtype, np.random.default_rng(n))
            X = Frame.around(X).encode(X)
            before = X.copy()
            assert_permutation(neighbour_order(X, WIDTH), n)
            assert_array_equal(X, before)


@pytest.mark.parametrize("n", [8191, 8192, 20_033])
@pytest.mark.parametrize("n_jobs", [2, 3, 16])
def test_the_order_does_not_depend_on_the_number_of_threads(n, n_jobs) -> None:
    X = np.random.default_rng(n).normal(size=(n, 3))
    assert_array_equal(neighbour_order(X, WIDTH, n_jobs), neighbour_order(X, WIDTH))


def test_sorted_and_reversed_samples_have_one_place_each(dtype) -> None:
    """What quickselect is known to be slow on, and long runs of equal values."""
    line = np.arange(20_000.0).astype(dtype)[:, None]
    for X in (line, line[::-1].copy(), np.minimum(line, 5000.0), np.floor(line / 3000.0)):
        assert_permutation(neighbour_order(X.astype(dtype), WIDTH), len(X))


@pytest.mark.parametrize("density", [0.0, 0.02, 0.4])
def test_every_sparse_sample_has_one_place(dtype, density) -> None:
    for n in (1, 64, 1000):
        S = sp.random(n, 30, density, "csr", dtype, random_state=n)
        assert_permutation(neighbour_order(S, WIDTH), n)


@pytest.mark.parametrize("layout", ["F", "strided", "read-only"])
def test_the_memory_layout_does_not_matter(dtype, layout) -> None:
    X = np.random.default_rng(0).normal(size=(700, 4)).astype(dtype)
    order = CpuEngine(arranged(X, layout)).samples.order
    assert_array_equal(order, neighbour_order(X, WIDTH))


def test_engines_that_only_assign_leave_the_order_as_it_is(dtype) -> None:
    X = np.random.default_rng(0).normal(size=(700, 4)).astype(dtype)
    samples = CpuEngine(X, searching=False).samples
    assert_array_equal(samples.order, np.arange(700))
    assert_array_equal(samples.places, np.arange(700))


@pytest.mark.parametrize("exponent", [-400, -30, 30, 400])
def test_tiles_do_not_depend_on_the_units_of_the_data(exponent) -> None:
    X = np.random.default_rng(6).normal(size=(700, 4))
    one, other = CpuEngine(X).samples, CpuEngine(np.ldexp(X, exponent)).samples
    assert_array_equal(one.order, other.order)
    assert_array_equal(one.tiles, other.tiles)
    assert_array_equal(one.radii, other.radii)


# ---- neighbours ------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "offset"), [(1, 0.0), (2, 1e4), (20, 0.0), (200, 1e4)])
def test_tiles_do_not_mix_clouds_that_fill_whole_tiles(dtype, d, offset) -> None:
    """Clouds of one to four tiles, far apart and shuffled: each tile is inside one cloud."""
    rng = np.random.default_rng(d)
    for n_clouds in (2, 3, 7, 12):
        clouds = np.repeat(np.arange(n_clouds), WIDTH * rng.integers(1, 5, n_clouds))
        # On a bent line: no direction in which two clouds would cover each other.
        middles = 100.0 * np.arange(n_clouds)[:, None] + rng.normal(size=(n_clouds, d))
        X = (offset + middles[clouds] + 0.1 * rng.normal(size=(len(clouds), d))).astype(dtype)
        shuffled = rng.permutation(len(X))
        order = neighbour_order(X[shuffled], WIDTH)
        for tile in clouds[shuffled][order].reshape(-1, WIDTH):
            assert (tile == tile[0]).all()


@pytest.mark.parametrize("kind", ["plain", "offset", "constant column", "small"])
def test_tiles_of_a_square_are_several_times_smaller_than_the_square(dtype, kind) -> None:
    """80 tiles over a square: a ninth of its radius each; three times the room is allowed."""
    rng = np.random.default_rng(2)
    X = rng.random((80 * WIDTH, 2))
    if kind == "offset":
        X += 1e3
    elif kind == "constant column":
        X = np.insert(X, 1, 0.1, axis=1)
    elif kind == "small":
        X *= 1e-12
    X = X.astype(dtype)
    shuffled = rng.permutation(len(X))
    assert mean_radius(X, neighbour_order(X, WIDTH)) < mean_radius(X, shuffled) / 3.0


def test_an_outlier_does_not_keep_neighbours_apart(dtype) -> None:
    rng = np.random.default_rng(4)
    X = rng.random((80 * WIDTH, 2)).astype(dtype)
    X[7] = 1e5
    inside = np.arange(len(X)) != 7
    order = neighbour_order(X, WIDTH)
    order = order[inside[order]]
    assert mean_radius(X, order) < mean_radius(X, rng.permutation(order)) / 3.0


def test_sparse_samples_with_the_same_features_stand_together(dtype) -> None:
    """Twenty topics, each with words of its own; a tile is about one or two of them."""
    rng = np.random.default_rng(5)
    topics = rng.integers(0, 20, 40 * WIDTH)
    S = sp.csr_matrix(sp.random(40 * WIDTH, 400, 0.05, "csr", dtype, random_state=5))
    words = sp.csr_matrix(
        (np.ones(len(topics), dtype), (np.arange(len(topics)), topics * 20)), shape=S.shape
    )
    order = neighbour_order(sp.csr_matrix(S * dtype(0.1) + words * dtype(5.0)), WIDTH)
    kinds = [len(np.unique(tile)) for tile in topics[order].reshape(-1, WIDTH)]
    assert np.mean(kinds) < 3.0


def test_wide_samples_are_ordered_by_their_leading_directions(dtype) -> None:
    """Features of pure noise are left aside: the order is that of the few others."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=(2000, 8))
    basis = np.linalg.qr(rng.normal(size=(300, 8)))[0]
    X = (low @ basis.T + 1e-3 * rng.normal(size=(2000, 300))).astype(dtype)
    assert leading(X, 1, lambda: None).shape == (2000, LEADING)
    order = neighbour_order(X, WIDTH)
    assert_permutation(order, len(X))
    assert mean_radius(low, order) < 1.05 * mean_radius(low, neighbour_order(low, WIDTH))


def test_leading_directions_of_very_wide_samples_can_be_abandoned() -> None:
    """One look at all of them takes seconds; nobody waits for more than some rows."""
    rows = np.random.default_rng(0).normal(size=(300, 20_000)).astype(np.float32)
    few = polled(rows)
    assert FEWEST_POLLED <= len(few) <= len(rows)
    looks = []
    leading_directions(few, 4, lambda: looks.append(1))
    assert len(looks) >= few.size // VALUES_AT_A_TIME

    def refuse():
        if len(looks) % 2 == 0:
            raise Abandoned
        looks.append(1)

    looks.append(1)
    with pytest.raises(Abandoned):
        leading_directions(few, 4, refuse)


# ---- many samples: buckets first -------------------------------------------------------------


@pytest.fixture
def _small_buckets(monkeypatch) -> None:
    monkeypatch.setattr(module, "BUCKET_ROWS", 300)
    monkeypatch.setattr(module, "ROUTED_AT_ONCE", 1000)


@pytest.mark.usefixtures("_small_buckets")
@pytest.mark.parametrize("kind", ["normal", "blobs", "duplicates", "constant", "outliers"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_every_row_has_one_place(kind, n_jobs, dtype) -> None:
    X = make_samples(kind, 5_003, 4, dtype, np.random.default_rng(0))
    frame = Frame.around(X)
    order, rows = ordered_rows(X, frame, 64, n_jobs)
    assert_permutation(order, len(X))
    assert_array_equal(rows, frame.encode(X)[order])
    assert rows.dtype == dtype


@pytest.mark.usefixtures("_small_buckets")
def test_the_order_does_not_depend_on_threads_or_chunks(monkeypatch) -> None:
    X = make_samples("blobs", 4_000, 3, np.float64, np.random.default_rng(1))
    expected, _ = ordered_rows(X, Frame.around(X), 64, 1)
    monkeypatch.setattr(module, "ROUTED_AT_ONCE", 77)
    found, _ = ordered_rows(X, Frame.around(X), 64, 4)
    assert_array_equal(found, expected)


def test_neighbours_stand_together(monkeypatch) -> None:
    """As well as without buckets, within a few percent, if buckets are not too small."""
    monkeypatch.setattr(module, "BUCKET_ROWS", 5_000)
    X = np.random.default_rng(2).normal(size=(20_000, 3))
    order, _ = ordered_rows(X, Frame.around(X), WIDTH, 1)
    assert mean_radius(X, order) < 1.05 * mean_radius(X, neighbour_order(X, WIDTH))


def test_buckets_have_about_the_same_size() -> None:
    X = np.random.default_rng(3).normal(size=(20_000, 5))
    tree, found = find_planes(X, Frame.around(X), 4), np.empty(len(X), np.uint16)
    route(Frame.around(X).encode(X), *tree, 4, found)
    sizes = np.bincount(found, minlength=16)
    assert len(sizes) == 16
    assert sizes.min() > 0.6 * len(X) / 16
    assert sizes.max() < 1.5 * len(X) / 16


@pytest.mark.usefixtures("_small_buckets")
def test_a_refinement_does_not_depend_on_it(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    X, weights = make_samples("blobs", 3_000, 3, np.float32, rng), rng.random(3_000)
    results = []
    for many in (10**9, 1):
        monkeypatch.setattr("evomeans.engines.cpu.samples.MANY_ROWS", many)
        engine = create_engine("cpu", X, weights, n_jobs=2)
        results += engine.refine([Order(engine.samples_at(np.linspace(0.1, 0.9, 6)))])
    assert_same_bits(*results)
