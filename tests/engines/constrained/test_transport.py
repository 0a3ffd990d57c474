"""The transport of samples within size limits is as cheap as a linear program says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.optimize import linear_sum_assignment, linprog

from evomeans.engines.constrained.transport import (
    Flow,
    Heaps,
    assign_within,
    fill_soon,
    insert,
    remove,
    transport,
)


@st.composite
def problems(draw):
    """Costs and limits that leave an assignment."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, k = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    costs = rng.random((n, k))
    if draw(st.booleans()):
        # Many ties.
        costs = np.round(costs * 3)
    sizes = rng.multinomial(n, rng.dirichlet(np.ones(k)))
    slack = draw(st.integers(0, 4))
    low = np.maximum(sizes - rng.integers(0, slack + 1, k), 0)
    return costs, low, sizes + rng.integers(0, slack + 1, k)


def least_cost(costs, low, high):
    """Return the optimum of the transport problem as a linear program."""
    n, k = costs.shape
    once, sizes = np.kron(np.eye(n), np.ones(k)), np.kron(np.ones(n), np.eye(k))
    result = linprog(
        costs.ravel(),
        A_ub=np.vstack([sizes, -sizes]),
        b_ub=np.concatenate([high, -low]),
        A_eq=once,
        b_eq=np.ones(n),
        bounds=(0, 1),
    )
    return result.fun


@given(problems())
def test_no_assignment_within_the_limits_is_cheaper(problem):
    """Sizes are within their limits, and the cost is that of the linear program."""
    costs, low, high = problem
    labels = assign_within(costs, low, high)
    sizes = np.bincount(labels, minlength=len(low))
    assert (sizes >= low).all()
    assert (sizes <= high).all()
    assert costs[np.arange(len(costs)), labels].sum() == pytest.approx(least_cost(*problem))


@given(problems(), st.integers(0, 10**6))
def test_prices_of_another_problem_change_nothing_but_the_work(problem, seed):
    """A transport that begins with the prices of similar costs ends at the same cost."""
    costs, low, high = problem
    (n, k), items = costs.shape, np.arange(len(costs))
    near = costs + 0.1 * np.random.default_rng(seed).random((n, k))
    flow, heaps, labels = Flow.allocate(k), Heaps.allocate(n, k), np.empty(n, np.int64)
    assert transport(near, items, low, np.minimum(high, n), labels, flow, heaps)
    assert transport(costs, items, low, np.minimum(high, n), labels, flow, heaps)
    sizes = np.bincount(labels, minlength=k)
    assert ((sizes >= low) & (sizes <= high)).all()
    assert costs[items, labels].sum() == pytest.approx(least_cost(*problem))


@given(problems())
def test_without_time_samples_are_within_the_limits_as_well(problem):
    """One after the other; where nothing limits them, at the least cost."""
    costs, low, high = problem
    n, k = costs.shape
    labels = np.full(n, -1)
    fill_soon(costs, np.arange(n), low.copy(), high.copy(), labels)
    sizes = np.bincount(labels, minlength=k)
    assert ((sizes >= low) & (sizes <= high)).all()
    fill_soon(costs, np.arange(n), np.zeros(k, np.int64), np.full(k, n), labels)
    assert_array_equal(labels, costs.argmin(axis=1))


def test_impossible_limits_are_reported():
    """There is room for three of four samples."""
    flow, heaps, labels = Flow.allocate(2), Heaps.allocate(4, 2), np.empty(4, np.int64)
    low, high = np.zeros(2, np.int64), np.array([1, 2])
    assert not transport(np.ones((4, 2)), np.arange(4), low, high, labels, flow, heaps)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_heaps_give_the_smallest_key_whatever_is_removed(keys, random):
    """Nodes are removed in any order, also from the middle."""
    heaps = Heaps.allocate(len(keys), 1)
    heaps.root[0, 0] = -1
    for node, key in enumerate(keys):
        insert(heaps, 0, 0, node, float(key))
    left = set(range(len(keys)))
    while left:
        assert heaps.key[heaps.root[0, 0]] == min(keys[node] for node in left)
        node = random.choice(sorted(left))
        remove(heaps, 0, 0, node)
        left.remove(node)
    assert heaps.root[0, 0] == -1


def test_samples_that_are_not_assigned_keep_their_labels():
    """Only listed samples move, and only they count."""
    costs = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    labels = np.array([7, 7, 7])
    flow, heaps = Flow.allocate(2), Heaps.allocate(2, 2)
    limits = np.array([1, 1]), np.array([1, 1])
    assert transport(costs, np.array([0, 2]), *limits, labels, flow, heaps)
    assert labels[1] == 7
    assert_array_equal(np.sort(labels[[0, 2]]), [0, 1])


@given(st.integers(1, 7), st.integers(0, 10**6), st.booleans())
def test_clusters_of_one_sample_are_an_assignment_problem(n, seed, ties):
    """With room for one sample each, it is what scipy's solver for assignments finds."""
    rng = np.random.default_rng(seed)
    costs = rng.random((n, n + int(rng.integers(3))))
    costs = np.round(3.0 * costs) if ties else costs
    k = costs.shape[1]
    labels = assign_within(costs, np.zeros(k, np.int64), np.ones(k, np.int64))
    assert len(set(labels.tolist())) == n
    best = costs[linear_sum_assignment(costs)].sum()
    assert costs[np.arange(n), labels].sum() == pytest.approx(best)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 10**6))
def test_a_transport_is_possible_exactly_if_the_limits_allow_it(n, k, seed):
    """Σ low ≤ n ≤ Σ high; otherwise it says so, and ends."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 3, k)
    high = low + rng.integers(0, 3, k)
    flow, heaps, labels = Flow.allocate(k), Heaps.allocate(n, k), np.full(n, -1)
    found = transport(rng.random((n, k)), np.arange(n), low, high, labels, flow, heaps)
    assert found == (low.sum() <= n <= high.sum())
    if found:
        sizes = np.bincount(labels, minlength=k)
        assert ((sizes >= low) & (sizes <= high)).all()
