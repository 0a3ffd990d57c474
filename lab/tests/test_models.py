"""The rivals of the other models heed what they should, and links are drawn as they say."""

from __future__ import annotations

import pytest
from sklearn import datasets

from evomeans import ConstrainedHGMeans, SphericalHGMeans
from lab.constrained_rivals import cop_kmeans, exact_alternation, spherical_restarts
from lab.models import drawn_links, glass_like, size_limits

QUICK = {"random_state": 0, "n_jobs": 1}


@pytest.mark.parametrize("rival", [cop_kmeans, exact_alternation])
def test_rivals_are_not_below_the_optimum_and_may_reach_it(rival) -> None:
    """On an easy problem, a few runs find what the search finds."""
    X, classes = datasets.load_iris(return_X_y=True)
    links = drawn_links(classes, 0.005, False, 0)
    model = ConstrainedHGMeans.fast(3, **QUICK)
    model.fit(X, must_link=links.must, cannot_link=links.cannot)
    runs = rival(X, links, 3, 0)
    found = [objective for objective in (next(runs) for _ in range(4)) if objective is not None]
    assert found
    assert min(found) >= model.inertia_ * (1.0 - 1e-9)
    assert min(found) <= model.inertia_ * 1.1


def test_links_come_from_classes() -> None:
    """As many as asked for, all of them true unless they are to be noisy."""
    X, classes = glass_like()
    assert X.shape == (214, 9)
    links = drawn_links(classes, 0.01, False, 1)
    assert len(links.must) + len(links.cannot) == round(0.01 * 214 * 213 / 2)
    assert links.count_violations(classes)[0] == 0
    assert drawn_links(classes, 0.01, True, 1).count_violations(classes)[0] > 0


def test_restarts_of_spherical_kmeans_are_not_below_the_search() -> None:
    """They minimise the same objective."""
    X = datasets.load_digits().data[:200]
    runs = spherical_restarts(X, 4, 0)
    best = min(next(runs) for _ in range(5))
    assert best >= SphericalHGMeans.fast(4, **QUICK).fit(X).inertia_ * (1.0 - 1e-9)


def test_size_limits_leave_an_assignment() -> None:
    """Equal sizes, and a fifth below and above."""
    for low, high in size_limits(103, 10).values():
        assert 10 * low <= 103 <= 10 * high
