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
    Problem,
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


def are_within(labels, low, high):
    """Whether clusters have sizes within their limits."""
    sizes = np.bincount(labels, minlength=len(low))
    return bool(((sizes >= low) & (sizes <= high)).all())


def unsolved(costs, low, high):
    """Return the problem of all samples, and where its transport begins."""
    n, k = costs.shape
    problem = Problem(costs, np.arange(n), low, np.minimum(high, n), np.full(n, -1))
    return problem, Flow.allocate(Heaps.allocate(n, k))


@given(problems(), st.integers(0, 10**6))
def test_no_assignment_within_the_limits_is_cheaper(problem, seed):
    """The cost is that of the linear program, also with the prices of similar costs."""
    costs, low, high = problem
    given, flow = unsolved(*problem)
    near = costs + 0.1 * np.random.default_rng(seed).random(costs.shape)
    assert transport(given._replace(costs=near), flow)
    assert transport(given, flow)
    for labels in (given.labels, assign_within(*problem)):
        assert are_within(labels, low, high)
        assert costs[given.items, labels].sum() == pytest.approx(least_cost(*problem))


@given(problems())
def test_without_time_samples_are_within_the_limits_as_well(problem):
    """One after the other; where nothing limits them, at the least cost."""
    costs, low, high = problem
    (n, k), (given, _) = costs.shape, unsolved(costs, low.copy(), high)
    fill_soon(given)
    assert are_within(given.labels, low, high)
    fill_soon(given._replace(low=np.zeros(k, np.int64), high=np.full(k, n)))
    assert_array_equal(given.labels, costs.argmin(axis=1))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_heaps_give_the_smallest_key_whatever_is_removed(keys, random):
    """Nodes are removed in any order, also from the middle."""
    heaps = Heaps.allocate(len(keys), 1)
    heaps.root[0, 0] = -1
    for node, key in enumerate(keys):
        insert(heaps, 0, 0, node, float(key))
    left = set(range(len(keys)))
    while left:
        assert heaps.least[0, 0] == min(keys[node] for node in left)
        node = random.choice(sorted(left))
        remove(heaps, 0, 0, node)
        left.remove(node)
    assert heaps.root[0, 0] == -1


def test_samples_that_are_not_assigned_keep_their_labels():
    """Only listed samples move, and only they count."""
    costs = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    labels = np.array([7, 7, 7])
    problem = Problem(costs, np.array([0, 2]), np.array([1, 1]), np.array([1, 1]), labels)
    assert transport(problem, Flow.allocate(Heaps.allocate(2, 2)))
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
    problem, flow = unsolved(rng.random((n, k)), low, high)
    found = transport(problem._replace(high=high), flow)
    assert found == (low.sum() <= n <= high.sum())
    assert not found or are_within(problem.labels, low, high)
