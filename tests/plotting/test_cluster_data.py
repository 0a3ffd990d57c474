"""The numbers behind the plots of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from evomeans.metrics import sums
from evomeans.metrics.sums import cluster_moments
from evomeans.plotting.axes import OKABE_ITO, cluster_colors, ink_on, luminance
from evomeans.plotting.cluster_plots import (
    profile_data,
    projection_data,
    thin_out,
)

RNG = np.random.default_rng(0)
LABELS = np.arange(90) % 3
CENTERS = np.array([[0.0, 0.0, 5.0], [40.0, 0.0, 5.0], [0.0, 20.0, 5.0]])
X = CENTERS[LABELS] + RNG.normal(size=(90, 3))
NAMES = ["a", "b", "c"]


def test_thinning_keeps_some_of_every_cluster():
    """Always the same samples, about as many as asked for, and none of a small cluster is lost."""
    labels = np.repeat([0, 1, 2], [100_000, 3, 2000])
    kept = thin_out(labels, 1000)
    assert len(kept) == len(set(kept)) == 1000
    assert_array_equal(np.bincount(labels[kept]) >= [900, 3, 5], [True] * 3)
    assert_array_equal(kept, thin_out(labels, 1000))
    assert np.any(np.diff(labels[kept]) < 0)


def test_thinning_keeps_all_of_few_samples_and_some_of_many_clusters():
    assert_array_equal(np.sort(thin_out(LABELS, 90)), np.arange(90))
    labels = np.repeat(np.arange(200), 20)
    assert_array_equal(np.unique(labels[thin_out(labels, 10)]), np.arange(200))


def test_principal_components_keep_the_distances_in_the_main_plane():
    """These clusters lie in a plane: their centres are as far apart as in all dimensions."""
    data = projection_data(X, LABELS, CENTERS, names=NAMES)
    apart = np.linalg.norm(data.centers[:, None] - data.centers, axis=2)
    assert_allclose(apart, np.linalg.norm(CENTERS[:, None] - CENTERS, axis=2), rtol=0.01)
    assert data.points.shape == (90, 2)
    assert_array_equal(data.sizes, [30, 30, 30])
    nearest = np.linalg.norm(data.points[:, None] - data.centers, axis=2).argmin(axis=1)
    assert_array_equal(nearest, data.labels)
    assert data.axis_names[0].startswith("principal component 1 (")
    sparse = projection_data(csr_array(X), LABELS, CENTERS, names=NAMES)
    assert_allclose(np.abs(sparse.points), np.abs(data.points), atol=1e-8)


@pytest.mark.parametrize("columns", [["c", "a"], [2, 0], ("c", 0)])
def test_two_chosen_columns(columns):
    for samples in (X, csr_array(X)):
        data = projection_data(samples, LABELS, CENTERS, names=NAMES, columns=columns)
        assert data.axis_names == ["c", "a"]
        assert_array_equal(data.centers, CENTERS[:, [2, 0]])
        assert_array_equal(np.sort(data.points[:, 1]), np.sort(X[:, 0]))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (["a", "z"], "There is no column 'z'; there are 'a', 'b', 'c'."),
        ([0, 3], "There is no column 3; indices go from 0 to 2."),
        (["a"], r"columns must be two names or two indices, got \['a'\]"),
        ("ab", "columns must be two names or two indices, got 'ab'"),
    ],
)
def test_columns_that_are_not_there(columns, text):
    with pytest.raises(ValueError, match=text):
        projection_data(X, LABELS, CENTERS, names=NAMES, columns=columns)


@pytest.mark.parametrize(
    "samples", [np.ones((5, 3)), np.zeros((1, 3)), np.arange(6.0).reshape(2, 3), np.ones((4, 1))]
)
def test_degenerate_samples_can_be_projected(samples):
    """Constant samples, a single one, two, and one column: finite, with a view that has a size."""
    labels = np.zeros(len(samples), dtype=int)
    names = NAMES[: samples.shape[1]]
    data = projection_data(samples, labels, samples[:1], names=names)
    assert np.isfinite(data.points).all()
    for low, high in data.view():
        assert low < high


def test_the_view_has_equal_scales_and_ignores_a_few_far_samples():
    data = projection_data(X, LABELS, CENTERS, names=NAMES, columns=[0, 1])
    (left, right), (bottom, top) = data.view(shape=1.5)
    assert (right - left) / (top - bottom) == pytest.approx(1.5)
    far = np.concatenate([np.repeat(X, 10, axis=0), [[1e6, 0, 0]]])
    labels = np.append(np.repeat(LABELS, 10), 0)
    view = projection_data(far, labels, CENTERS, names=NAMES, columns=[0, 1]).view()
    assert view[0][1] < 1000
    assert view[0][0] < CENTERS[:, 0].min() < CENTERS[:, 0].max() < view[0][1]


def test_profiles_show_the_columns_that_tell():
    """Without the samples the columns that separate most come first; constant ones are zero."""
    data = profile_data(CENTERS, np.array([30, 30, 30]), NAMES)
    assert data.names == ["a", "b", "c"]
    rows = np.argsort(data.clusters)
    expected = [[-1, -1, 0], [2, -1, 0], [-1, 2, 0]] / np.sqrt(2)
    assert_allclose(data.values[rows], expected)
    assert_array_equal(data.centers[rows], CENTERS)
    # Values that look like a matrix of distances are still values.
    assert_array_equal(profile_data(np.ones((3, 3)), np.ones(3), NAMES).values, np.zeros((3, 3)))


def test_profiles_count_by_explained_variance_if_the_spread_is_known():
    """Column c has by far the least spread, but clusters explain all of it."""
    centers = np.array([[0.0, 0.0, 1.0], [9.0, 5.0, 2.0]])
    mean, spread = centers.mean(axis=0), np.array([50.0, 10.0, 0.5])
    data = profile_data(centers, np.ones(2), NAMES, mean=mean, spread=spread, limit=2)
    assert data.names == ["c", "b"]
    assert data.n_features == 3
    assert_allclose(data.values, [[-1, -0.25], [1, 0.25]])


def test_similar_clusters_stand_together():
    centers = np.array([[0.0], [10.0], [0.1], [10.1], [0.2]])
    clusters = profile_data(centers, np.ones(5), ["a"]).clusters.tolist()
    low = [i for i, cluster in enumerate(clusters) if cluster in (0, 2, 4)]
    assert max(low) - min(low) == 2
    assert sorted(clusters) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("as_given", [np.asarray, csr_array])
def test_moments_in_blocks_are_those_of_all_samples(monkeypatch, as_given):
    monkeypatch.setattr(sums, "NUMBERS_PER_BLOCK", 40)
    weight = RNG.random(90)
    data = cluster_moments(as_given(X), CENTERS, weight, LABELS)
    mean = np.average(X, axis=0, weights=weight)
    assert_allclose(data.mean, mean)
    assert_allclose(data.spread, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight)))
    away = weight * ((X - CENTERS[LABELS]) ** 2).sum(axis=1)
    assert_allclose(data.inertia, [away[i::3].sum() for i in range(3)])
    assert_allclose(data.weights, [weight[i::3].sum() for i in range(3)])
    about = [weight[i::3] @ (X[i::3] - CENTERS[i]) ** 2 / weight[i::3].sum() for i in range(3)]
    assert_allclose(data.deviations, np.sqrt(about))


def test_outliers_and_empty_clusters_have_no_moments():
    """The label −1 counts nowhere, whatever the samples are; a cluster without samples is 0."""
    labels = np.where(np.arange(90) % 5 == 0, -1, LABELS % 2)
    far = np.where(labels[:, None] < 0, 1e6, X)
    data = cluster_moments(far, CENTERS, np.ones(90), labels)
    kept = X[labels >= 0]
    assert_allclose(data.mean, kept.mean(axis=0))
    assert_allclose(data.spread, kept.std(axis=0))
    assert data.weights[2] == 0.0
    assert_array_equal(data.deviations[2], np.zeros(3))
    assert_array_equal(data.means[2], CENTERS[2])


def test_neighbours_on_a_grid_have_different_colours():
    """As on a map: no two of 100 clusters side by side share a colour."""
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    colors = cluster_colors(grid)
    away = np.linalg.norm(grid[:, None] - grid, axis=2)
    same = (colors[:, None] == colors) & ~np.eye(100, dtype=bool)
    assert set(colors) == set(range(len(OKABE_ITO)))
    assert away[same].min() > 1.0


def test_colours_do_not_depend_on_the_unit_and_few_clusters_have_one_each():
    for k in (1, 3, 8):
        assert_array_equal(cluster_colors(np.ones((k, 2))), np.arange(k))
    centers = np.random.default_rng(0).normal(size=(50, 3))
    assert_array_equal(cluster_colors(centers), cluster_colors(centers * 2.0**600))
    assert len(cluster_colors(np.zeros((20, 2)))) == 20


def test_numbers_can_be_read_on_every_colour():
    """At least the contrast of 4.5 that WCAG asks for."""
    assert luminance("#ffffff") == pytest.approx(1.0)
    assert luminance("#000000") == 0.0
    for color in OKABE_ITO:
        lighter, darker = sorted([luminance(color), luminance(ink_on(color))], reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, color
