"""Six crossovers: what each takes from whom, by hand and for random parents."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import ArrayLike

from fakes import refinement
from lab.baselines.engines import create_engine
from lab.baselines.saga.crossovers import CROSSOVERS, Couple, pair_up
from lab.baselines.saga.evolution import Candidate, Evolution
from lab.baselines.saga.parameters import ParameterSet

HALVES = ["random multipoint", "centroid distance"]
PAIRWISE = ["multipoint pairwise", "one-point pairwise"]
TAKING = [*HALVES, "largest partitions", *PAIRWISE]


def couple_on(engine, first, second) -> Couple:
    """Bring two sets of centres together, over the samples of an engine."""
    search = Evolution(engine, np.random.default_rng(0), len(first), 2, 1, 2)
    solutions = [replace(refinement(1.0, 0), centers=centers) for centers in (first, second)]
    parameters = ParameterSet("PNN", 0.0, 0.0)
    couple = search.couple(*(Candidate(solution, parameters) for solution in solutions))
    return replace(couple, middle=np.zeros(first.shape[1]))


def couple_of(first: ArrayLike, second: ArrayLike, **known: ArrayLike) -> Couple:
    """Bring centres with one feature together; what is not known is not asked for."""

    def answer(name):
        def ask():
            assert name in known, f"{name} is not needed"
            return np.array(known[name], float)

        return ask

    return Couple(
        (np.array(first, float)[:, None], np.array(second, float)[:, None]),
        np.array([0.0]),
        answer("overlap"),
        answer("joint_weights"),
    )


@st.composite
def couples(draw, shared=None, smallest_k=1):
    """Two sets of centres, partly the same ones, over some samples, and uniform numbers."""
    k, d = draw(st.integers(smallest_k, 8)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.normal(size=(40, d))
    weights = rng.integers(1, 4, size=40).astype(float) if draw(st.booleans()) else None
    first, second = rng.normal(size=(2, k, d))
    places = rng.random(k) < (draw(st.floats(0.0, 1.0)) if shared is None else shared)
    second[places] = rng.permutation(first)[places]
    engine = create_engine("reference", X, weights)
    scale = engine.frame.scale
    return couple_on(engine, scale * first, scale * second), rng.random((2, k))


def multiset(centers) -> Counter:
    return Counter(map(tuple, centers.tolist()))


# ---- all of them -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CROSSOVERS)
@given(case=couples())
def test_children_have_as_many_centres_and_repeat_themselves(name, case) -> None:
    """The same couple and numbers give the same child; the parents are left as they were."""
    couple, uniforms = case
    before = couple.parents[0].copy(), couple.parents[1].copy(), uniforms.copy()
    child, nearer = CROSSOVERS[name](couple, uniforms)
    assert child.shape == couple.parents[0].shape
    assert np.isfinite(child).all()
    again, _ = CROSSOVERS[name](couple, uniforms)
    assert_array_equal(again, child)
    child += 1.0
    assert_array_equal(couple.parents[0], before[0])
    assert_array_equal(couple.parents[1], before[1])
    assert_array_equal(uniforms, before[2])
    assert nearer in (0, 1)


@pytest.mark.parametrize("name", TAKING)
@given(case=couples())
def test_children_consist_of_centres_of_their_parents(name, case) -> None:
    """Each is one of theirs, taken no more often than they have it."""
    couple, uniforms = case
    child, _ = CROSSOVERS[name](couple, uniforms)
    assert multiset(child) <= multiset(couple.parents[0]) + multiset(couple.parents[1])


@pytest.mark.parametrize("name", TAKING)
@given(case=couples())
def test_at_least_half_of_the_centres_stand_where_they_stood(name, case) -> None:
    """In the parent that is named, whose memory is then worth something."""
    couple, uniforms = case
    child, nearer = CROSSOVERS[name](couple, uniforms)
    in_place = (child == couple.parents[nearer]).all(axis=1)
    assert 2 * np.count_nonzero(in_place) >= len(child)


@pytest.mark.parametrize("name", [*HALVES, *PAIRWISE, "PNN"])
@given(case=couples(shared=1.0))
def test_a_child_of_equals_is_one_of_them(name, case) -> None:
    """In whatever order they come: nothing is taken twice, and nothing lost."""
    couple, uniforms = case
    weights = couple.joint_weights()
    if name == "PNN" and not (weights[0] > 0).all():
        return  # a centre that no sample chooses may be replaced by its own double
    child, _ = CROSSOVERS[name](couple, uniforms)
    if len(np.unique(couple.parents[1], axis=0)) == len(child):
        assert multiset(child) == multiset(couple.parents[0])


# ---- one by one ------------------------------------------------------------------------------


def test_random_multipoint_takes_a_random_half_of_either() -> None:
    """The lowest numbers win: positions 1, 3, 4 of the first stay, 0 and 2 get the second's."""
    couple = couple_of([1, 2, 3, 4, 5], [10, 20, 30, 40, 50])
    uniforms = np.array([[0.8, 0.1, 0.9, 0.2, 0.3], [0.5, 0.9, 0.1, 0.6, 0.7]])
    child, nearer = CROSSOVERS["random multipoint"](couple, uniforms)
    assert nearer == 0
    assert child.ravel().tolist() == [30, 2, 10, 4, 5]


