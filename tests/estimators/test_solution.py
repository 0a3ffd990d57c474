"""Centres, labels, inertia and predictions agree with each other, whatever the data looks like."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from evomeans import HGMeans, HGMeansPath
from evomeans.engines import create_engine
from evomeans.estimators.solution import FEW_COORDINATES, canonical_solution, lexicographic
from oracles import squared_distances

QUICK = {"min_population": 2, "max_population": 4, "max_offspring": 8, "random_state": 0}


@pytest.fixture(params=["reference", "cpu"])
def engine(request):
    return request.param


class Case(NamedTuple):
    """Samples ``offset + scale · units``, their weights, and a number of clusters."""

    units: np.ndarray
    offset: float
    scale: float
    dtype: type
    weights: np.ndarray | None
    k: int

    @property
    def X(self):  # noqa: N802
        return (self.offset + self.scale * self.units).astype(self.dtype)


@st.composite
def cases(draw):
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        units = rng.integers(-3, 4, size=(n, d)).astype(float)  # duplicates and ties
    else:
        units = rng.uniform(-1.0, 1.0, size=(n, d))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    powers = [0, -150, 150] if dtype is np.float64 else [0, -18, 18]
    scale = 10.0 ** draw(st.sampled_from(powers)) / 10
    offset = draw(st.sampled_from([0.0, 0.0, 1e8 if dtype is np.float64 else 1e3]))
    weights = draw(st.sampled_from([None, rng.integers(0, 3, n), rng.uniform(0.1, 2.0, n)]))
    if weights is not None and not weights.any():
        weights = None
    return Case(
        units, offset, scale if not offset else 1.0, dtype, weights, draw(st.integers(1, n))
    )


def fitted(case: Case, engine: str, X=None) -> HGMeans:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        X = case.X if X is None else X
        # Swaps in plain NumPy take their time.
        strategy = "paper" if engine == "reference" else "deep"
        model = HGMeans(case.k, engine=engine, strategy=strategy, **QUICK)
        return model.fit(X, sample_weight=case.weights)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@given(case=cases())
def test_everything_agrees(engine, case):
    """Labels are nearest centres, inertia is the direct sum, centres are ordered means."""
    X, k = case.X, case.k
    model = fitted(case, engine)
    centers, labels = model.cluster_centers_, model.labels_
    weights = np.ones(len(X)) if case.weights is None else case.weights.astype(float)

    assert_array_equal(model.predict(X), labels)
    assert_allclose(-model.score(X, sample_weight=case.weights), model.inertia_, rtol=1e-13)
    assert centers.dtype == X.dtype
    assert centers.shape == (k, X.shape[1])

    used = labels.max() + 1
    assert_array_equal(np.unique(labels), np.arange(used))
    for part in (centers[:used], centers[used:]):
        assert_array_equal(part, part[np.lexsort(part.T[::-1])])

    # In units of the scale, where squares neither overflow nor underflow.
    eps = float(np.finfo(case.dtype).eps)
    in_units = X.astype(float) / case.scale, centers.astype(float) / case.scale
    extent = np.ptp(in_units[0], axis=0).max() + 1e-30
    slack = 8 * eps * X.shape[1] * extent**2
    squares = squared_distances(*in_units)
    own = squares[np.arange(len(X)), labels]
    assert np.all(own <= squares.min(axis=1) + slack)
    assert_allclose(
        model.inertia_ / case.scale**2, weights @ own, rtol=16 * eps, atol=slack * weights.sum()
    )
    assert_allclose(
        model.transform(X) / case.scale, np.sqrt(squares), rtol=1e-3, atol=8 * slack**0.5
    )

    size = np.abs(in_units[0]).max()
    for j in range(used):
        members = (labels == j) & (weights > 0)
        if members.any():
            mean = np.average(in_units[0][members], axis=0, weights=weights[members])
            assert_allclose(in_units[1][j], mean, rtol=0, atol=8 * eps * size)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layout_does_not_matter(engine, dtype, tmp_path):
    """Order, strides, read-only, memmap, lists, bytes: the same bits, and X is not touched."""
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(dtype)
    expected = HGMeans(4, engine=engine, **QUICK).fit(X)
    np.save(tmp_path / "X.npy", X)
    read_only = X.copy()
    read_only.flags.writeable = False
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    variants = [
        np.asfortranarray(X),
        strided,
        read_only,
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        X[:, ::-1][:, ::-1],
    ]
    if dtype is np.float64:
        variants += [X.tolist(), X.astype(X.dtype.newbyteorder())]
    for variant in variants:
        before = np.array(variant)
        model = HGMeans(4, engine=engine, **QUICK).fit(variant)
        assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
        assert_array_equal(model.predict(variant), expected.labels_)
        assert_array_equal(variant, before)
        assert model.cluster_centers_.dtype == dtype


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, bool, np.float16, object])
def test_other_numbers_become_float64(engine, dtype):
    """Integers and the like are clustered as float64, as KMeans does it."""
    X = np.random.default_rng(0).integers(0, 100, size=(40, 3))
    X = X > 50 if dtype is bool else X.astype(dtype)
    model = HGMeans(3, engine=engine, **QUICK).fit(X)
    plain = HGMeans(3, engine=engine, **QUICK).fit(X.astype(np.float64))
    assert model.cluster_centers_.dtype == np.float64
    assert model.transform(X).dtype == np.float64
    assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    assert_array_equal(model.predict(X), plain.labels_)


def test_labels_do_not_depend_on_the_other_samples(engine):
    """One row at a time, in another order, or among strangers: each sample keeps its label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3)).astype(np.float32)
    model = HGMeans(6, engine=engine, **QUICK).fit(X)
    assert_array_equal([model.predict(row[None])[0] for row in X], model.labels_)
    order = rng.permutation(70)
    assert_array_equal(model.predict(X[order]), model.labels_[order])
    strangers = np.concatenate([X, 1e6 * X])
    assert_array_equal(model.predict(strangers)[:70], model.labels_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_samples_far_from_those_of_the_fit(engine, dtype):
    """Predictions and distances stay right at many times the extent of the training data."""
    scale = 1e-15 if dtype is np.float32 else 1e-140
    X = scale * np.random.default_rng(0).normal(size=(50, 2)).astype(dtype)
    model = HGMeans(4, engine=engine, **QUICK).fit(X)
    far = np.array([[1e15, -1e15], [-1e15, 3e15], [0.0, 0.0]], dtype)
    norms = np.hypot(*far.T.astype(float))
    assert_allclose(model.transform(far)[:2], np.repeat(norms[:2, None], 4, axis=1), rtol=1e-6)
    assert_allclose(-model.score(far), norms @ norms, rtol=1e-6)
    assert_allclose(model.transform(X).min(axis=1).max() / scale, 1.5, atol=1.0)


def test_mixed_precision(engine):
    """A float64 fit predicts float32 samples without rounding its centres, and the reverse."""
    X = 1e8 + np.random.default_rng(0).integers(0, 50, size=(60, 2)) * 64.0
    double = HGMeans(4, engine=engine, **QUICK).fit(X)
    assert_array_equal(double.predict(X.astype(np.float32)), double.labels_)
    assert double.transform(X.astype(np.float32)).dtype == np.float64
    single = HGMeans(4, engine=engine, **QUICK).fit(X.astype(np.float32))
    assert_array_equal(single.predict(X), single.labels_)
    assert single.transform(X).dtype == np.float64
    assert single.transform(X.astype(np.float32)).dtype == np.float32


# Sparse samples


FORMATS = [
    sp.csr_matrix,
    sp.csr_array,
    sp.csc_array,
    sp.coo_matrix,
    sp.lil_array,
    sp.bsr_array,
    sp.dok_array,
    sp.dia_array,
]


def sparse_problem(n=80, d=12):
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, d)) < 0.3, rng.normal(size=(n, d)) + 2.0, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", FORMATS)
def test_sparse_samples_give_the_dense_clusters(kind, dtype):
    """Every sparse format; fitted, predicted and transformed as its dense counterpart."""
    X = sparse_problem().astype(dtype)
    weights = np.random.default_rng(1).integers(1, 4, len(X))
    dense = HGMeans.fast(5, random_state=0).fit(X, sample_weight=weights)
    model = HGMeans.fast(5, random_state=0).fit(kind(X), sample_weight=weights)
    tolerance = 1e-10 if dtype is np.float64 else 1e-5
    assert_array_equal(model.labels_, dense.labels_)
    assert_allclose(model.cluster_centers_, dense.cluster_centers_, atol=tolerance)
    assert_allclose(model.inertia_, dense.inertia_, rtol=tolerance)
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.predict(kind(X)), model.labels_)
    assert_allclose(model.transform(kind(X)), dense.transform(X), atol=tolerance)


