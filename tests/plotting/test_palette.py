"""Which cluster gets which colour."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.plotting.axes import OKABE_ITO, cluster_colors, ink_on, luminance


@pytest.mark.parametrize("k", [1, 3, 8])
def test_few_clusters_have_a_colour_each(k):
    assert_array_equal(cluster_colors(np.ones((k, 2))), np.arange(k))


def test_neighbours_on_a_grid_have_different_colours():
    """As on a map: no two of 100 clusters side by side share a colour."""
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    colors = cluster_colors(grid)
    away = np.linalg.norm(grid[:, None] - grid, axis=2)
    same = (colors[:, None] == colors) & ~np.eye(100, dtype=bool)
    assert set(colors) == set(range(len(OKABE_ITO)))
    assert away[same].min() > 1.0


def test_colours_do_not_depend_on_the_unit():
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
