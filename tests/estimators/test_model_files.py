"""Models of every kind come back from their files."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import evomeans
from evomeans import (
    ConstrainedHGMeans,
    ModelFileError,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from tests.fuzz.tampering import rewrite

X = np.random.default_rng(0).normal(size=(60, 3))
TINY = {"min_population": 2, "max_population": 3, "max_offspring": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("model", "links"),
    [
        (SphericalHGMeans(3, **TINY), {}),
        (TrimmedHGMeans(3, **TINY), {}),
        (
            ConstrainedHGMeans(3, size_max=[25, 20, 20], penalty=0.5, **TINY),
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
