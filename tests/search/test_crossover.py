"""Crossovers, and the division of clusters that takes the place of relocation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from evomeans.engines.base import PlainKMeans
from evomeans.engines.reference import ReferenceEngine
from evomeans.kernels import matching
from evomeans.metrics import centroid_index
from evomeans.search import DEEP, Crossing, SearchSettings, solve
from evomeans.search.crossover import (
    DRAWN_TO_DIVIDE,
    HALF_STEP,
    Breeding,
    Child,
    divide,
    matching_crossover,
    merging_crossover,
    partition_crossover,
    squared_matching_crossover,
    squares_between,
)
from evomeans.search.population import Individual
from fakes import ScriptedEngine
from oracles import cheapest_matching, squared_distances

coordinates = st.one_of(
    st.integers(-3, 3).map(float),  # duplicates and ties
    st.floats(-1.0, 1.0, allow_subnormal=False),
)


@st.composite
def parents(draw, max_k: int = 6):
    """Two sets of k ≤ 6 centres, the second partly the first's, and a coin for each pair."""
    k, d = draw(st.integers(1, max_k)), draw(st.integers(1, 3))
    first = draw(arrays(float, (k, d), elements=coordinates))
    second = draw(arrays(float, (k, d), elements=coordinates))
    for i in range(k):
        if draw(st.booleans()):
            second[draw(st.integers(0, k - 1))] = first[i]
    coins = draw(arrays(float, k, elements=st.sampled_from([0.0, 0.3, 0.5, 0.9])))
    return first, second, coins


# Merges like most engines, and does nothing else.
MERGING = ScriptedEngine([])
both_costs = pytest.mark.parametrize("squared", [False, True], ids=["distance", "squares"])


def individual(centers, weights=None) -> Individual:
    """Return a solution with these centres; its clusters weigh 1, 2, 3 and so on."""
    weights = np.arange(1.0, len(centers) + 1.0) if weights is None else np.array(weights)
    return Individual(np.array(centers, dtype=float), 1.0, weights, 0.5)


def breeding(coins=(), engine=MERGING) -> Breeding:
    """Return what crossovers may use; those tested here draw no further numbers."""
    return Breeding(engine, np.asarray(coins, dtype=float), 0.5)


def cross(first, second, coins, *, squared=False):
    """Centres of the child, and whether it stands at the positions of the second parent."""
    mother, father = individual(first), individual(second)
    crossover = squared_matching_crossover if squared else matching_crossover
    child = crossover(mother, father, breeding(coins))
    assert child.parent is mother or child.parent is father
    return child.centers, int(child.parent is father)


def match(first, second, *, squared):
    """Return the partners in the second of all centres of the first, and which are equal."""
    arrays = matching.MatchingArrays.allocate(len(first))
    matching.match(first, second, squared, arrays)
    return arrays.partner, arrays.is_shared


def as_multiset(centers) -> list[tuple[float, ...]]:
    return sorted(map(tuple, (np.asarray(centers) + 0.0).tolist()))


def has_twins(centers) -> bool:
    return len(np.unique(centers + 0.0, axis=0)) < len(centers)


def total_cost(first, second, squared) -> float:
    """Return what pairs of rows cost together."""
    squares = ((first - second) ** 2).sum(axis=1)
    return float((squares if squared else np.sqrt(squares)).sum())


@both_costs
@given(parents())
def test_what_is_not_shared_is_matched_at_the_lowest_total(squared, case) -> None:
    first, second, _ = case
    partner, shared = match(first, second, squared=squared)
    assert_array_equal(np.sort(partner), np.arange(len(first)))
    rest = first[~shared], second[partner[~shared]]
    assert total_cost(*rest, squared) <= cheapest_matching(*rest, squared=squared)[0] + 1e-12


@given(parents())
def test_the_whole_matching_by_distance_is_that_of_the_paper(case) -> None:
    """Pairing shared centres first costs nothing: by the triangle inequality, some optimum does."""
    first, second, _ = case
    partner, _ = match(first, second, squared=False)
    lowest, _ = cheapest_matching(first, second, squared=False)
    assert total_cost(first, second[partner], squared=False) <= lowest + 1e-12


EQUAL_SUMS = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]])


@both_costs
@given(parents())
@example((EQUAL_SUMS, EQUAL_SUMS[[1, 2, 0]], np.zeros(3)))
def test_centres_of_both_parents_are_paired_with_each_other(squared, case) -> None:
    """All of them; of twins, as many as both have."""
    first, second, _ = case
    partner, shared = match(first, second, squared=squared)
    assert_array_equal(second[partner[shared]], first[shared])
    common = Counter(as_multiset(first)) & Counter(as_multiset(second))
    assert np.count_nonzero(shared) == common.total()


