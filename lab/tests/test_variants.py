"""Variants of the deep strategy, and the table that compares them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evomeans.engines import Start, create_engine
from evomeans.search import DEEP, Individual, SearchSettings
from evomeans.search.crossover import Breeding
from lab import variants
from lab.ideas import (
    Differences,
    IdeasTask,
    pooled_crossover,
    shaken_crossover,
    threshold_crossover,
)
from lab.shares import SharesTask
from lab.variants import summary

X = np.random.default_rng(0).normal(size=(150, 2))
K = 8


@pytest.fixture(scope="module")
def family():
    """Return an engine and three solutions."""
    engine = create_engine("cpu", X, None)
    rng = np.random.default_rng(1)
    found = engine.refine([Start(engine.seed(rng.random(K))) for _ in range(3)])
    return engine, [Individual(one.centers, one.inertia, one.cluster_weights, 0.5) for one in found]


def breeding(engine, quantile: float = 0.3) -> Breeding:
    return Breeding(engine, np.random.default_rng(2).random(K), quantile)


def test_pooled_centres_come_from_both_parents(family) -> None:
    """Those of the first at their own positions."""
    engine, (first, second, _) = family
    child = pooled_crossover(first, second, breeding(engine))
    own = (child.centers == first.centers).all(axis=1)
    other = (child.centers[:, None] == second.centers).all(axis=2).any(axis=1)
    assert (own | other).all()
    assert own.any()
    assert len(np.unique(child.centers, axis=0)) == K


@pytest.mark.parametrize("crossover", [threshold_crossover, shaken_crossover])
def test_perturbed_solutions_depend_on_the_quantile_alone(family, crossover) -> None:
    engine, (first, second, _) = family
    children = [crossover(first, second, breeding(engine, q)).centers for q in (0.3, 0.3, 0.4)]
    assert np.array_equal(children[0], children[1])
    assert not np.array_equal(children[0], children[2])
    assert not np.array_equal(children[0], first.centers)
    is_alone = crossover is shaken_crossover
    assert crossover(first, second, breeding(engine)).is_complete == is_alone


def test_a_difference_needs_three_solutions(family) -> None:
    engine, (first, second, third) = family
    cross = Differences()
    assert cross(third, second, breeding(engine)) is None
    child = cross(first, first, breeding(engine))
    # Both parents are the same: F tells how far it is from the third one.
    factor = breeding(engine).rng.uniform(0.5, 0.8)
    order = ((third.centers[:, None] - first.centers) ** 2).sum(axis=2).argmin(axis=1)
    far = np.bincount(order, minlength=K)[order] > 1
    matched = first.centers[order] + factor * (first.centers[order] - third.centers)
    assert_allclose(child.centers[~far], matched[~far])
    assert child.parent is third


@pytest.mark.parametrize(("kind", "one"), [(IdeasTask, "deep, pooled"), (SharesTask, "lag 1")])
def test_a_task_compares_all_variants(monkeypatch, kind, one) -> None:
    monkeypatch.setattr(variants, "compile_kernels", lambda X, m: None)
    task = kind("iris:6", 0, 0.05)
    rows = task.run()
    assert [row["method"] for row in rows] == ["paper", "deep", *task.variants()]
    text = summary(rows)
    assert f"| {one} |" in text
    assert "better / worse than deep" in text


def test_other_shares_are_not_those_of_the_deep_strategy() -> None:
    deep = SearchSettings(strategy=DEEP)
    for name, settings in SharesTask("iris:6", 0, 1.0).variants().items():
        same = replace(settings, strategy=replace(settings.strategy, name=DEEP.name))
        assert same != deep, name
