"""Recombinator K-means: seeds from the centres of all members, the better ones more often."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lab.baselines import RecombinatorKMeans
from lab.baselines.engines import create_engine
from lab.baselines.recombinator import has_collapsed, preferences

X = np.random.default_rng(0).normal(size=(300, 2))


def test_preferences_follow_the_published_formula() -> None:
    inertias = np.array([4.0, 5.0, 6.0, 9.0])
    assert_allclose(
        preferences(inertias, 0.6), [1.0, *(np.exp(-0.6 * above / 2.0) for above in (1, 2, 5))]
    )
    assert_array_equal(preferences(inertias, 0.0), np.ones(4))
    assert_array_equal(preferences(np.full(3, 2.0), 5.0), np.ones(3))


@pytest.mark.parametrize(("worst", "collapsed"), [(1.00029, True), (1.00031, False)])
def test_the_population_has_collapsed_when_its_mean_is_the_best(worst, collapsed) -> None:
    assert has_collapsed([1.0, 1.0, worst], tol=1e-4) is collapsed


def test_children_are_made_of_the_centres_of_the_generation_before(monkeypatch) -> None:
    """Every pool holds the centres of the best of all before, with their preferences."""
    engine = create_engine("reference", X, None)
    pools = []

    def remember(pool, chances, quantiles):
        pools.append((pool, chances, quantiles))
        return type(engine).seed_from(engine, pool, chances, quantiles)

    monkeypatch.setattr(engine, "seed_from", remember)
    model = RecombinatorKMeans(5, population_size=4, n_generations=2, beta_step=0.5, n_candidates=3)
    found = list(model.solutions(engine, np.random.default_rng(1)))
    assert len(found) == 12
    for generation in (1, 2):
        best = sorted(found[: 4 * generation], key=lambda one: one.inertia)[:4]
        pool, chances, quantiles = pools[4 * generation - 1]
        assert_array_equal(pool, np.concatenate([one.centers for one in best]))
        expected = preferences(np.array([one.inertia for one in best]), 0.5 * generation)
        assert_array_equal(chances, np.repeat(expected, 5))
        assert quantiles.shape == (5, 3)


def test_generations_never_become_worse_and_agree_in_the_end() -> None:
    """The mean of the best so far does not rise; the search ends before its last generation."""
    model = RecombinatorKMeans(12, population_size=8, random_state=0).fit(X)
    values = [record.inertia for record in model.history_]
    assert len(values) % 8 == 0
    assert len(values) < 8 * 1001
    means = [np.mean(np.sort(values[:end])[:8]) for end in range(8, len(values) + 1, 8)]
    assert (np.diff(means) <= 0.0).all()
    assert means[-1] <= min(values) * (1.0 + 1e-4)
    assert min(values) < min(values[:8])


def test_the_number_of_generations_ends_it() -> None:
    model = RecombinatorKMeans(12, population_size=4, n_generations=2, tol=0.0, random_state=0)
    assert model.fit(X).n_iter_ == 12
