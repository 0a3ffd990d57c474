"""Outliers and weights of any size: the answer is that of the reference engine, or an error."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from evomeans import HGMeans
from evomeans.engines.frame import (
    SPARE_BITS,
    Extremes,
    Frame,
    check_resolution,
    limb_bits,
    most_are_resolved,
    smallest,
)
from optional import require_torch

N = 60
# The smallest samples that are resolved, next to values of size 1.
LIMIT = 2.0 ** (SPARE_BITS - limb_bits(N) - 53)
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 10, "random_state": 0}


def blobs(outlier: float = 0.0) -> np.ndarray:
    """Three clusters around the corners of a triangle, and an outlier if one is asked for."""
    rng = np.random.default_rng(0)
    corners = np.array([[1.0, 1.0], [5.0, 1.0], [1.0, -5.0]])
    X = corners[np.arange(N) % 3] + rng.uniform(-0.5, 0.5, (N, 2))
    if outlier:
        X[7, 1] = outlier
    return X


def fit(X, engine="cpu", sample_weight=None, k=4):
    return HGMeans(k, engine=engine, **QUICK).fit(X, sample_weight=sample_weight)


def in_dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(13, 2))


@pytest.fixture(params=["cpu", "sparse", "gpu", "dask"])
def fitted(request, monkeypatch):
    """Fit an engine that sums in fixed point."""
    if request.param == "gpu":
        require_torch()
        monkeypatch.setenv("EVOMEANS_GPU_DEVICE", "cpu")
        return lambda X, **given: fit(X, "gpu", **given)
    if request.param == "dask":
        return lambda X, **given: fit(in_dask(X), "dask", **given)
    form = sp.csr_array if request.param == "sparse" else np.asarray
    return lambda X, **given: fit(form(X), "cpu", **given)


@pytest.mark.parametrize("size", [1e3, 1e20, 0.5 / LIMIT])
def test_up_to_the_limit_the_answer_is_right(fitted, size):
    """The outlier has a cluster of its own, and the others have the means of their samples."""
    X = blobs(outlier=size)
    model, reference = fitted(X), fit(X, "reference")
    assert_array_equal(np.asarray(model.labels_), reference.labels_)
    assert_allclose(model.cluster_centers_, reference.cluster_centers_, rtol=2.0**-SPARE_BITS)
    assert model.inertia_ == pytest.approx(reference.inertia_, rel=1e-9)


@pytest.mark.parametrize("size", [50.0 / LIMIT, -1e50, 1e140])
def test_beyond_the_limit_samples_are_refused(fitted, size):
    """The error names the column, its largest value and the limit; nothing is fitted."""
    least = f"{LIMIT * abs(size):.1e}".replace("+", r"\+").replace(".", r"\.")
    text = rf"Column 1 of X has values up to .* smaller than {least} are lost .*engine='reference'"
    with pytest.raises(ValueError, match=text):
        fitted(blobs(outlier=size))


def test_a_wrong_answer_is_what_the_error_prevents(monkeypatch):
    """Without the check, centres are not the means of their samples."""
    monkeypatch.setattr("evomeans.estimators.solution.check_resolved", lambda *_: None)
    X = blobs(outlier=1e50)
    assert fit(X).inertia_ > 1.5 * fit(X, "reference").inertia_


def test_float32_samples_that_underflow_in_the_frame_are_refused():
    """1e-10 next to 1e38 is zero there."""
    X = (1e-10 * blobs()).astype(np.float32)
    X[7, 1] = 1e38
    with pytest.raises(ValueError, match="Column 1 of X has values up to 1e"):
        fit(X)


def test_equal_outliers_count_once(fitted):
    """A value that stands for missing ones hides the others, in however many rows it is."""
    X = blobs()
    X[::2, 0] = 1e50
    with pytest.raises(ValueError, match="Column 0 of X has values up to 1e"):
        fitted(X)


@pytest.mark.parametrize("outliers", [[1e50, 0.5e50], [1e50, 0.6e50, 0.5e50]])
def test_a_cluster_of_lost_samples_is_refused_however_many_outliers_there_are(fitted, outliers):
    """The outliers share a cluster, and the centre of the other one would be wrong."""
    X = np.vstack([blobs(), [[size, 0.0] for size in outliers]])
    with pytest.raises(ValueError, match="Column 0 of X has values up to 1e"):
        fitted(X, k=len(outliers))


HARMLESS = {
    "noise instead of zeros in a column": lambda X: np.column_stack(
        [X[:, 0], np.where(X[:, 1] > 0, 1e-60 * X[:, 1], X[:, 1])]
    ),
    "noise instead of zeros in rows": lambda X: np.where(np.arange(N)[:, None] < 9, 1e-60 * X, X),
    "rows of which the squares are zero": lambda X: np.where(
        np.arange(N)[:, None] < 9, 1e-170 * X, np.round(X)
    ),
    "an offset": lambda X: X + np.array([1e15, 0.0]),
    "an outlier in a column of zeros": lambda X: np.column_stack([X, 1e50 * (np.arange(N) == 7)]),
    "columns of other sizes": lambda X: X * [1e-60, 1.0],
    "all alike": lambda X: np.where(np.arange(N)[:, None] % 4 < 9, X[:4][np.arange(N) % 4], 0.0),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_does_no_harm_is_not_refused(case):
    """The objective is decided by samples that are resolved; inertia as in the reference."""
    X = HARMLESS[case](blobs())
    best = fit(X, "reference").inertia_
    for form in (np.asarray, sp.csr_array, in_dask):
        if case == "an offset" and form is sp.csr_array:
            continue
        model = fit(form(X), "auto")
        assert model.inertia_ == pytest.approx(best, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("form", [np.asarray, in_dask])
def test_weights_are_refused_only_if_they_decide(form):
    """Light samples that must have centres of their own are not resolved; others do no harm."""
    X = blobs()
    few = np.where(np.arange(N) < 2, 1.0, 1e-60)
    text = "sample_weight ranges from 1e-60 to 1. .* weights below .* are lost .* Set them to 0"
    with pytest.raises(ValueError, match=text):
        fit(form(X), "auto", sample_weight=few, k=3)
    many = np.where(np.arange(N) < 30, 1.0, 1e-60)
    expected = fit(X, "reference", sample_weight=many, k=3).inertia_
    for weights, share in ((many, 1.0), (1e-60 * np.round(many), 1e-60)):
        model = fit(form(X), "auto", sample_weight=weights, k=3)
        assert model.inertia_ == pytest.approx(share * expected, rel=1e-9)


def test_one_column_is_solved_exactly_whatever_its_outliers():
    """No sums are needed for that."""
    X = blobs(outlier=1e50)[:, 1:]
    model = HGMeans(3).fit(X)
    assert model.stop_reason_ == "proven_optimal"
    assert_allclose(model.cluster_centers_[-1], 1e50)
    assert_allclose(model.cluster_centers_[1], X[model.labels_ == 1].mean(axis=0))


def test_the_smallest_value_is_found_across_blocks():
    values = np.zeros(2**20 + 5)
    assert smallest(values) == math.inf
    values[[3, -1]] = 2.0, -1e-300
    assert smallest(values) == 1e-300


def test_a_few_columns_show_that_samples_are_resolved(monkeypatch) -> None:
    """One tiny value makes nothing of a look at every value of all samples."""
    X = np.random.default_rng(0).normal(size=(200, 40))
    X[3, 5] = 1e-200
    monkeypatch.setattr(Extremes, "lost_and_resolved", None)
    frame, labels = Frame.around(X), np.arange(200) % 4
    check_resolution(X, None, frame, labels, 4)
    weights = np.r_[np.zeros(100), np.ones(100)]
    assert most_are_resolved(X, weights, frame, 1.0)
    X[100:140] = 0.0
    assert not most_are_resolved(X, weights, frame, 1.0)
