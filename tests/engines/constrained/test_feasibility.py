"""Constraints leave a clustering or they do not: as the enumeration of all clusterings says."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

from constraint_oracles import all_labels, best_constrained, inertias
from evomeans.engines import Order
from evomeans.engines.constrained.engine import ConstrainedEngine
from evomeans.engines.constrained.feasibility import (
    check_links,
    check_sizes,
    find_clustering,
    largest_clique,
    place_exactly,
    shortest_path,
)
from evomeans.engines.constrained.links import InfeasibleError, Links, contract, group_samples
from evomeans.engines.protocol import LocalSearch


class Constrained(NamedTuple):
    """A few samples, limits of the sizes of clusters, and pairs of samples."""

    X: Any
    low: Any
    high: Any
    must: Any
    cannot: Any

    def engine(self) -> ConstrainedEngine:
        """Check the constraints as an estimator does, and build the engine."""
        n = len(self.X)
        hard = (np.full(len(pairs), np.inf) for pairs in (self.must, self.cannot))
        links = Links(self.must, next(hard), self.cannot, next(hard))
        groups = contract(self.X, None, group_samples(n, self.must))
        check_sizes(self.low, self.high, n)
        check_links(links, groups.of_sample, groups.counts, self.high)
        return ConstrainedEngine(groups, links, self.low, self.high)

    def optimum(self) -> float:
        """Return the lowest inertia within all constraints, infinite if none is."""
        args = self.low, self.high, self.must.tolist(), self.cannot.tolist()
        return float(best_constrained(self.X, np.ones(len(self.X)), len(self.low), *args))

    def heeds(self, labels: Any) -> bool:
        """Whether a clustering keeps all constraints."""
        sizes = np.bincount(labels, minlength=len(self.low))
        together = (labels[self.must[:, 0]] == labels[self.must[:, 1]]).all()
        apart = (labels[self.cannot[:, 0]] != labels[self.cannot[:, 1]]).all()
        return bool((sizes >= self.low).all() and (sizes <= self.high).all() and together and apart)


@st.composite
def constrained_problems(draw) -> Constrained:
    """Problems that are as often impossible as not."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, k = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    pairs = np.array(list(combinations(range(n), 2)))
    rng.shuffle(pairs)
    n_must, n_cannot = draw(st.integers(0, 3)), draw(st.integers(0, 6))
    # One pair may contradict itself.
    first = draw(st.integers(max(0, n_must - 1), n_must))
    limits = np.sort(rng.integers(0, n + 1, (2, k)), axis=0)
    is_limited = draw(st.booleans())
    return Constrained(
        rng.normal(size=(n, 2)),
        limits[0] if is_limited else np.zeros(k, np.int64),
        limits[1] if is_limited else np.full(k, n),
        pairs[:n_must],
        pairs[first : first + n_cannot],
    )


@settings(max_examples=150)
@given(constrained_problems())
def test_constraints_are_refused_if_and_only_if_no_clustering_heeds_them(problem) -> None:
    if np.isinf(problem.optimum()):
        event("impossible")
        with pytest.raises(InfeasibleError):
            problem.engine()
        return
    event("possible")
    engine = problem.engine()
    (found,) = engine.refine([Order(np.zeros((len(problem.low), 2)))])
    assert problem.heeds(found.labels[engine.groups.of_sample])


