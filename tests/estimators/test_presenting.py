"""The report of a fitted estimator in one call."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from evomeans import ExactKMeans, HGMeans, HGMeansPath, TrimmedHGMeans

pytest.importorskip("jinja2")

X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0)
QUICK = {"max_offspring": 10, "random_state": 0}
MODELS = {
    "HGMeans": HGMeans(3, **QUICK),
    "TrimmedHGMeans": TrimmedHGMeans(3, n_outliers=4, **QUICK),
    "ExactKMeans": ExactKMeans(3, random_state=0),
    "HGMeansPath": HGMeansPath((2, 3), random_state=0),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_report_in_one_call(tmp_path, name):
    model = MODELS[name].fit(X)
    file = model.report(X, tmp_path / "report.html", title="A title", kmeans_runs=1)
    assert file == tmp_path / "report.html"
    page = file.read_text(encoding="utf-8")
    assert "A title" in page
    assert name in page


def test_a_report_needs_a_fit_and_samples_in_memory(tmp_path):
    with pytest.raises(NotFittedError):
        HGMeans(3).report(X, tmp_path / "report.html")
    array = pytest.importorskip("dask.array").from_array(X)
    with pytest.raises(TypeError, match="samples in memory"):
        HGMeans(3, **QUICK).fit(X).report(array, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