def test_distances_and_squares_can_ask_for_different_pairs() -> None:
    """Straight costs 25.0 in squares, crossed 25.8; in distances 7.00 and 5.18."""
    first = np.array([[0.0, 0.0], [4.0, 0.0]])
    second = np.array([[4.0, 0.1], [4.1, 3.0]])
    distances = np.sqrt(squared_distances(first, second))
    assert distances.trace() > distances[:, ::-1].trace()
    assert_array_equal(match(first, second, squared=True)[0], [0, 1])
    assert_array_equal(match(first, second, squared=False)[0], [1, 0])


@both_costs
@given(parents())
def test_the_child_takes_one_centre_of_every_pair(squared, case) -> None:
    """The second parent's where the coin is below one half, the first parent's elsewhere."""
    first, second, coins = case
    child, _ = cross(first, second, coins, squared=squared)
    partner, _ = match(first, second, squared=squared)
    expected = [second[partner[i]] if coins[i] < 0.5 else first[i] for i in range(len(first))]
    assert as_multiset(child) == as_multiset(expected)


@given(parents())
def test_the_child_stands_at_the_positions_of_the_parent_that_gave_more(case) -> None:
    """What it gave, at least half of what differs, is at its own place."""
    first, second, coins = case
    child, nearer = cross(first, second, coins)
    partner, _ = match(first, second, squared=False)
    from_second = coins < 0.5
    if nearer == 0:
        positions, chosen, named = np.arange(len(first)), ~from_second, first
    else:
        positions, chosen, named = partner, from_second, second
    assert_array_equal(child[positions[chosen]], named[positions[chosen]])
    differs = (first != second[partner]).any(axis=1)
    assert 2 * np.count_nonzero(chosen & differs) >= np.count_nonzero(differs)


@given(parents(), st.randoms(use_true_random=False))
# Equal centres whose distance by the expanded form is not zero, 1e-9 away from each other.
@example((np.array([[0.6, 0.7], [0.6 + 1e-9, 0.7]]), np.zeros((2, 2)), np.array([0.0, 0.9])), None)
def test_identical_parents_give_the_same_set(case, shuffler) -> None:
    """Whatever the coins and the numbering: equal centres are paired with each other."""
    first, _, coins = case
    order = list(range(len(first)))[::-1]
    if shuffler is not None:
        shuffler.shuffle(order)
    child, _ = cross(first, first[order], coins)
    assert as_multiset(child) == as_multiset(first)


@given(parents(max_k=5), st.randoms(use_true_random=False))
def test_the_child_does_not_depend_on_how_the_parents_are_numbered(case, shuffler) -> None:
    """Section 3.2: the same centres come out, provided that the best matching is unique."""
    first, second, coins = case
    assume(not has_twins(first) and not has_twins(second))
    partner, shared = match(first, second, squared=False)
    rest = first[~shared], second[partner[~shared]]
    lowest, next_lowest = cheapest_matching(*rest, squared=False)
    assume(next_lowest > lowest + 1e-6)
    order = list(range(len(first)))
    shuffler.shuffle(order)
    expected = as_multiset(cross(first, second, coins)[0])
    renumbered, _ = cross(first, second[order], coins)
    assert as_multiset(renumbered) == expected
    renumbered, _ = cross(first[order], second, coins[order])
    assert as_multiset(renumbered) == expected


def test_parents_are_not_modified() -> None:
    rng = np.random.default_rng(1)
    first, second = map(individual, rng.normal(size=(2, 5, 2)))
    before = [(one.centers.copy(), one.cluster_weights.copy()) for one in (first, second)]
    children = [
        matching_crossover(first, second, breeding(c)) for c in (np.zeros(5), rng.random(5))
    ]
    children += [put_together(first, second, gone, gone) for gone in np.tri(5, 5, -1)[[1, 4]]]
    for child in [*children, merging_crossover(first, second, breeding())]:
        child.centers[:] += 1.0
    for one, (centers, weights) in zip((first, second), before, strict=True):
        assert_array_equal(one.centers, centers)
        assert_array_equal(one.cluster_weights, weights)


# ---- partition -------------------------------------------------------------------------------


def put_together(first: Individual, second: Individual, gone, taken):
    """Cross over by partition, with an engine that finds these centres to be exchanged."""
    found = np.array(gone, dtype=bool), np.array(taken, dtype=bool)
    engine = ScriptedEngine([], parts=lambda *_: found)
    return partition_crossover(first, second, breeding(engine=engine))