def test_a_dense_fit_predicts_sparse_samples_and_the_reverse():
    """The kind of X may change between fit and predict."""
    X = sparse_problem()
    dense = HGMeans(5, **QUICK).fit(X)
    sparse = HGMeans(5, **QUICK).fit(sp.csr_array(X))
    assert_array_equal(dense.predict(sp.csr_array(X)), dense.labels_)
    assert_array_equal(sparse.predict(X), sparse.labels_)
    assert_allclose(dense.score(sp.csr_array(X)), -dense.inertia_, rtol=1e-12)
    assert_allclose(dense.transform(sp.csr_array(X)), dense.transform(X), rtol=1e-10)


def test_csr_details_do_not_matter():
    """Unsorted indices, duplicates, explicit zeros and 64-bit indices; X is not modified."""
    X = sp.csr_array(sparse_problem())
    expected = HGMeans(5, **QUICK).fit(X)

    backwards = X[::-1]
    unsorted = backwards.data[::-1], backwards.indices[::-1], X.indptr
    halves, columns = np.repeat(unsorted[0] / 2, 2), np.repeat(unsorted[1], 2)
    twice = sp.csr_array((halves, columns, 2 * X.indptr), X.shape)

    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)

    zeros = X.copy()
    zeros.data = np.append(zeros.data, 0.0)
    last = np.setdiff1d(np.arange(X.shape[1]), X.indices[X.indptr[-2] :])[-1]
    zeros.indices = np.append(zeros.indices, np.int32(last))
    zeros.indptr = np.append(zeros.indptr[:-1], zeros.indptr[-1] + 1).astype(np.int32)

    for variant in (twice, wide, zeros):
        assert_array_equal(variant.toarray(), X.toarray())
        before = variant.data.copy(), variant.indices.copy(), variant.indptr.copy()
        model = HGMeans(5, **QUICK).fit(variant)
        assert_array_equal(model.labels_, expected.labels_)
        assert_allclose(model.cluster_centers_, expected.cluster_centers_, atol=1e-12)
        assert_array_equal(model.predict(variant), model.labels_)
        for ours, theirs in zip(
            (variant.data, variant.indices, variant.indptr), before, strict=True
        ):
            assert_array_equal(ours, theirs)


