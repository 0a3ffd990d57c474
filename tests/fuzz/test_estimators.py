"""A few of the fuzz cases, and that the fuzzer can fail."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from constraint_oracles import all_labels, best_constrained, inertias
from tests.fuzz import estimators, optima


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", estimators.KINDS)
def test_some_cases_of_each_kind(kind):
    """Tiny searches and a default one; a false answer raises, whatever was missed."""
    for number in range(8):
        rng = np.random.default_rng([2026, number])
        outcome = estimators.KINDS[kind](rng, estimators.TINY if number else {})
        assert outcome in ("optimal", "above", "infeasible", "refused")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["spherical", "trimmed", "constrained"])
def test_default_searches_find_the_optimum_of_every_model(kind):
    """Weights, duplicates, sizes, links and penalties: the optimum, or that there is none."""
    outcomes = [estimators.KINDS[kind](np.random.default_rng([1, n]), {}) for n in range(60)]
    assert set(outcomes) <= {"optimal", "infeasible", "refused"}
    assert outcomes.count("optimal") > 40


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribute", ["inertia_", "labels_"])
@pytest.mark.parametrize("kind", ["deep", "spherical", "trimmed", "constrained"])
def test_a_false_answer_is_noticed(kind, attribute, monkeypatch):
    """Inertias that are too low, and labels of another clustering."""
    changed = {"inertia_": lambda one: one * 0.9 - 1.0, "labels_": lambda one: np.abs(1 - one)}
    model = {
        "deep": estimators.HGMeans,
        "spherical": estimators.SphericalHGMeans,
        "trimmed": estimators.TrimmedHGMeans,
        "constrained": estimators.ConstrainedHGMeans,
    }[kind]
    fit = model.fit

    def lying(self, *arguments, **keywords):
        fit(self, *arguments, **keywords)
        setattr(self, attribute, changed[attribute](getattr(self, attribute)))
        return self

    monkeypatch.setattr(model, "fit", lying)
    failed = 0
    for number in range(12):
        rng = np.random.default_rng([7, number])
        try:
            estimators.KINDS[kind](rng, estimators.TINY)
        except (AssertionError, IndexError):  # a label may be one of no cluster
            failed += 1
    assert failed >= 3


@pytest.mark.parametrize("seed", range(4))
def test_optima_are_those_of_the_plain_enumeration(seed):
    """Look-ups of subsets and sums over labels give the same optima."""
    rng = np.random.default_rng(seed)
    n, k = 5, 1 + seed % 3
    X, weights = rng.normal(size=(n, 2)), rng.random(n)
    squares, labels = optima.squared_distances(X), all_labels(n, k)
    costs = optima.costs_of_subsets(squares, weights)
    expected = inertias(X, weights, labels, k).min()
    assert optima.lowest(costs, n, k) == pytest.approx(expected)
    limits, must, cannot = (np.zeros(k), np.full(k, 3)), [(0, 1)], [(2, 3)]
    found = optima.lowest_constrained(costs, *limits, np.array(must), np.array(cannot), 0.3)
    expected = best_constrained(X, weights, k, *limits, must, cannot, 0.3)
    assert found == pytest.approx(expected)
    rows = combinations(range(n), 3)
    few = all_labels(3, k)
    expected = min(inertias(X[list(kept)], np.ones(3), few, k).min() for kept in rows)
    assert optima.lowest_trimmed(squares, np.ones(n), 2.0, k) == pytest.approx(expected)


def test_the_best_trimming_may_leave_out_a_part():
    """Half of a heavy sample goes: 1.5 of 3, with the sample at 1 left alone."""
    squares = optima.squared_distances(np.array([[0.0], [1.0]]))
    found = optima.lowest_trimmed(squares, np.array([3.0, 1.0]), 1.5, 1)
    # Without the sample at 1 and half of the weight 3, nothing is left to pay.
    assert found == 0.0
    found = optima.lowest_trimmed(squares, np.array([3.0, 1.0]), 0.5, 1)
    assert found == pytest.approx(3.0 * 0.5 / 3.5)
