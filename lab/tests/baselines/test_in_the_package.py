"""Baselines beside the models of the package: in plots and reports, and refused data."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest

from evomeans import plotting
from lab.baselines import GlobalKMeans, MultiStartKMeans

matplotlib.use("Agg")

X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0)
MODELS = [MultiStartKMeans(3, n_runs=5, random_state=0), GlobalKMeans(3)]


def test_the_search_of_a_baseline_is_drawn_as_far_as_it_has_one() -> None:
    baseline = MODELS[0].fit(X)
    plotting.plot_convergence(baseline)
    with pytest.raises(TypeError, match="has no population"):
        plotting.plot_population(baseline)
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_reports(model, tmp_path: Path) -> None:
    name = type(model).__name__
    file = model.fit(X).report(X, tmp_path / "report.html", title="A title", kmeans_runs=1)
    page = file.read_text(encoding="utf-8")
    assert "A title" in page
    assert name in page


def test_an_outlier_that_takes_all_digits_is_refused() -> None:
    samples = X.copy()
    samples[7, 1] = 1e50
    with pytest.raises(ValueError, match="Column 1 of X has values up to 1e"):
        MultiStartKMeans(4, n_runs=1).fit(samples)