@st.composite
def exchanges(draw):
    """Two parents, and as many centres that go as are taken, in any places."""
    first, second, _ = draw(parents(max_k=8))
    k = len(first)
    count = draw(st.integers(0, k))
    places = [draw(st.permutations(range(k)))[:count] for _ in range(2)]
    gone, taken = (np.isin(np.arange(k), own) for own in places)
    return individual(first), individual(second, 100.0 + np.arange(k)), gone, taken


@given(exchanges())
def test_partition_takes_what_the_engine_says_and_relocates_nothing(case) -> None:
    first, second, gone, taken = case
    child = put_together(first, second, gone, taken)
    expected = np.concatenate([first.centers[~gone], second.centers[taken]])
    assert as_multiset(child.centers) == as_multiset(expected)
    assert child.is_complete


@given(exchanges())
def test_the_child_of_partition_stands_where_the_parent_stood_that_gave_most(case) -> None:
    """Its centres at their own positions; the first parent, if both gave as many."""
    first, second, gone, taken = case
    child = put_together(first, second, gone, taken)
    if 2 * np.count_nonzero(taken) > len(taken):
        parent, own = second, taken
    else:
        parent, own = first, ~gone
    assert 2 * np.count_nonzero(own) >= len(own)
    assert child.parent is parent
    assert_array_equal(child.centers[own], parent.centers[own])


def test_what_partition_takes_fills_the_places_that_others_leave() -> None:
    """By hand, with either parent as the one that gave most, and with both as even."""
    first = individual([[0.0], [1.0], [2.0], [3.0]])
    second = individual([[10.0], [11.0], [12.0], [13.0]])
    for gone, taken, centers, parent in (
        ([0, 1, 0, 0], [0, 0, 0, 1], [0.0, 13.0, 2.0, 3.0], first),
        ([1, 1, 0, 0], [0, 1, 0, 1], [11.0, 13.0, 2.0, 3.0], first),
        ([1, 1, 0, 1], [1, 0, 1, 1], [10.0, 2.0, 12.0, 13.0], second),
    ):
        child = put_together(first, second, gone, taken)
        assert child.centers[:, 0].tolist() == centers
        assert child.parent is parent


def test_partition_gives_the_engine_the_handles_of_both_parents() -> None:
    """And has no child if the engine finds no gain."""
    seen = []
    engine = ScriptedEngine([], parts=lambda *centers: seen.append(centers))
    first, second = (
        Individual(np.full((2, 1), value), 1.0, np.ones(2), 0.5, handle)
        for value, handle in ((1.0, "one"), (2.0, "two"))
    )
    assert partition_crossover(first, second, breeding(engine=engine)) is None
    assert engine.compared == [("one", "two")]
    assert_array_equal(seen, [[first.centers, second.centers]])


# ---- merging ---------------------------------------------------------------------------------


def test_merging_keeps_what_both_agree_on_and_what_one_has_more() -> None:
    """One parent splits the left cloud, the other the right: the child splits the right one."""
    first = individual([[0.0], [0.5], [10.0]], [5.0, 5.0, 10.0])
    second = individual([[0.25], [8.0], [12.0]], [10.0, 5.0, 5.0])
    child = merging_crossover(first, second, breeding())
    assert_allclose(np.sort(child.centers.ravel()), [0.25, 28.0 / 3.0, 12.0])
    assert child.parent is first


@given(parents())
def test_merging_equal_parents_gives_them_back(case) -> None:
    """In their own order, to the last bit."""
    first, _, _ = case
    assume(not has_twins(first))
    one = individual(first)
    reversed_twin = individual(first[::-1], one.cluster_weights[::-1])
    child = merging_crossover(one, reversed_twin, breeding())
    assert_array_equal(child.centers, one.centers)


@given(parents())
def test_what_merging_leaves_alone_stays_at_its_position(case) -> None:
    """The engine may go on from what it knows of the first parent."""
    first, second, _ = case
    child = merging_crossover(individual(first), individual(second), breeding())
    assert child.centers.shape == first.shape
    for position, center in enumerate(first):
        kept = (child.centers == center).all(axis=1)
        if kept.any() and not has_twins(first):
            assert kept[position]


COORDINATES = st.floats(-100.0, 100.0, width=32)


class KMeansOnly(ReferenceEngine):
    """An engine that can do no more than K-means, as those of large data."""

    abilities = frozenset()
    most_sampled = 0
    seeds_among = PlainKMeans.seeds_among


