"""Models of every kind come back from their files."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import evomeans
from evomeans import ConstrainedHGMeans, KernelHGMeans, SphericalHGMeans, TrimmedHGMeans

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