@settings(max_examples=100)
@given(constrained_problems(), st.integers(0, 10**6))
def test_a_refinement_keeps_all_constraints_and_leaves_no_better_move(problem, seed) -> None:
    """Its inertia is that of its labels, and no single item had better be elsewhere.

    Nor had two samples better change places, if there are no links.
    """
    if np.isinf(problem.optimum()):
        return
    engine, k = problem.engine(), len(problem.low)
    start = np.random.default_rng(seed).normal(size=(k, 2))
    (found,) = engine.refine([Order(start, local_search=LocalSearch(single_moves=True))])
    labels = found.labels[engine.groups.of_sample]
    assert problem.heeds(labels)
    ones = np.ones(len(problem.X))
    (own,) = inertias(problem.X, ones, labels[None], k)
    assert own >= problem.optimum() - 1e-9
    within = problem.X - engine.groups.points[engine.groups.of_sample]
    assert found.inertia + (within**2).sum() == pytest.approx(own, abs=1e-9)
    of_sample, n = engine.groups.of_sample, len(problem.X)
    changed = [np.where(of_sample == item, j, labels) for item in range(n) for j in range(k)]
    if not len(problem.must) + len(problem.cannot):
        places = np.arange(n)
        for pair in combinations(range(n), 2):
            exchanged = labels[np.where(np.isin(places, pair), sum(pair) - places, places)]
            changed.append(exchanged)
    changed = np.array([one for one in changed if problem.heeds(one)])
    assert inertias(problem.X, ones, changed, k).min() >= own - 1e-9


@given(constrained_problems())
def test_the_largest_clique_is_found(problem) -> None:
    """Of a few samples, against all sets of them."""
    n, linked = len(problem.X), {tuple(sorted(pair)) for pair in problem.cannot.tolist()}
    largest = max(
        size
        for size in range(1, n + 1)
        for members in combinations(range(n), size)
        if all(pair in linked for pair in combinations(members, 2))
    )
    found = largest_clique(n, problem.cannot, more_than=n)
    assert len(found) == largest
    assert all(pair in linked for pair in combinations(found, 2))


@given(constrained_problems())
def test_chains_of_links_are_as_short_as_they_can_be(problem) -> None:
    """Every step is a link, and no chain with fewer samples joins the two."""
    n, pairs = len(problem.X), problem.cannot
    near = np.eye(n)
    near[pairs[:, 0], pairs[:, 1]] = near[pairs[:, 1], pairs[:, 0]] = 1.0
    steps = csgraph.shortest_path(near, unweighted=True)[0]
    for end in np.flatnonzero(np.isfinite(steps)).tolist():
        path = shortest_path(n, pairs, 0, end)
        assert (path[0], path[-1], len(path) - 1) == (0, end, steps[end])
        assert all(near[one, other] for one, other in pairwise(path))


@given(constrained_problems())
def test_a_clustering_is_found_wherever_there_is_one(problem) -> None:
    """The placement of bound items leaves room for all others."""
    (n, low, high), pairs = (len(problem.X), problem.low, problem.high), problem.cannot
    if not low.sum() <= n <= high.sum():
        return
    bound = np.unique(pairs)
    is_possible = np.isfinite(problem._replace(must=pairs[:0]).optimum())
    try:
        placed = find_clustering(contract(problem.X, None, np.arange(n)), bound, pairs, low, high)
    except InfeasibleError:
        assert not is_possible
        return
    assert is_possible
    labels = np.full(n, -1)
    labels[bound] = placed
    assert (labels[pairs[:, 0]] != labels[pairs[:, 1]]).all()
    taken = np.bincount(placed, minlength=len(low))
    assert (taken <= high).all()
    assert np.maximum(low - taken, 0).sum() <= n - len(bound) <= (high - taken).sum()


@given(constrained_problems())
def test_the_integer_program_places_at_the_least_cost(problem) -> None:
    """As an enumeration of all placements does."""
    n, k, free = len(problem.X), len(problem.low), problem._replace(must=problem.must[:0])
    costs = np.random.default_rng(n).random((n, k))
    limits = problem.low, problem.high
    labels = place_exactly(costs, problem.cannot, np.ones(n, np.int64), 0, *limits)
    kept = [one for one in all_labels(n, k) if free.heeds(one)]
    assert (labels is not None) == bool(kept)
    if kept:
        assert free.heeds(labels)
        totals = [costs[np.arange(n), one].sum() for one in [labels, *kept]]
        assert totals[0] == pytest.approx(min(totals))