@given(
    arrays(np.float64, (6, 3), elements=COORDINATES),
    arrays(np.float64, 3, elements=COORDINATES),
    st.integers(0, 2**32),
)
def test_two_centres_move_and_the_others_stay(centers, row, seed) -> None:
    before = centers.copy()
    moved = divide(centers, row[None], np.random.default_rng(seed))
    assert np.array_equal(centers, before)
    changed = np.flatnonzero(np.any(moved != centers, axis=1))
    assert len(changed) <= 2
    if len(changed) == 2:
        pair = moved[changed]
        # They are on both sides of a centre, on the line to the sample.
        away = np.linalg.norm(centers[changed] - pair.mean(axis=0), axis=1)
        divided = changed[away.argmin()]
        assert pair.mean(axis=0) == pytest.approx(centers[divided], abs=1e-9)
        assert np.ptp(pair, axis=0) == pytest.approx(2 * HALF_STEP * np.abs(row - centers[divided]))


def test_of_two_centres_in_one_place_one_is_given_up() -> None:
    """Unless neither of them is among the two that are drawn: in 3 of 10 cases."""
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [50.0, 1.0], [0.0, 50.0], [90.0, 90.0]])
    row = np.array([0.0, 52.0])
    moved = [divide(centers, row[None], np.random.default_rng(seed)) for seed in range(40)]
    given_up = sum(np.any(one[1:3] != centers[1:3]) for one in moved)
    assert 20 <= given_up <= 36


def test_the_cluster_of_the_farthest_sample_is_divided() -> None:
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [50.0, 1.0]])
    rows = np.array([[50.0, 3.0], [-9.0, 0.0], [1.0, 0.0]])
    for seed in range(10):
        moved = divide(centers, rows, np.random.default_rng(seed))
        halves = moved[moved[:, 0] < 25.0]
        assert sorted(halves[:, 0]) == pytest.approx([-9.0 * HALF_STEP, 9.0 * HALF_STEP])


def test_a_single_centre_has_nowhere_to_go() -> None:
    centers = np.array([[1.0, 2.0]])
    assert np.array_equal(divide(centers, np.zeros((1, 2)), np.random.default_rng(0)), centers)


def test_distances_between_centres_far_from_the_origin() -> None:
    rng = np.random.default_rng(0)
    some, others = rng.normal(size=(4, 3)) + 1e6, rng.normal(size=(5, 3)) + 1e6
    expected = ((some[:, None] - others) ** 2).sum(axis=2)
    assert squares_between(some, others) == pytest.approx(expected, rel=1e-8)


def planted(seed: int, k: int, n: int = 60, d: int = 200, noise: float = 1.2):
    """Draw clouds of n samples each, closer to each other than samples to their mean."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    return np.repeat(centers, n, axis=0) + noise * rng.normal(size=(k * n, d)), centers


def test_k_means_finds_two_clouds_after_a_division_and_not_from_a_sample() -> None:
    """One centre is between two clouds, and another cloud has two."""
    found = {"divided": 0, "sample": 0}
    for seed in range(10):
        X, truth = planted(seed, 3, noise=2.0)
        rng = np.random.default_rng(seed)
        third = X[120:]
        centers = np.array(
            [truth[:2].mean(axis=0), third[:30].mean(axis=0), third[30:].mean(axis=0)]
        )
        row = X[rng.integers(120)]
        on_sample = centers.copy()
        on_sample[2] = row
        for name, start in (("divided", divide(centers, row[None], rng)), ("sample", on_sample)):
            # A centre next to the third cloud is given up in two of three draws.
            if name == "sample" or np.any(start[1:] != centers[1:]):
                reached = KMeans(3, init=start, n_init=1).fit(X).cluster_centers_
                found[name] += centroid_index(reached, truth) == 0
    assert found["divided"] >= 5
    assert found["divided"] > found["sample"]


def test_a_crossover_draws_other_numbers_than_those_that_divide() -> None:
    """Its own samples would be those whose clusters are divided."""
    X, _ = planted(0, 8, n=25)
    engine, drawn = KMeansOnly(X, None), []
    looked_up = []
    samples_at = engine.samples_at

    def crossover(first, second, breeding):
        drawn.extend(breeding.rng.random(DRAWN_TO_DIVIDE))
        return Child(first.centers.copy(), first)

    engine.samples_at = lambda quantiles: looked_up.extend(quantiles) or samples_at(quantiles)
    strategy = replace(DEEP, crossovers=(Crossing(crossover),))
    settings = SearchSettings(2, 4, max_offspring=5, strategy=strategy)
    solve(engine, 8, settings, np.random.default_rng(0))
    assert len(looked_up) >= 5 * DRAWN_TO_DIVIDE
    assert not set(drawn) & set(looked_up)


def test_a_search_without_swaps_finds_all_noisy_clouds() -> None:
    X, truth = planted(0, 8, n=25)
    engine = KMeansOnly(X, None)
    result = solve(engine, 8, SearchSettings(strategy=DEEP), np.random.default_rng(0))
    assert centroid_index(engine.frame.decode(result.best.centers), truth) == 0
