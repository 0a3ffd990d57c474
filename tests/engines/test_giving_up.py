"""Refinements that are given up: when, the same on every engine, and never by mistake."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from evomeans.engines import Engine, Order, create_engine
from evomeans.engines.course import EARLIEST, AbandonRule
from evomeans.engines.protocol import LocalSearch, Refinement
from oracles import assert_same_bits
from problems import MOMENTUM, Problem, overlapping, with_momentum


def explained(result: Refinement) -> float:
    return float(result.cluster_weights @ np.sum(result.centers**2, axis=1))


def started(engine: Engine, X, weights=None) -> Order:
    (start,) = Problem(X, weights, 6, "samples", 0).starts(engine)
    return replace(start, local_search=MOMENTUM)


def test_what_centres_explain_and_the_inertia_make_a_constant(weighted) -> None:
    """Whatever the number of clusters."""
    X, weights = overlapping(300, 7, weighted)
    engine = create_engine("reference", X, weights)
    solutions = [Problem(X, weights, k, "samples", 0).starts(engine)[0] for k in (2, 9)]
    totals = [
        explained(one) + engine.frame.inertia_in_frame(one.inertia)
        for one in engine.refine(solutions)
    ]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_one_that_is_deep_enough_is_never_given_up(engine_name, weighted) -> None:
    """Its bits are those of one that need not get anywhere."""
    X, weights = overlapping(900, 0, weighted)
    engine = with_momentum(engine_name, X, weights)
    start = started(engine, X, weights)
    (free,) = engine.refine([start])
    (bound,) = engine.refine([replace(start, least_explained=0.5 * explained(free))])
    assert not bound.is_given_up
    assert_same_bits(bound, free)


def test_a_hopeless_one_is_given_up_after_as_many_steps_on_every_engine(engine_name) -> None:
    """And takes none of the others of its batch with it."""
    X, _ = overlapping(900, 0)
    engine, reference = with_momentum(engine_name, X), create_engine("reference", X, None)
    start = started(engine, X)
    hopeless = replace(start, least_explained=2.0 * explained(engine.refine([start])[0]))
    ended, given_up = engine.refine([start, hopeless])
    assert not ended.is_given_up
    assert given_up.is_given_up
    assert math.isinf(given_up.inertia)
    assert given_up.n_iter == reference.refine([hopeless])[0].n_iter < ended.n_iter


@pytest.mark.usefixtures("_compiled_kernels")
def test_swaps_and_plain_k_means_go_on() -> None:
    X, _ = overlapping(500, 1)
    engine = create_engine("cpu", X, None)
    start = replace(started(engine, X), least_explained=1e300)
    for local_search in (LocalSearch(), LocalSearch(momentum=True, swaps=2)):
        (result,) = engine.refine([replace(start, local_search=local_search)])
        assert not result.is_given_up


# ---- the rule itself -------------------------------------------------------------------------


def judged(values: list[float], least: float) -> list[bool]:
    """Return what is said of one centre whose clusters explain these values."""
    rule, one = AbandonRule(least), np.ones(1)
    # With the centre at 1 and the mean at m, 2m − 1 is explained.
    return [rule.is_hopeless(one[:, None], np.full((1, 1), (v + 1) / 2), one) for v in values]


def test_nothing_is_said_in_the_beginning() -> None:
    assert judged([1.0] * EARLIEST, 2.0) == [False] * (EARLIEST - 1) + [True]


def test_as_long_as_it_gains_much_there_is_hope() -> None:
    """After ten steps of one each, the last five have gained five, and may twice do so again."""
    gains = [1.0 + step for step in range(20)]
    assert not any(judged(gains, 20.0))
    assert judged(gains, 20.5)[EARLIEST - 1]


def test_a_step_uphill_is_no_gain() -> None:
    values = [5.0] * (EARLIEST - 1) + [4.0]
    assert not judged(values, 4.0)[-1]
    assert judged(values, 4.5)[-1]
