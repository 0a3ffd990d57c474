"""Fitted models as scikit-learn's KMeans."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from evomeans import (
    ConstrainedHGMeans,
    ExactKMeans,
    HGMeans,
    HGMeansPath,
    SphericalHGMeans,
    TrimmedHGMeans,
)

X = np.random.default_rng(0).normal(size=(80, 3)) + np.repeat([[0.0], [4.0], [9.0], [30.0]], 20, 0)
NEW = np.random.default_rng(1).uniform(-5, 35, size=(200, 3))
QUICK = {"max_offspring": 5, "random_state": 0}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_it_has_the_attributes_and_answers_of_the_model(kind, dtype):
    """All that KMeans documents, without a warning; new samples get the same clusters."""
    samples, new = kind(X.astype(dtype)), kind(NEW.astype(dtype))
    model = HGMeans(4, **QUICK).fit(samples)
    kmeans = model.to_kmeans()
    assert type(kmeans) is KMeans
    assert kmeans.cluster_centers_.dtype == dtype
    assert_array_equal(kmeans.cluster_centers_, model.cluster_centers_)
    assert_array_equal(kmeans.labels_, model.labels_)
    assert (kmeans.inertia_, kmeans.n_iter_) == (model.inertia_, model.n_iter_)
    assert kmeans.n_features_in_ == 3
    assert not hasattr(kmeans, "feature_names_in_")
    assert_array_equal(kmeans.predict(new), model.predict(new))
    tolerance = {"rtol": 1e-5, "atol": 1e-2} if dtype is np.float32 else {"rtol": 1e-9}
    assert_allclose(kmeans.transform(new), model.transform(new), **tolerance)
    assert_allclose(kmeans.score(new), model.score(new), rtol=1e-5)
    assert list(kmeans.get_feature_names_out()) == [f"kmeans{j}" for j in range(4)]


def test_names_of_features_are_kept():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = HGMeans(4, **QUICK).fit(frame)
    kmeans = pickle.loads(pickle.dumps(model.to_kmeans()))
    assert list(kmeans.feature_names_in_) == ["a", "b", "c"]
    assert_array_equal(kmeans.predict(frame), model.labels_)
    with pytest.raises(ValueError, match="feature names"):
        kmeans.predict(frame[["c", "b", "a"]])


def test_another_fit_of_it_continues_from_the_centres_and_changes_nothing_of_the_model():
    model = HGMeans(4, **QUICK).fit(X)
    kmeans, expected = model.to_kmeans(), model.cluster_centers_.copy()
    assert_array_equal(clone(kmeans).fit(X).labels_, model.labels_)
    kmeans.cluster_centers_[:] = 0
    assert_array_equal(model.cluster_centers_, expected)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_centres_without_samples_and_of_any_size(scale):
    """Whatever the centres are, making it neither warns nor moves them."""
    samples = scale * np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    with pytest.warns(UserWarning, match="distinct clusters"):
        model = HGMeans(3, **QUICK).fit(samples)
    kmeans = model.to_kmeans()
    assert_array_equal(kmeans.cluster_centers_, model.cluster_centers_)
    assert_array_equal(kmeans.labels_, model.labels_)


@pytest.mark.parametrize(
    "model",
    [
        TrimmedHGMeans(4, n_outliers=2, **QUICK),
        ExactKMeans(4, random_state=0),
        HGMeansPath(5, random_state=0),
        HGMeans(4, engine="reference", **QUICK),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_that_predict_the_closest_centre(model):
    kmeans = model.fit(X).to_kmeans()
    assert_array_equal(kmeans.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("kind", [ConstrainedHGMeans, SphericalHGMeans])
def test_models_that_predict_otherwise_have_none(kind):
    model = kind(2, **QUICK).fit(X + 10)
    with pytest.raises(TypeError, match=f"{kind.__name__} has no equivalent KMeans"):
        model.to_kmeans()


def test_it_needs_a_fit():
    with pytest.raises(NotFittedError):
        HGMeans(4).to_kmeans()


def test_samples_in_dask_leave_their_labels_with_dask(tmp_path):
    """They are lazy; and a model that was saved has none."""
    da = pytest.importorskip("dask.array")
    from evomeans import load

    samples = da.from_array(X, chunks=(40, 3))
    model = HGMeans(4, **QUICK).fit(samples)
    assert_array_equal(model.to_kmeans().labels_.compute(), model.labels_.compute())
    model.save(tmp_path / "model")
    kmeans = load(tmp_path / "model").to_kmeans()
    assert not hasattr(kmeans, "labels_")
    assert_array_equal(kmeans.predict(NEW), model.to_kmeans().predict(NEW))
