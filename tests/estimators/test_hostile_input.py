"""Nothing from a file or a caller reaches compiled code unchecked.

Without the checks, most of these cases crash the process, hang it, or break constraints.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn

import evomeans
from evomeans import (
    CheckpointError,
    ConstrainedHGMeans,
    HGMeans,
    HGMeansPath,
    KernelHGMeans,
    SphericalHGMeans,
    TrimmedHGMeans,
    metrics,
)
from evomeans.engines.constrained.engine import ConstrainedEngine
from tests.fuzz.tampering import contents, rewrite

X = np.random.default_rng(0).normal(size=(24, 3))
SPARSE = np.where(np.random.default_rng(1).random((24, 3)) < 0.4, 0.0, X)
MODELS = {
    "plain": HGMeans(3),
    "spherical": SphericalHGMeans(3),
    "trimmed": TrimmedHGMeans(3, n_outliers=2),
    "balanced": ConstrainedHGMeans(3, size_max="balanced"),
    "kernel": KernelHGMeans(3),
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


def wrong_after(monkeypatch, change):
    """Let the engine end every local search with labels that it must not return."""
    descend = ConstrainedEngine.descend

    def broken(self, *arguments):
        found = descend(self, *arguments)
        change(found.labels)
        return found

    monkeypatch.setattr(ConstrainedEngine, "descend", broken)


def all_in_one(labels):
    labels[:] = 0


def second_joins_first(labels):
    labels[1] = labels[0]


def third_has_none(labels):
    labels[2] = -1


@pytest.mark.parametrize(
    ("change", "parameters", "links", "text"),
    [
        (all_in_one, {"size_max": "balanced"}, {}, "cluster 0 has 24 samples, not 8 to 8"),
        (all_in_one, {"size_min": 2}, {"must_link": [(0, 1)]}, "cluster 1 has 0 samples, not 2"),
        (second_joins_first, {}, {"cannot_link": [(0, 1)]}, "or one of cannot_link together"),
        (third_has_none, {"size_max": 12}, {}, "sample 2 has no cluster"),
    ],
)
def test_the_winner_is_checked_once_more(monkeypatch, change, parameters, links, text):
    """A mistake of the engine is an error, and never an answer that violates constraints."""
    wrong_after(monkeypatch, change)
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
@pytest.mark.parametrize("name", ["plain", "spherical", "trimmed", "balanced", "kernel"])
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


@pytest.mark.parametrize("numbers", [np.int32, np.int64])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sound_sparse_samples_are_the_same_in_every_format(layout, numbers):
    """And the matrix that is passed stays as it is."""
    model = HGMeans(3, random_state=0, max_offspring=5).fit(SPARSE)
    matrix = sp.csr_array(SPARSE)
    matrix.indices, matrix.indptr = matrix.indices.astype(numbers), matrix.indptr.astype(numbers)
    matrix = matrix.asformat(layout)
    np.testing.assert_array_equal(model.predict(matrix), model.labels_)
    assert matrix.format == layout
    np.testing.assert_array_equal(matrix.toarray(), SPARSE)


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
