"""Models other than plain k-means do not depend on threads, and come back from their files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import evomeans
from evomeans import ConstrainedHGMeans, ModelFileError, SphericalHGMeans, TrimmedHGMeans
from evomeans.engines import spherical
from tests.fuzz.tampering import rewrite

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 5)) + 2.0 * RNG.integers(0, 3, size=(240, 1))
WEIGHTS = RNG.uniform(0.5, 2.0, 240)
PAIRS = RNG.permutation(240)[:80].reshape(2, -1, 2)
LINKS = {"must_link": PAIRS[0], "cannot_link": PAIRS[1]}
SIZES = {"size_min": 20, "size_max": 60}
MODELS = {
    "sizes": (ConstrainedHGMeans(6, **SIZES), X, {}),
    "links": (ConstrainedHGMeans(6), X, LINKS),
    "sizes and penalties": (ConstrainedHGMeans(6, penalty=1.5, **SIZES), X, LINKS),
    "outliers": (TrimmedHGMeans(6, n_outliers=20), X, {}),
    "cosine": (SphericalHGMeans(6), X, {}),
    "cosine of sparse rows": (SphericalHGMeans(6), csr_array(np.maximum(X, 0.0)), {}),
    "cosine of large data": (SphericalHGMeans(6), X, {}),
}


TINY = {"min_population": 2, "max_population": 3, "max_offspring": 2, "random_state": 0}


@pytest.mark.parametrize("kind", MODELS)
def test_threads_change_no_bit_of_a_model(kind, monkeypatch) -> None:
    """They have their own work space, and share samples, limits and links."""
    if kind.endswith("large data"):
        monkeypatch.setattr(spherical, "LARGE", 0)
    model, rows, links = MODELS[kind]
    fits = []
    for n_jobs in (1, 3):
        model.set_params(n_jobs=n_jobs, random_state=1, max_offspring=30)
        model.fit(rows, sample_weight=WEIGHTS, **links)
        records = [replace(record, seconds=0.0) for record in model.history_]
        fits.append((records, model.cluster_centers_.tobytes(), model.labels_.copy()))
    assert len(fits[0][0]) > 20
    assert fits[0][:2] == fits[1][:2]
    assert_array_equal(fits[0][2], fits[1][2])


@pytest.mark.parametrize(
    ("model", "links"),
    [
        (SphericalHGMeans(3, **TINY), {}),
        (TrimmedHGMeans(3, **TINY), {}),
        (
            ConstrainedHGMeans(3, size_max=[90, 80, 80], penalty=0.5, **TINY),
            {"cannot_link": [(0, 1)]},
        ),
    ],
)
def test_a_model_file_keeps_everything(tmp_path, model, links):
    """Parameters, labels with those of outliers, the population and what only this model has."""
    model.fit(X, **links).save(tmp_path / "model")
    loaded = evomeans.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.labels_, model.labels_)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert len(loaded.population_) == len(model.population_)
    for name in model._fitted_numbers:
        assert_array_equal(getattr(loaded, f"{name}_"), getattr(model, f"{name}_"))


def test_centres_of_other_features_than_those_of_the_fit_are_refused(tmp_path):
    SphericalHGMeans(3, **TINY).fit(X).save(tmp_path / "model")
    rewrite(tmp_path / "model", {"n_features_in": 4})
    with pytest.raises(ModelFileError, match="its arrays do not fit together"):
        evomeans.load(tmp_path / "model")
