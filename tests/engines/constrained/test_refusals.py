"""Constraints are refused exactly if no clustering keeps them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constraint_oracles import all_labels, best_constrained, inertias
from evomeans.engines.constrained.engine import ConstrainedEngine
from evomeans.engines.constrained.feasibility import (
    Feasibility,
    check_links,
    check_sizes,
    find_clustering,
    place_exactly,
)
from evomeans.engines.constrained.links import InfeasibleError, Links, contract, group_samples
from evomeans.engines.protocol import LocalSearch, Order

NO_PAIRS = np.empty((0, 2), np.int64)


@st.composite
def problems(draw):
    """Few samples, with limits and links that leave nothing more often than not."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, k = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    low = rng.integers(0, 3, k)
    high = low + rng.integers(0, 4, k)
    must, cannot = (rng.integers(0, n, (draw(st.integers(0, most)), 2)) for most in (2, 6))
    must, cannot = (one[one[:, 0] != one[:, 1]] for one in (must, cannot))
    penalties = [np.full(len(one), np.inf) for one in (must, cannot)]
    links = Links(must, penalties[0], cannot, penalties[1])
    return rng.normal(size=(n, 2)), links, low, high


def is_possible(n, links, low, high):
    """Look for a clustering that keeps all constraints."""
    labels = all_labels(n, len(low))
    sizes = (labels[:, :, None] == np.arange(len(low))).sum(axis=1)
    kept = ((sizes >= low) & (sizes <= high)).all(axis=1)
    for i, j in links.must:
        kept &= labels[:, i] == labels[:, j]
    for i, j in links.cannot:
        kept &= labels[:, i] != labels[:, j]
    return bool(kept.any())


def keeps_all(labels, links, low, high):
    """Whether a clustering keeps all constraints."""
    sizes = np.bincount(labels, minlength=len(low))
    together = labels[links.must[:, 0]] == labels[links.must[:, 1]]
    apart = labels[links.cannot[:, 0]] != labels[links.cannot[:, 1]]
    return bool(((sizes >= low) & (sizes <= high)).all() and together.all() and apart.all())


def open_engine(X, links, low, high):
    """Check constraints in the order of a fit, and return the engine."""
    check_sizes(low, high, len(X))
    of_sample = group_samples(len(X), links.hard_must)
    groups = contract(X, None, of_sample)
    check_links(links, of_sample, groups.counts, high)
    return ConstrainedEngine(groups, links, low, high)


@given(problems())
def test_exactly_what_is_impossible_is_refused(problem):
    """And every local search ends in a clustering that keeps all constraints."""
    X, links, low, high = problem
    try:
        engine = open_engine(*problem)
    except InfeasibleError:
        assert not is_possible(len(X), links, low, high)
        return
    assert is_possible(len(X), links, low, high)
    centers = engine.rows(np.zeros(len(low), np.intp))
    for moves in (False, True):
        made = engine.refine([Order(centers, local_search=LocalSearch(single_moves=moves))])[0]
        labels = made.labels[engine.groups.of_sample]
        assert keeps_all(labels, links, low, high)
        ones, k = np.ones(len(X)), len(low)
        assert made.inertia + answer_constant(X, engine) == pytest.approx(
            inertias(X, ones, labels[None].astype(np.int64), k)[0], abs=1e-9
        )
        best = best_constrained(X, ones, k, low, high, links.must, links.cannot)
        assert made.inertia + answer_constant(X, engine) >= best - 1e-9


def answer_constant(X, engine):
    """Return what the samples of groups cost around their means."""
    return ((X - engine.groups.points[engine.groups.of_sample]) ** 2).sum()


@given(problems())
def test_a_clustering_is_found_wherever_there_is_one(problem):
    """The placement of bound items leaves room for all others."""
    X, links, low, high = problem
    groups = contract(X, None, np.arange(len(X)))
    pairs = np.unique(np.sort(links.cannot, axis=1), axis=0)
    bound = np.unique(pairs)
    hard = Links(NO_PAIRS, np.empty(0), pairs, np.full(len(pairs), np.inf))
    expected = is_possible(len(X), hard, low, high)
    if low.sum() > len(X) or high.sum() < len(X):
        return
    try:
        placed = find_clustering(groups, bound, pairs, low, high)
    except InfeasibleError:
        assert not expected
        return
    assert expected
    labels = np.full(len(X), -1)
    labels[bound] = placed
    assert (labels[pairs[:, 0]] != labels[pairs[:, 1]]).all()
    taken = np.bincount(placed, minlength=len(low))
    free = len(X) - len(bound)
    assert (taken <= high).all()
    assert np.maximum(low - taken, 0).sum() <= free <= (high - taken).sum()


@given(problems())
def test_the_integer_program_places_at_the_least_cost(problem):
    """As an enumeration of all placements does."""
    X, links, low, high = problem
    n, k = len(X), len(low)
    costs = np.random.default_rng(len(X)).random((n, k))
    found, labels = place_exactly(costs, links.cannot, np.ones(n, np.int64), 0, low, high)
    every = all_labels(n, k)
    sizes = (every[:, :, None] == np.arange(k)).sum(axis=1)
    kept = ((sizes >= low) & (sizes <= high)).all(axis=1)
    for i, j in links.cannot:
        kept &= every[:, i] != every[:, j]
    assert (found is Feasibility.FOUND) == bool(kept.any())
    if found is Feasibility.FOUND:
        assert keeps_all(labels, Links(NO_PAIRS, np.empty(0), links.cannot, np.empty(0)), low, high)
        totals = costs[np.arange(n), every].sum(axis=1)
        assert costs[np.arange(n), labels].sum() == pytest.approx(totals[kept].min())
