"""Models of every kind come back from their files."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import evomeans
from evomeans import (
    ConstrainedHGMeans,
    KernelHGMeans,
    ModelFileError,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from tests.fuzz.tampering import contents, rewrite

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
        (KernelHGMeans(3, **TINY), {}),
        (KernelHGMeans(3, kernel="precomputed", **TINY), {}),
        (KernelHGMeans(3, kernel="linear", **TINY), {}),
    ],
)
def test_a_model_file_keeps_everything(tmp_path, model, links):
    """Parameters, labels with those of outliers, the population and what only this model has."""
    samples = X @ X.T if getattr(model, "kernel", None) == "precomputed" else X
    model.fit(samples, **links).save(tmp_path / "model")
    loaded = evomeans.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.labels_, model.labels_)
    assert_array_equal(loaded.predict(samples), model.predict(samples))
    assert len(loaded.population_) == len(model.population_)
    for name in (*model._fitted_numbers, *model._fitted_arrays):
        assert_array_equal(getattr(loaded, f"{name}_"), getattr(model, f"{name}_"))


@pytest.mark.parametrize(
    ("model", "name", "damage"),
    [
        (KernelHGMeans(3, **TINY), "fitted_landmarks", lambda one: one[:-1]),
        (KernelHGMeans(3, **TINY), "fitted_factor", lambda one: 0.0 * one),
        (KernelHGMeans(3, kernel="precomputed", **TINY), "fitted_landmarks", lambda one: one + 60),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, model, name, damage):
    """A prediction would fail, divide by zero, or take columns that are not there."""
    samples = X @ X.T if model.kernel == "precomputed" else X
    model.fit(samples).save(tmp_path / "model")
    rewrite(tmp_path / "model", arrays={name: damage(contents(tmp_path / "model")[1][name])})
    with pytest.raises(ModelFileError, match="its arrays do not fit together"):
        evomeans.load(tmp_path / "model")


def test_centres_of_other_features_than_those_of_the_fit_are_refused(tmp_path):
    SphericalHGMeans(3, **TINY).fit(X).save(tmp_path / "model")
    rewrite(tmp_path / "model", {"n_features_in": 4})
    with pytest.raises(ModelFileError, match="its arrays do not fit together"):
        evomeans.load(tmp_path / "model")
