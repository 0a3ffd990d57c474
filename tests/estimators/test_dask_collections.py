"""HGMeans on Dask arrays and dataframes, on Dask's local scheduler."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from evomeans import CheckpointError, HGMeans, load
from evomeans.engines import Order, create_engine
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.dask import DaskEngine, blocks
from evomeans.engines.dask.engine import BATCH
from evomeans.estimators.validation import check_sample_weight, check_samples
from evomeans.search import SearchSettings, solve
from optional import require_torch

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

RNG = np.random.default_rng(5)
X = RNG.normal(size=(900, 3)) + 4.0 * RNG.integers(0, 4, size=(900, 1))
WEIGHTS = RNG.random(900)
CHUNKS = (100, 0, 350, 250, 200)
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 30, "random_state": 0}

pytestmark = pytest.mark.usefixtures("small_blocks")


def lazy(samples=X, chunks=CHUNKS):
    return da.from_array(samples, chunks=(chunks, samples.shape[1]))


def quick(n_clusters=6, **parameters):
    return HGMeans(n_clusters, **{**QUICK, **parameters})


@cache
def fitted(*, in_memory=False, weighted=False):
    """Return a fit that several tests compare with; they must not change it."""
    weights = WEIGHTS if weighted else None
    return quick(engine="dask").fit(X if in_memory else lazy(), sample_weight=weights)


def without_time(history):
    return [dataclasses.replace(record, seconds=0.0) for record in history]


# ---- the search ------------------------------------------------------------------------------


class Batched(CpuEngine):
    """The CPU engine, asked for as many solutions at once as the Dask engine."""

    batch = BATCH


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_search_is_that_of_the_cpu_engine_with_the_same_batch(dtype, weighted):
    """The same records, offspring by offspring; inertia up to the order of its terms."""
    samples, weights = X.astype(dtype), WEIGHTS if weighted else None
    settings = SearchSettings(5, 10, max_offspring=60)
    one, two = (
        solve(engine, 7, settings, np.random.default_rng(1))
        for engine in (create_engine("dask", samples, weights), Batched(samples, weights))
    )
    for column in ("number", "alpha", "n_iter", "population_size", "accepted", "clone"):
        assert_array_equal(one.history.column(column), two.history.column(column))
    assert_allclose(one.history.column("inertia"), two.history.column("inertia"), rtol=1e-12)
    assert_array_equal(one.best.centers, two.best.centers)


def test_threads_give_the_same_bits():
    expected = fitted()
    with dask.config.set(scheduler="threads", num_workers=3):
        model = quick().fit(lazy())
    assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert without_time(model.history_) == without_time(expected.history_)


def test_another_division_into_blocks_differs_by_rounding_only():
    founders = slice(0, 6)
    one, two = fitted(), quick().fit(lazy(chunks=(450, 450)))
    assert_allclose(
        one.history_.column("inertia")[founders], two.history_.column("inertia")[founders]
    )


def test_the_handles_of_dead_solutions_are_forgotten():
    engine = create_engine("dask", X, None)
    results = engine.refine([Order(engine.samples_at(RNG.random(4))) for _ in range(3)])
    assert not engine._forgotten
    del results
    assert len(engine._forgotten) == 3
    engine.samples_at(np.array([0.5]))
    assert not engine._forgotten


# ---- what goes in and comes out --------------------------------------------------------------


def test_answers_are_lazy_and_agree():
    model = fitted()
    assert isinstance(model.labels_, da.Array)
    assert model.labels_.chunks == (CHUNKS,)
    assert model.labels_.dtype == np.int32
    labels = model.labels_.compute()
    assert_array_equal(labels, model.predict(X))
    assert isinstance(model.predict(lazy()), da.Array)
    assert_array_equal(model.predict(lazy()).compute(), labels)
    distances = model.transform(lazy())
    assert isinstance(distances, da.Array)
    assert_allclose(distances.compute(), model.transform(X), rtol=1e-14)
    assert model.score(lazy()) == pytest.approx(-model.inertia_, rel=1e-12)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    assert_array_equal(quick().fit_predict(lazy()).compute(), labels)


@pytest.mark.parametrize(
    ("given", "kept"), [(np.float32, np.float32), (np.float64, np.float64), (np.int16, np.float64)]
)
def test_precision_is_kept_and_integers_become_float64(given, kept):
    """Also if columns are in several chunks."""
    samples = da.from_array(np.round(X).astype(given), chunks=(200, 2))
    model = quick(3, max_offspring=1).fit(samples)
    assert (model.cluster_centers_.dtype, model.transform(samples).dtype) == (kept, kept)
    assert model.inertia_ == pytest.approx(-model.score(np.round(X)), rel=1e-5)


@pytest.mark.parametrize(
    "form",
    [
        lambda w: da.from_array(w, chunks=123),
        lambda w: dd.from_pandas(pd.Series(w), npartitions=2),
        lambda w: require_torch().tensor(w),
        np.asarray,
        list,
    ],
    ids=["dask", "series", "tensor", "numpy", "list"],
)
def test_weights_of_any_kind(form):
    model = quick().fit(lazy(), sample_weight=form(WEIGHTS))
    assert_array_equal(model.cluster_centers_, fitted(weighted=True).cluster_centers_)
    assert model.score(lazy(), sample_weight=form(WEIGHTS)) == pytest.approx(-model.inertia_)


def test_one_weight_for_all():
    heavy = quick().fit(lazy(), sample_weight=2.0)
    assert heavy.inertia_ == pytest.approx(2.0 * fitted().inertia_)
    assert fitted().score(lazy(), sample_weight=2) == pytest.approx(-2.0 * fitted().inertia_)


def table(*columns, npartitions=1, **options):
    return dd.from_pandas(pd.DataFrame(*columns, **options), npartitions=npartitions)


def frame(npartitions=3):
    return table(X, columns=["a", "b", "c"], npartitions=npartitions)


def test_a_dataframe_with_names(caplog):
    """Rows are counted for the fit, and that is said; predict counts nothing."""
    with caplog.at_level(logging.WARNING, "evomeans"):
        model = quick().fit(frame())
    assert "rows are counted" in caplog.text
    caplog.clear()
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    labels = model.predict(frame())
    assert not caplog.text
    assert_array_equal(labels.compute(), model.labels_.compute())
    assert model.score(frame(2)) == pytest.approx(-model.inertia_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame().rename(columns={"a": "other"}))


def test_rows_are_counted_in_one_pass():
    """Every chunk is loaded once to be counted, before anything else is done with it."""
    loads = Counter()

    def load(begin, end):
        loads[begin] += 1
        return X[begin:end]

    ends = np.cumsum(CHUNKS)
    parts = [
        da.from_delayed(dask.delayed(load)(begin, end), (np.nan, 3), float)
        for begin, end in zip(ends - CHUNKS, ends, strict=True)
    ]
    samples, _ = check_samples(quick(), da.concatenate(parts, allow_unknown_chunksizes=True))
    assert samples.chunks == (CHUNKS, (3,))
    assert loads == Counter((ends - CHUNKS).tolist())


def in_zarr(folder):
    zarr, path = pytest.importorskip("zarr"), str(folder / "X.zarr")
    samples = zarr.open(path, mode="w", shape=X.shape, chunks=(200, 3), dtype=X.dtype)
    samples[:] = X
    return samples


def in_file(folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def in_parquet(folder):
    frame().to_parquet(folder / "table")
    return dd.read_parquet(folder / "table")


FORMS = {
    "numpy": lambda _: X,
    "tensor": lambda _: require_torch().tensor(X),
    "pandas": lambda _: pd.DataFrame(X, columns=list("abc")),
    "parquet": in_parquet,
    "memmap": in_file,
    "zarr": in_zarr,
}


# Of Dask itself, which calls what pandas 4 will do otherwise.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:dask")
@pytest.mark.parametrize("form", FORMS)
def test_engine_dask_takes_what_dask_can_read(form, tmp_path):
    samples = FORMS[form](tmp_path)
    model = quick(engine="dask").fit(samples)
    assert isinstance(model.labels_, da.Array)
    assert isinstance(model.predict(samples), da.Array)
    assert_array_equal(model.predict(samples).compute(), model.labels_.compute())
    assert_allclose(model.inertia_, fitted(in_memory=True).inertia_, rtol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_view_of_a_memory_map_is_read_on_the_worker(order, tmp_path):
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    views = mapped[100:700], mapped[:, 1:], mapped[7::2], mapped[::-3, ::-1], mapped[5:, 1:2]
    for part in (mapped, *views):
        array = blocks.as_dask_array(part)
        assert len(pickle.dumps(array)) < part.nbytes
        assert_array_equal(array.compute(), part)
        assert_array_equal(array[3:40, [0]].compute(), part[3:40, [0]])
        assert_array_equal(array[-2].compute(), part[-2])


def test_a_copy_of_a_memory_map_is_in_memory_and_other_maps_are_refused(tmp_path):
    copied = in_file(tmp_path).copy()
    assert isinstance(copied, np.memmap)
    assert blocks.FileRows.of(copied) is None
    assert_array_equal(blocks.as_dask_array(copied).compute(), X)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    with pytest.raises(ValueError, match=r"changes that no file has \(mode='c'\).*mode='r'"):
        quick(engine="dask").fit(changed)


def test_samples_far_outside_those_of_the_fit():
    """Their squares would overflow in the frame of the fit; every chunk has a scale of its own."""
    far = X.copy()
    far[400:] *= 1e140
    model = fitted()
    for ask in ("predict", "transform"):
        assert_array_equal(getattr(model, ask)(lazy(far)).compute(), in_memory_twin(ask, far))
    assert model.score(lazy(far)) == pytest.approx(in_memory_twin("score", far), rel=1e-12)


def in_memory_twin(ask, samples):
    """Ask the CPU engine, with the centres of the same fit."""
    twin = copy.copy(fitted()).set_params(engine="cpu")
    return getattr(twin, ask)(samples)


def test_fewer_distinct_samples_than_clusters():
    """Zero inertia, a warning, and lazy labels without the empty clusters."""
    few = np.repeat(X[:3], 50, axis=0)
    with pytest.warns(UserWarning, match=r"distinct clusters \(3\) found smaller"):
        model = quick(5).fit(lazy(few, (60, 90)))
    assert model.inertia_ == 0.0
    assert set(model.labels_.compute()) == {0, 1, 2}


def test_one_feature_is_searched_not_solved():
    model = quick(4).fit(lazy(X[:, :1]))
    assert model.stop_reason_ != "proven_optimal"
    assert model.inertia_ >= HGMeans(4).fit(X[:, :1]).inertia_ * (1 - 1e-12)


# ---- checkpoints and files -------------------------------------------------------------------


def test_a_fit_can_be_resumed_and_no_other(tmp_path):
    path = tmp_path / "c"
    weights = da.from_array(WEIGHTS, chunks=400)
    whole = fitted(weighted=True)
    stop = quick(checkpoint=path, observers=lambda record: record.number == 7)
    stop.fit(lazy(), sample_weight=weights)
    before = path.read_bytes()
    for samples, given in ((lazy(X + 1e-9), weights), (lazy(chunks=(300, 600)), weights)):
        with pytest.raises(CheckpointError, match="samples differs"):
            quick(checkpoint=path).fit(samples, sample_weight=given)
    with pytest.raises(CheckpointError, match="sample_weight differs"):
        quick(checkpoint=path).fit(lazy(), sample_weight=weights + 1.0)
    with pytest.raises(CheckpointError, match="layout is 'blocks' in the file and 'dense' now"):
        quick(checkpoint=path).fit(X, sample_weight=WEIGHTS)
    assert path.read_bytes() == before
    resumed = quick(checkpoint=path).fit(lazy(), sample_weight=weights)
    assert without_time(resumed.history_) == without_time(whole.history_)
    assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)


def test_a_model_file_has_no_lazy_labels(tmp_path):
    fitted().save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert not hasattr(loaded, "labels_")
    assert_array_equal(loaded.predict(X), fitted().labels_.compute())


# ---- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "error", "text"),
    [
        (da.zeros((4, 3, 2)), ValueError, r"X.shape=\(4, 3, 2\) must have two dimensions"),
        (da.zeros((4, 0)), ValueError, "has no values"),
        (da.zeros((4, 3), dtype=complex), ValueError, "real numbers, got dtype=complex128"),
        (dask.delayed(1), TypeError, "X must be a Dask array or a Dask dataframe, got a Delayed"),
        (da.zeros((4, 3)), ValueError, "n_samples=4 should be >= n_clusters=6"),
        (da.ma.masked_less(lazy(), 0.0), ValueError, "NumPy arrays, got MaskedArray"),
        (lazy().map_blocks(sp.csr_array), ValueError, "NumPy arrays, got csr_array"),
        (table(index=range(9)), ValueError, "no columns"),
        (
            table(
                {
                    "a": np.arange(9.0),
                    "zone": pd.date_range("2020-01-01", periods=9, tz="UTC"),
                    "month": pd.period_range("2020-01", periods=9, freq="M"),
                    "text": ["x"] * 9,
                }
            ),
            ValueError,
            r"has other columns: \['zone', 'month', 'text'\]",
        ),
    ],
)
def test_what_cannot_be_fitted(samples, error, text):
    with pytest.raises(error, match=text):
        quick().fit(samples)


def bad_at_460(value):
    return da.from_array(np.where(np.arange(900) == 460, value, 1.0), chunks=300)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_a_number_in_one_block(value):
    bad = X.copy()
    bad[460, 2] = value
    asked = (
        lambda samples: fitted().predict(samples).compute(),
        lambda samples: fitted().transform(samples).compute(),
        fitted().score,
        quick().fit,
    )
    for chunks, block in ((CHUNKS, 3), ((450, 450), 1)):
        for ask in asked:
            place = f"X has {value} in block {block}, row 10 of it, column 2"
            with pytest.raises(ValueError, match=place):
                ask(lazy(bad, chunks))
    # Sums of it would overflow.
    bad[460, 2] = -1e301
    with pytest.raises(ValueError, match=r"X has -1e\+301 in block 3, row 10 of it.*1e\+300"):
        quick().fit(lazy(bad))


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        (
            bad_at_460(-1.0),
            ValueError,
            r"sample_weight has -1\.0 in block 3, row 10 of it: weights",
        ),
        (bad_at_460(np.nan), ValueError, "sample_weight has nan in block 3, row 10 of it: weights"),
        (da.zeros(900), ValueError, "must not be all zero"),
        (da.full(900, 1e308), ValueError, "sums to infinity"),
        (np.full(900, np.nan), ValueError, "sample_weight contains NaN"),
        (np.zeros(900), ValueError, "must not be all zero"),
        (np.ones(5), ValueError, r"sample_weight.shape=\(5,\) must be \(900,\)"),
        (-1.0, ValueError, "must not be negative"),
        (np.ones(900, complex), ValueError, "Complex data not supported"),
        ("heavy", ValueError, "could not convert"),
        (da.ones((900, 1)), ValueError, "has 2 dimensions and must have one"),
        (da.asarray(2.0), ValueError, "has 0 dimensions and must have one"),
        (da.ones(900, dtype=complex), ValueError, "must hold real numbers, got dtype=complex128"),
        (dask.delayed(WEIGHTS), TypeError, "a Dask array or series, .* got a Delayed"),
        (
            dd.from_pandas(pd.Series(["x"] * 900), npartitions=1),
            ValueError,
            "must hold real numbers, got dtype=str",
        ),
    ],
)
# Sums of weights that overflow are looked at.
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_weights_that_cannot_be_used_in_fit_and_score(weights, error, text):
    with pytest.raises(error, match=text):
        quick().fit(lazy(), sample_weight=weights)
    with pytest.raises(error, match=text):
        fitted().score(lazy(), sample_weight=weights)


def test_blocks_get_their_own_weights_only():
    """Not the whole vector each, and of a number nothing but that."""
    array = check_sample_weight(WEIGHTS, 900, lazy())
    sizes = [len(pickle.dumps(dask.optimize(block)[0])) for block in array.to_delayed()]
    assert array.chunks == (CHUNKS,)
    assert max(sizes) < 350 * 8 + 3000
    assert len(pickle.dumps(check_sample_weight(2, 900, lazy()))) < 900 * 8


def test_chunks_that_are_not_as_large_as_they_say():
    true, told = (180,) * 5, (180, 180, 179, 181, 180)
    wrong, weights = lazy(chunks=true), da.from_array(WEIGHTS, chunks=true)
    wrong._chunks, weights._chunks = (told, (3,)), (told,)
    with pytest.raises(ValueError, match=r"180 rows instead of 179 at chunk 2.*compute_chunk"):
        DaskEngine(wrong)
    with pytest.raises(ValueError, match=r"sample_weight has \d+ values for a block of X with \d+"):
        DaskEngine(lazy(chunks=told), weights)


@pytest.mark.parametrize("scheduler", ["processes", "pool"])
def test_a_pool_of_processes_is_refused(scheduler):
    with ProcessPoolExecutor(1) as pool:
        given = pool if scheduler == "pool" else scheduler
        with (
            dask.config.set(scheduler=given),
            pytest.raises(ValueError, match=r"Start a distributed\.Client, or .*'threads'"),
        ):
            quick().fit(lazy())


def test_other_engines_refuse_dask_and_dask_refuses_sparse():
    for engine in ("cpu", "reference"):
        with pytest.raises(ValueError, match=f"engine='{engine}' cannot hold a Dask collection"):
            quick(engine=engine).fit(lazy())
    with pytest.raises(ValueError, match="engine='dask' takes dense X only"):
        quick(engine="dask").fit(sp.csr_array(X))


def test_without_dask_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'evomeans\[dask\]'"):
        quick(engine="dask").fit(X)
