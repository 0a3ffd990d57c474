"""K-means that stops after a few steps: where it stands is told truly, and can be gone on from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.protocol import LocalSearch
from limits import time_limit
from oracles import (
    assert_nearest,
    assert_same_bits,
    assert_same_solution,
    assert_true_state,
    in_frame,
    squared_distances,
)
from problems import made, offspring, paired, problems, with_search, without_shrinking


def steps_of(count: int | None) -> LocalSearch:
    return LocalSearch(max_iter=count)


def stepped(samples, weights, centers, steps: int):
    """Lloyd's iterations in the plainest words: centres, inertia and weights of their clusters."""
    centers = centers.copy()
    for _ in range(steps):
        labels = squared_distances(samples, centers).argmin(axis=1)
        for j in range(len(centers)):
            if weights[labels == j].sum() > 0.0:
                centers[j] = np.average(samples[labels == j], axis=0, weights=weights[labels == j])
    squares = squared_distances(samples, centers)
    totals = np.bincount(squares.argmin(axis=1), weights, len(centers))
    return centers, float(weights @ squares.min(axis=1)), totals


@paired
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize(("n", "d"), [(60, 2), (700, 5)])
def test_so_many_steps_are_made(rival_engine_name, dtype, weighted, n, d, steps) -> None:
    """Each a move to the means and an assignment; the inertia is that of the centres returned."""
    problem = made(n, d, 6, dtype=dtype, weighted=weighted, seed=n)
    # Nearly equal, so that no two centres begin at the same row.
    weights = np.random.default_rng(n).uniform(0.9, 1.1, n) if weighted else None
    problem = replace(problem, weights=weights)
    engine = problem.engine(rival_engine_name)
    samples = in_frame(engine.frame, problem.X)
    for start in problem.starts(engine, 3):
        (result,) = engine.refine(with_search([start], steps_of(steps)))
        centers, inertia, totals = stepped(samples, problem.w, start.centers, steps)
        assert totals.all()
        assert_allclose(result.centers, centers, rtol=0.0, atol=1e-12)
        assert_allclose(result.cluster_weights, totals, rtol=1e-12)
        assert result.inertia == pytest.approx(engine.frame.inertia_in_data_units(inertia))
        assert result.n_iter <= steps + 1


@paired
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_what_it_says_is_true_of_all_kinds_of_samples(
    rival_engine_name, dtype, weighted, data
) -> None:
    """Inertia and weights are those of the nearest labels; clusters are empty only if they must."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(5):
        engine = problem.engine(rival_engine_name)
        steps = steps_of(data.draw(st.integers(0, 3)))
        (result,) = engine.refine(with_search(problem.starts(engine), steps))
    samples = in_frame(engine.frame, problem.X)
    labels, inertia = engine.assign(result.centers)
    assert_nearest(samples, result.centers, labels)
    assert result.inertia == pytest.approx(inertia, rel=1e-12)
    assert_allclose(result.cluster_weights, np.bincount(labels, problem.w, problem.k), rtol=1e-12)
    if len(np.unique(samples[problem.w > 0] + 0.0, axis=0)) >= problem.k:
        assert (result.cluster_weights > 0).all()


@paired
def test_steps_enough_lead_to_the_fixed_point(rival_engine_name, dtype, weighted) -> None:
    """And the start in between can be left out."""
    problem = made(400, 3, 7, kind="blobs", dtype=dtype, weighted=weighted, seed=1)
    engine = problem.engine(rival_engine_name)
    (start,) = problem.starts(engine)
    fixed, bounded, halfway = (
        engine.refine(with_search([start], steps_of(steps)))[0] for steps in (None, 1000, 2)
    )
    assert_same_bits(bounded, fixed)
    (rest,) = engine.refine([replace(start, centers=halfway.centers, parent=halfway.handle)])
    assert_same_solution(rest, fixed)
    assert halfway.inertia > rest.inertia


@paired
def test_offspring_of_solutions_halfway(rival_engine_name, dtype, weighted) -> None:
    """With their parent's handle the same bits as without, and the reference's solution."""
    problem = made(900, 4, 8, dtype=dtype, weighted=weighted, seed=2)
    engine, reference = problem.engine(rival_engine_name), problem.engine("reference")
    rng = np.random.default_rng(2)
    mother, father = engine.refine(with_search(problem.starts(engine, 2), steps_of(1)))
    for number in range(12):
        start = offspring(mother, father, rng, local_search=steps_of(number % 4))
        (child,), (expected,) = engine.refine([start]), reference.refine([start])
        assert_same_solution(child, expected)
        assert_same_bits(child, engine.refine([replace(start, parent=None)])[0])
        whole = replace(start, local_search=steps_of(None))
        assert_same_bits(*(engine.refine([s])[0] for s in (whole, replace(whole, parent=None))))
        mother, father = child, mother


@paired
@pytest.mark.parametrize("sparse", [False, True])
def test_the_state_that_is_kept_is_true(dtype, weighted, sparse) -> None:
    """Labels, gaps and spread with respect to the centres returned, not to their clusters'."""
    problem, rng = made(500, 6, 6, dtype=dtype, weighted=weighted), np.random.default_rng(3)
    X = (problem.X * (rng.random((500, 6)) < 0.5)).astype(dtype)
    engine = CpuEngine(sp.csr_matrix(X) if sparse else X, problem.weights)
    mother, father = engine.refine(problem.starts(engine, 2))
    for steps in (0, 1, 2, 3):
        (child,) = engine.refine([offspring(mother, father, rng, local_search=steps_of(steps))])
        assert_array_equal(child.handle.solution.centers, child.centers)
        assert_true_state(engine, X, child.handle.solution.state, child.centers)
        mother = child