def test_random_multipoint_takes_nothing_twice() -> None:
    """The second's 2 would be next, but the child has it."""
    couple = couple_of([1, 2, 3, 4, 5], [10, 20, 2, 40, 50])
    uniforms = np.array([[0.8, 0.1, 0.9, 0.2, 0.3], [0.5, 0.9, 0.1, 0.6, 0.7]])
    child, _ = CROSSOVERS["random multipoint"](couple, uniforms)
    assert child.ravel().tolist() == [10, 2, 40, 4, 5]


@pytest.mark.parametrize(
    ("coin", "outer", "expected"),
    [(0.5, 0, [10, 6, 7, -8, -11]), (0.4, 1, [20, -30, -1, 2, 40])],
    ids=["first outside", "second outside"],
)
def test_centroid_distance_takes_the_near_of_one_and_the_far_of_the_other(
    coin, outer, expected
) -> None:
    """Two of five are near, to the mean of all, which is 0; three are far."""
    couple = couple_of([-1, 6, 7, -8, 2], [20, -30, 10, -11, 40])
    child, nearer = CROSSOVERS["centroid distance"](couple, np.full((2, 5), coin))
    assert nearer == outer
    assert child.ravel().tolist() == expected


def test_centroid_distance_takes_nothing_twice() -> None:
    """The second's nearest are 6, which the child has, 7, which it has, 9 and 10."""
    couple = couple_of([-1, 6, 7, -8, 2], [6, 7, 9, 10, 40])
    child, _ = CROSSOVERS["centroid distance"](couple, np.full((2, 5), 0.5))
    assert child.ravel().tolist() == [9, 6, 7, -8, 10]


def test_largest_partitions_takes_the_largest_cluster_that_is_left() -> None:
    """Samples of what has been taken no longer count in the other parent's clusters."""
    couple = couple_of(
        [1, 2, 3], [10, 20, 30], overlap=[[9, 1, 0], [0, 6, 0], [0, 2, 4]], joint_weights=[]
    )
    # Sizes: first 10, 6, 6; second 9, 9, 4. After first's 0: 6, 6 and 0, 8, 4.
    # After second's 1: 0, 4 and 0, 4; on ties the first parent's goes.
    child, nearer = CROSSOVERS["largest partitions"](couple, np.zeros((2, 3)))
    assert nearer == 0
    assert child.ravel().tolist() == [1, 20, 3]


