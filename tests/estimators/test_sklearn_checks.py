"""HGMeans is a citizen of scikit-learn: its own checks, data frames, routing, pipelines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_clusterer
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from evomeans import (
    ConstrainedHGMeans,
    ExactKMeans,
    HGMeans,
    HGMeansPath,
    SphericalHGMeans,
    TrimmedHGMeans,
)

QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 20, "random_state": 0}
# Weights and repetitions are equivalent at the optimum, which a search has to find for that.
ENOUGH = {"min_population": 2, "max_population": 6, "max_offspring": 20, "n_jobs": 1}
COLUMNS = ["a", "b", "c"]
X = np.random.default_rng(0).normal(size=(40, 3))


# Some checks have fewer distinct samples than the default n_clusters.
few_samples = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@few_samples
@parametrize_with_checks([HGMeans.fast(3), HGMeans(max_offspring=50)])
def test_scikit_learns_own_checks(estimator, check):
    """None is expected to fail; equivalence of weights and repetitions is among them."""
    check(estimator)


@few_samples
@pytest.mark.filterwarnings("ignore:select=:UserWarning")
@pytest.mark.slow
@parametrize_with_checks(
    [
        # Swaps in plain NumPy take their time.
        HGMeans.fast(3, engine="reference", strategy="paper", max_offspring=100),
        ExactKMeans(3, max_time=0.2),
        HGMeansPath((2, 3), random_state=0),
        ConstrainedHGMeans(3, **ENOUGH),
        # Not all checks have enough samples for more.
        ConstrainedHGMeans(1, size_max=1000, **ENOUGH),
        SphericalHGMeans(3, **ENOUGH),
        TrimmedHGMeans(3, n_outliers=0.1, **ENOUGH),
    ]
)
def test_scikit_learns_own_checks_of_other_estimators(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [ConstrainedHGMeans, SphericalHGMeans, TrimmedHGMeans])
def test_every_model_is_a_clusterer_that_can_be_cloned(model):
    """Tags and parameters are those that scikit-learn expects."""
    estimator = model(4, random_state=3, max_time=1.0)
    assert is_clusterer(estimator)
    assert clone(estimator).get_params() == estimator.get_params()
    assert get_tags(estimator).input_tags.sparse == (model is SphericalHGMeans)


def test_tags():
    """A clusterer that takes sparse X, where its engine does, and keeps float32."""
    tags = get_tags(HGMeans())
    assert is_clusterer(HGMeans())
    assert tags.input_tags.sparse
    assert not get_tags(HGMeans(engine="reference")).input_tags.sparse
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
    assert not tags.non_deterministic


# scikit-learn itself reads polars as float64.
@pytest.mark.parametrize(
    ("frame", "dtype"),
    [(pd.DataFrame, np.float64), (pd.DataFrame, np.float32), (pl.DataFrame, np.float64)],
)
def test_data_frames_in(frame, dtype):
    """Frames of pandas and polars are read with their names and precision; series are weights."""
    table = frame(X.astype(dtype), **names(frame))
    weights = np.arange(1.0, 41.0)
    model = HGMeans(3, **QUICK).fit(table, sample_weight=weights)
    plain = HGMeans(3, **QUICK).fit(X.astype(dtype), sample_weight=weights)
    assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    assert model.cluster_centers_.dtype == dtype
    assert list(model.feature_names_in_) == COLUMNS
    assert_array_equal(model.predict(table), model.labels_)
    series = pd.Series(weights) if frame is pd.DataFrame else pl.Series(weights)
    assert model.score(table, sample_weight=series) == pytest.approx(-model.inertia_, rel=1e-13)


def names(frame):
    return {"columns": COLUMNS} if frame is pd.DataFrame else {"schema": COLUMNS}


def test_other_feature_names_are_refused_and_forgotten_by_the_next_fit():
    """The estimator knows its columns until it is fitted without names."""
    table = pd.DataFrame(X, columns=COLUMNS)
    model = HGMeans(3, **QUICK).fit(table)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    model.fit(X)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(kind, frame):
    """Distances come as a data frame with names, and with the index of the samples."""
    model = HGMeans(3, **QUICK).set_output(transform=kind)
    first = model.fit_transform(X)
    again = model.transform(X)
    if kind == "pandas":
        index = np.arange(40) * 10
        assert_array_equal(model.transform(pd.DataFrame(X, index=index)).index, index)
    for table in (first, again):
        assert isinstance(table, frame)
        assert list(table.columns) == ["hgmeans0", "hgmeans1", "hgmeans2"]
    plain = HGMeans(3, **QUICK).fit(X).transform(X)
    assert_array_equal(first.to_numpy(), plain)
    assert_array_equal(again.to_numpy(), plain)


def test_metadata_routing_hands_weights_on():
    """In a pipeline, weights reach fit and score when they are requested."""
    weights = np.arange(1.0, 41.0)
    with config_context(enable_metadata_routing=True):
        model = HGMeans(3, **QUICK).set_fit_request(sample_weight=True)
        model = model.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, sample_weight=weights)
        scaled = StandardScaler().fit_transform(X)
        direct = HGMeans(3, **QUICK).fit(scaled, sample_weight=weights)
        assert_array_equal(pipeline[-1].labels_, direct.labels_)
        assert pipeline.score(X, sample_weight=weights) == pytest.approx(
            -direct.inertia_, rel=1e-13
        )
        assert_array_equal(pipeline.fit_predict(X, sample_weight=weights), direct.labels_)


def test_grid_search_over_its_parameters():
    """score, clone and set_params make it searchable."""
    search = GridSearchCV(HGMeans.fast(2, random_state=0), {"n_clusters": [2, 5]}, cv=2).fit(X)
    assert search.best_params_ == {"n_clusters": 5}


def test_it_replaces_kmeans():
    """The same calls give the same kinds of answers, and on an easy problem the same answers."""
    blobs = np.concatenate([X + center for center in (0.0, 20.0, -20.0)])
    weights = np.random.default_rng(1).integers(1, 5, len(blobs))
    ours = HGMeans(3, **QUICK).fit(blobs, sample_weight=weights)
    theirs = KMeans(3, n_init=3, random_state=0).fit(blobs, sample_weight=weights)
    order = np.argsort(theirs.cluster_centers_[:, 0])
    assert_allclose(ours.cluster_centers_, theirs.cluster_centers_[order], rtol=1e-9)
    assert_array_equal(order[ours.labels_], theirs.labels_)
    assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-9)
    assert_allclose(ours.transform(blobs), theirs.transform(blobs)[:, order], rtol=1e-6)
    assert_allclose(ours.score(blobs), theirs.score(blobs), rtol=1e-9)
    for name in ("labels_", "cluster_centers_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    assert type(ours.predict(sp.csr_array(blobs))) is np.ndarray
