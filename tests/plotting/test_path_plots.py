"""The plots of a path, as numbers and on the axes."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from evomeans import HGMeans, HGMeansPath, plotting
from evomeans.criteria import Gap, Verdict
from evomeans.metrics import silhouette_samples, simplified_silhouette_samples
from evomeans.plotting.path_plots import (
    clustergram_data,
    path_curves,
    silhouette_bars,
    suggestion_text,
)

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
PLACES = np.array([[0, 0, 0], [9, 0, 1], [0, 9, 2], [9, 9, 3]])
X = np.repeat(PLACES, 15, axis=0) + RNG.normal(size=(60, 3))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def path():
    criteria = ["bic", "jump", Gap(n_references=2)]
    return HGMeansPath((2, 6), criteria=criteria, select="bic", random_state=0).fit(X)


def test_curves_are_those_of_the_results(path):
    data = path_curves(path)
    assert [one.name for one in data.criteria] == ["bic", "jump", "gap"]
    for one in data.criteria:
        assert_allclose(one.values, path.results_[one.name])
        assert one.choice == path.suggestions_[one.name]
    assert data.best_k == 4
    # ln of the reference is the gap above ln of the inertia.
    assert_allclose(np.log(data.reference / data.inertia.values), path.results_["gap"])
    assert data.is_confirmed.all()


def test_flows_are_the_samples_that_clusters_have_in_common(path):
    data = clustergram_data(path, X)
    labels = path.labels_path_
    for place, flow in enumerate(data.flows):
        for (a, b), count in np.ndenumerate(flow):
            assert count == ((labels[:, place] == a) & (labels[:, place + 1] == b)).sum()
    centered = X - X.mean(axis=0)
    axis = np.linalg.svd(centered)[2][0]
    expected = (path.at(3).cluster_centers_ - X.mean(axis=0)) @ axis
    assert_allclose(np.abs(data.places[1]), np.abs(expected))
    with pytest.raises(ValueError, match="fitted to 60 samples, X has 10"):
        clustergram_data(path, X[:10])


@pytest.mark.parametrize("simplified", [False, True])
def test_bars_are_the_silhouettes_in_order(path, simplified):
    model = path.at(4)
    bars = silhouette_bars(model, X, simplified=simplified)
    values = silhouette_samples(X, model.labels_)
    if simplified:
        values = simplified_silhouette_samples(X, model.cluster_centers_)
    for cluster, bar in enumerate(bars):
        assert_allclose(bar, np.sort(values[model.labels_ == cluster])[::-1])


def test_the_grid_has_an_axis_for_every_criterion(path):
    figure = plotting.plot_path(path)
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.axison]
    assert titles == ["Inertia", "BIC", "Jump", "Gap statistic"]
    says = [ax.get_title(loc="right") for ax in figure.axes if ax.axison]
    assert says[1] == "k = 4"
    figure.canvas.draw()
    own = pyplot.figure()
    assert plotting.plot_path(path, own) is own


def test_clustergram_and_silhouettes_draw_into_given_axes(path):
    _, (left, right) = pyplot.subplots(1, 2)
    assert plotting.plot_clustergram(path, X, ax=left) is left
    assert sum(len(one.get_offsets()) for one in left.collections[1:]) == 2 + 3 + 4 + 5 + 6
    assert plotting.plot_silhouette(path.best_estimator_, X, ax=right) is right
    assert [text.get_text() for text in right.texts] == ["0", "1", "2", "3"]
    mean = silhouette_samples(X, path.labels_path_[:, 2]).mean()
    assert right.get_title(loc="right") == f"mean {mean:.3f}"
    left.figure.canvas.draw()


def test_other_models_are_refused(path):
    with pytest.raises(NotFittedError):
        plotting.plot_path(HGMeansPath())
    model = HGMeans(2, max_offspring=5, random_state=0).fit(X)
    with pytest.raises(TypeError, match="A fitted HGMeansPath is needed here, got HGMeans"):
        plotting.plot_path(model)


def test_a_suggestion_at_the_end_of_the_range_is_none_to_rely_on():
    said = [suggestion_text(choice, last=6) for choice in (4, 6, None)]
    assert said == ["k = 4", "k = 6 (end of the range)", "none"]


def test_a_criterion_of_the_user_has_its_own_title():
    class Late:
        name, title = "late", "The later the better"

        def judge(self, evidence, allowed):
            return Verdict(evidence.k_values * 1.0, int(allowed[-1]), {})

    path = HGMeansPath((2, 4), criteria=[Late()], select="bic", random_state=0).fit(X)
    shown = {ax.get_title(loc="left"): ax for ax in plotting.plot_path(path).axes}
    late = shown["The later the better"]
    assert late.get_title(loc="right") == "k = 4 (end of the range)"
    # A ring, and the line of the choice of ``select``.
    assert [len(line.get_xdata()) for line in late.lines].count(1) == 1
