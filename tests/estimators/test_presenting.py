"""The cards of fitted estimators in notebooks, and the report in one call."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from evomeans import ExactKMeans, HGMeans, HGMeansPath, TrimmedHGMeans
from evomeans.plotting.path_plots import path_curves
from evomeans.wording import certain_percent

pytest.importorskip("jinja2")

X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0)
QUICK = {"max_offspring": 10, "random_state": 0}
MODELS = {
    "HGMeans": HGMeans(3, **QUICK),
    "TrimmedHGMeans": TrimmedHGMeans(3, n_outliers=4, **QUICK),
    "ExactKMeans": ExactKMeans(3, random_state=0),
    "HGMeansPath": HGMeansPath((2, 3), random_state=0),
}


def texts_of(html: str) -> list[str]:
    """Return all texts outside of tags."""
    return unescape(re.sub(r"<[^>]*>", "\n", html)).splitlines()


def shown(model: BaseEstimator) -> str:
    return model._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_fitted_estimators_show_the_fit_and_others_their_parameters(name):
    model = MODELS[name]
    assert f"{name}, fitted" not in shown(model)
    model.fit(X)
    html = shown(model)
    assert f"{name}, fitted" in html
    assert model._repr_html_().count("fitted</div>") == 1
    assert "<svg" in html
    assert "<summary" in html
    assert "sk-top-container" in html


def test_what_the_card_says():
    model = HGMeans(3, max_offspring=300, random_state=0).fit(X)
    texts = texts_of(shown(model))
    for text in ("3 clusters", "60 samples with 2 features", "20 to 20 samples"):
        assert text in texts
    (said,) = [text for text in texts if "found again" in text]
    assert said.endswith(f"; found again {model.n_rediscoveries_} times, from independent starts")
    assert said.startswith(f"{int(100 * model.certainty_)} %")
    model.certify(X, max_time=5)
    assert any(text.startswith("Proven optimal") for text in texts_of(shown(model)))


def test_the_card_of_a_path_counts_one_cluster_as_certain():
    path = HGMeansPath([1, 2, 3], random_state=0).fit(X)
    texts = texts_of(shown(path))
    sure = certain_percent(path.certainty_.min())
    assert f"independent populations agree at 3 of 3 k, each {sure} certain or more" in texts
    assert path_curves(path).is_confirmed.all()


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (X[:, :1], "one column is solved exactly for every k"),
        (np.array([[0.0], [1e-140], [1.0], [1.1]]), "as exactly as float64 allows"),
    ],
)
def test_the_card_of_one_column_speaks_of_no_populations(column, says):
    path = HGMeansPath([2, 3]).fit(column)
    assert any(says in text for text in texts_of(shown(path)))
    assert path_curves(path).is_confirmed.all()


def test_scikit_learns_switch_is_heeded():
    model = HGMeans(3, **QUICK).fit(X)
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


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