def test_sparse_samples_of_many_features_are_never_made_dense():
    """20,000 × 200,000 would be 32 GB."""
    rng = np.random.default_rng(0)
    entries = np.repeat(np.arange(20_000), 2), rng.integers(0, 50, 40_000) * 4_000
    X = sp.csr_array((rng.random(40_000), entries), shape=(20_000, 200_000))
    model = HGMeans(3, **{**QUICK, "max_offspring": 1, "max_population": 2}).fit(X)
    assert_array_equal(model.predict(X), model.labels_)


def test_sparse_samples_of_one_feature_are_solved_exactly():
    """One column is one column."""
    x = np.random.default_rng(0).poisson(1.0, size=(50, 1)).astype(float)
    model = HGMeans(3).fit(sp.csr_array(x))
    assert model.stop_reason_ == "proven_optimal"
    assert_array_equal(model.labels_, HGMeans(3).fit(x).labels_)
    assert_array_equal(model.predict(sp.csr_array(x)), model.labels_)


# The parts


def test_a_tie_that_the_order_decides_anew_is_refined():
    """Each order of two centres gives the sample between them away; K-means goes on from there."""
    X = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    engine = create_engine("reference", X, None)
    tied = engine.frame.encode(np.array([[4.0, 0.0], [0.0, 0.0]]))
    solution = canonical_solution(engine, tied, X.dtype)
    assert_array_equal(solution.centers, [[1.0, 0.0], [4.0, 0.0]])
    assert_array_equal(solution.labels, [0, 0, 1])
    assert solution.inertia == 2.0


def test_centres_that_rounding_merges_leave_no_gap_in_the_labels():
    """float32 holds multiples of 8 at 1e8: merged centres are reported as fewer clusters."""
    X = (1e8 + 8.0 * np.array([[0, 0], [0, 1], [1, 0], [5, 5]])).astype(np.float32)
    engine = create_engine("reference", X, None)
    centers = engine.frame.encode(1e8 + np.array([[0.0, 0], [0.1, 0], [40, 40]]))
    solution = canonical_solution(engine, centers, X.dtype)
    assert solution.centers.dtype == np.float32
    assert_array_equal(np.unique(solution.labels), np.arange(solution.n_distinct))


@pytest.mark.parametrize("n_equal", [0, 3, FEW_COORDINATES, 9])
def test_centres_with_some_equal_coordinates_are_in_lexicographic_order(n_equal):
    """As many as are sorted by first, more, or none."""
    centers = np.random.default_rng(0).integers(-1, 2, (30, 10)).astype(float)
    centers[:, :n_equal] = np.where(centers[:, :n_equal] == 0.0, -0.0, 0.0)
    assert lexicographic(centers).tolist() == sorted(centers.tolist())


def test_a_path_looks_for_lost_samples_once(monkeypatch):
    """For all of its numbers of clusters together."""
    looked = []
    monkeypatch.setattr("evomeans.engines.frame.resolves_all", lambda *_: looked.append(1) or True)
    X = np.random.default_rng(0).normal(size=(400, 3))
    HGMeansPath((2, 5), max_time=0.01, random_state=0).fit(X)
    assert looked == [1]