def test_largest_partitions_of_equals_is_the_same_again() -> None:
    """What the other parent has as well counts no longer, whatever its number there is."""
    overlaps = np.diag([5.0, 1.0, 3.0])[:, [2, 0, 1]]
    couple = couple_of([1, 2, 3], [2, 3, 1], overlap=overlaps, joint_weights=[])
    child, nearer = CROSSOVERS["largest partitions"](couple, np.zeros((2, 3)))
    assert nearer == 0
    assert child.ravel().tolist() == [1, 2, 3]


def test_largest_partitions_may_take_most_from_the_second() -> None:
    """Then the child stands at the second's positions."""
    overlaps = [[5, 0, 0], [4, 3, 0], [0, 5, 1]]
    couple = couple_of([1, 2, 3], [10, 20, 30], overlap=overlaps, joint_weights=[])
    # Sizes: first 5, 7, 6; second 9, 8, 1. After second's 0: 0, 3, 6; after its 1: 0, 0, 1.
    child, nearer = CROSSOVERS["largest partitions"](couple, np.zeros((2, 3)))
    assert nearer == 1
    assert child.ravel().tolist() == [10, 20, 3]


def test_pairs_are_made_in_turn_with_the_nearest_that_is_free() -> None:
    """0 takes 1; 2, which is nearer to it, has to go with −9; 10 with 30."""
    partner = pair_up(np.array([[0.0], [2.0], [10.0]]), np.array([[30.0], [1.0], [-9.0]]))
    assert partner.tolist() == [1, 2, 0]


def test_multipoint_pairwise_takes_one_of_each_pair() -> None:
    """The second's where the coin is below one half."""
    couple = couple_of([1, 2, 3, 4], [4.1, 2.1, 1.1, 3.1])
    cross = CROSSOVERS["multipoint pairwise"]
    child, nearer = cross(couple, np.array([[0.4, 0.5, 0.9, 0.1], [0.0] * 4]))
    assert (nearer, child.ravel().tolist()) == (0, [1.1, 2, 3, 4.1])
    child, nearer = cross(couple, np.array([[0.4, 0.5, 0.3, 0.1], [0.0] * 4]))
    assert (nearer, child.ravel().tolist()) == (1, [4.1, 2, 1.1, 3.1])


@pytest.mark.parametrize(
    ("uniform", "expected"),
    [(0.0, {1, 2.1, 3.1, 4.1}), (0.5, {1, 2, 3.1, 4.1}), (0.99, {1, 2, 3, 4.1})],
)
def test_one_point_pairwise_changes_the_parent_at_a_random_point(uniform, expected) -> None:
    """Both give at least one centre; all points in between are as likely."""
    couple = couple_of([1, 2, 3, 4], [4.1, 2.1, 1.1, 3.1])
    child, _ = CROSSOVERS["one-point pairwise"](couple, np.full((2, 4), uniform))
    assert set(child.ravel().tolist()) == expected


def test_pnn_merges_by_the_weights_that_the_samples_give() -> None:
    """0 and 1 become 0.25, 10 and 12 become 11; no sample chooses the first's 9."""
    couple = couple_of([9, 0, 10], [1, 12, 40], joint_weights=[[0, 3, 2], [1, 2, 1]], overlap=[])
    child, nearer = CROSSOVERS["PNN"](couple, np.zeros((2, 3)))
    assert nearer == 0
    assert child.ravel().tolist() == [40, 0.25, 11]


@given(case=couples(smallest_k=2))
def test_pnn_weights_are_those_of_the_nearest_of_all_centres(case) -> None:
    """And no sample is lost."""
    couple, _ = case
    shared, joint = couple.overlap(), couple.joint_weights()
    assert joint.shape == (2, len(couple.parents[0]))
    assert shared.sum() == joint.sum()
    # A centre attracts fewer samples among more others.
    assert (joint[0] <= shared.sum(axis=1)).all()
    assert (joint[1] <= shared.sum(axis=0)).all()
