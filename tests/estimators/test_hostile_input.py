"""Nothing from a file or a caller reaches compiled code unchecked.

Without the checks, most of these cases crash the process, hang it, or break constraints.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

import evomeans
from evomeans import (
    CheckpointError,
    ConstrainedHGMeans,
    HGMeans,
    HGMeansPath,
    SphericalHGMeans,
    TrimmedHGMeans,
    metrics,
)
from evomeans.engines.constrained.engine import ConstrainedEngine
from evomeans.engines.frame import (
    SPARE_BITS,
    limb_bits,
    smallest,
)
from optional import require_torch
from tests.fuzz.tampering import contents, rewrite

X = np.random.default_rng(0).normal(size=(24, 3))
SPARSE = np.where(np.random.default_rng(1).random((24, 3)) < 0.4, 0.0, X)
MODELS = {
    "plain": HGMeans(3),
    "spherical": SphericalHGMeans(3),
    "trimmed": TrimmedHGMeans(3, n_outliers=2),
    "balanced": ConstrainedHGMeans(3, size_max="balanced"),
}


def stopped(name, path, at=9):
    """Return a model whose search was stopped, and is kept in a file."""
    model = sklearn.clone(MODELS[name])
    model.set_params(random_state=0, checkpoint=path, observers=stops(at))
    model.fit(X)
    return model.set_params(observers=None)


def stops(at):
    made = iter(range(1, at + 1))
    return lambda record: next(made, at) == at


def change(path, name, place, value):
    """Replace a value of an array in a checkpoint."""
    values = contents(path)[1][name]
    values[place] = value
    rewrite(path, arrays={name: values})


@pytest.mark.parametrize("value", [1e160, 1e308])
@pytest.mark.parametrize("array", ["solution_centers", "waiting_centers"])
@pytest.mark.parametrize("name", MODELS)
def test_checkpoints_with_far_centers_are_refused(tmp_path, name, array, value):
    """Their squares overflow: a crash, an endless loop, or clusters of the wrong sizes."""
    path = tmp_path / "c"
    model = stopped(name, path)
    change(path, array, (slice(None), 2, 1), value)
    with pytest.raises(CheckpointError, match=f"its {array} is not within"):
        model.fit(X)


@pytest.mark.parametrize("name", MODELS)
def test_checkpoints_with_endless_swaps_are_refused(tmp_path, name):
    path = tmp_path / "c"
    model = stopped(name, path)
    change(path, "waiting_swaps", -1, 2**40)
    with pytest.raises(CheckpointError, match="its waiting_swaps is not within 0 and"):
        model.fit(X)


def test_checkpoints_whose_solutions_violate_constraints_are_refused(tmp_path):
    """Before the search continues from them."""
    path = tmp_path / "c"
    model = stopped("balanced", path)
    change(path, "solution_labels", (slice(None), slice(None)), 0)
    with pytest.raises(CheckpointError, match=r"impossible: cluster 0 has 24 samples, not 8 to 8"):
        model.fit(X)
    change(path, "solution_labels", (0, 3), -1)
    with pytest.raises(CheckpointError, match="impossible: sample 3 has no cluster"):
        model.fit(X)


def test_checkpoints_of_a_path_with_far_centers_are_refused(tmp_path):
    path = tmp_path / "c"
    model = HGMeansPath((2, 4), random_state=0, checkpoint=path, observers=stops(4)).fit(X)
    change(path, "centers", (0, 0), 1e160)
    with pytest.raises(CheckpointError, match="its centers is not within"):
        model.set_params(observers=None).fit(X)


def join_all(labels):
    labels[:] = 0


@pytest.mark.parametrize(
    ("change", "parameters", "links", "text"),
    [
        (join_all, {"size_max": "balanced"}, {}, "cluster 0 has 24 samples, not 8 to 8"),
        (join_all, {"size_min": 2}, {"must_link": [(0, 1)]}, "cluster 1 has 0 samples, not 2"),
        (
            lambda labels: labels.put(1, labels[0]),
            {},
            {"cannot_link": [(0, 1)]},
            "or one of cannot_link together",
        ),
        (lambda labels: labels.put(2, -1), {"size_max": 12}, {}, "sample 2 has no cluster"),
    ],
)
def test_the_winner_is_checked_once_more(monkeypatch, change, parameters, links, text):
    """A mistake of the engine is an error, and never an answer that violates constraints."""
    descend = ConstrainedEngine.descend

    def broken(self, *arguments):
        found = descend(self, *arguments)
        change(found.labels)
        return found

    monkeypatch.setattr(ConstrainedEngine, "descend", broken)
    model = ConstrainedHGMeans(3, random_state=0, max_offspring=5, **parameters)
    with pytest.raises(RuntimeError, match=rf"violates the constraints: .*{text}.*a bug"):
        model.fit(X, **links)
    assert not hasattr(model, "labels_")


# Sparse samples


def damaged(kind, layout):
    """Return a sparse matrix whose arrays were changed after SciPy had looked at them."""
    matrix = sp.csr_array(SPARSE).asformat(layout)
    numbers = matrix.coords[1] if layout == "coo" else matrix.indices
    match kind:
        case "short pointers":
            matrix.indptr = matrix.indptr[:-2]
        case "falling pointers":
            matrix.indptr[1] = matrix.nnz
        case "few values":
            matrix.data = matrix.data[:-2]
        case number:
            numbers[0] = number
    return matrix


def uses(model):
    yield from (model.predict, model.transform, model.score)
    yield lambda matrix: sklearn.clone(model).fit(matrix)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        *(
            (number, layout)
            for number in (-1, 24, 10**8)
            for layout in ("csr", "csc", "coo", "bsr")
        ),
        ("short pointers", "csr"),
        ("falling pointers", "csr"),
        ("falling pointers", "csc"),
        ("few values", "csr"),
    ],
)
@pytest.mark.parametrize("name", ["plain", "spherical", "trimmed", "balanced"])
def test_damaged_sparse_samples_are_refused(name, kind, layout):
    """By every method that takes samples, before SciPy or a kernel computes with them."""
    model = sklearn.clone(MODELS[name]).set_params(random_state=0, max_offspring=5).fit(SPARSE)
    for use in uses(model):
        with pytest.raises(ValueError, match="Invalid X: "):
            use(damaged(kind, layout))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr"])
def test_damaged_sparse_samples_are_refused_everywhere_else(layout):
    """By paths, baselines, certificates, metrics and plots."""
    labels = np.arange(24) % 3
    for use in (
        HGMeansPath((2, 3)).fit,
        evomeans.ExactKMeans(3).fit,
        lambda matrix: evomeans.certify(matrix, labels),
        lambda matrix: metrics.silhouette_samples(matrix, labels),
        lambda matrix: metrics.davies_bouldin_score(matrix, labels),
    ):
        with pytest.raises(ValueError, match=r"must be|not all within"):
            use(damaged(10**8, layout))


def test_an_order_that_a_matrix_only_remembers_is_not_believed():
    """Columns that were changed after SciPy had found them sorted."""
    model = HGMeans(3, random_state=0, max_offspring=5).fit(SPARSE)
    matrix = sp.csr_array(SPARSE)
    assert matrix.has_canonical_format
    row = int(np.argmax(np.diff(matrix.indptr) >= 2))
    first = matrix.indptr[row]
    for values in (matrix.indices, matrix.data):
        values[first : first + 2] = values[first : first + 2][::-1].copy()
    np.testing.assert_array_equal(model.predict(matrix), model.labels_)
    matrix.indices[first + 1] = matrix.indices[first]
    np.testing.assert_allclose(model.transform(matrix), model.transform(matrix.toarray()))


def test_nan_is_refused_even_if_scikit_learn_looks_away():
    """Kernels rely on finite numbers."""
    bad = X.copy()
    bad[3, 1] = np.nan
    with sklearn.config_context(assume_finite=True):
        for model in MODELS.values():
            with pytest.raises(ValueError, match="X contains NaN or infinity"):
                sklearn.clone(model).fit(bad)


# Weights, limits and penalties


@pytest.mark.parametrize("weight", [1e-120, 1e305])
@pytest.mark.parametrize("name", ["spherical", "balanced"])
def test_weights_whose_squares_are_no_numbers_are_refused(name, weight):
    """With these, sizes were violated and directions lost."""
    with pytest.raises(ValueError, match=r"needs a sum between 1e-100 and 1e\+100. Multiply"):
        sklearn.clone(MODELS[name]).fit(X, sample_weight=np.full(24, weight))


@pytest.mark.parametrize("links", [{"must_link": [(0, 1)]}, {"cannot_link": [(0, 1)]}])
def test_penalties_beyond_all_measure_are_refused(links):
    with pytest.raises(ValueError, match=r"penalties .* Leave them out"):
        ConstrainedHGMeans(3, penalty=1e200).fit(1e-100 * X, **links)
    with pytest.raises(ValueError, match=r"penalties .* Leave them out"):
        ConstrainedHGMeans(3, penalty=1e308).fit(X, **links)


@pytest.mark.parametrize("name", ["size_min", "size_max"])
def test_sizes_beyond_the_range_of_integers_do_not_turn_negative(name):
    model = ConstrainedHGMeans(3, random_state=0, max_offspring=5, **{name: 2**63})
    if name == "size_max":
        assert model.fit(X).inertia_ > 0.0
    else:
        with pytest.raises(ValueError, match="is larger than size_max=24"):
            model.fit(X)


def test_filling_sizes_relies_on_the_centers_alone():
    """Neither on a parameter that was changed since the fit, nor on squares that overflow."""
    model = ConstrainedHGMeans(3, size_max="balanced", random_state=0, max_offspring=5).fit(X)
    expected = model.predict(X, fill_sizes=True)
    assert np.bincount(expected).tolist() == [8, 8, 8]
    model.n_clusters = 7
    np.testing.assert_array_equal(model.predict(X, fill_sizes=True), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = model.predict(1e152 * X, fill_sizes=True)
    assert np.bincount(far).tolist() == [8, 8, 8]


# Outliers and weights of any size: the answer is that of the reference engine, or an error


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


def test_the_smallest_value_is_found_across_blocks():
    values = np.zeros(2**20 + 5)
    assert smallest(values) == math.inf
    values[[3, -1]] = 2.0, -1e-300
    assert smallest(values) == 1e-300
