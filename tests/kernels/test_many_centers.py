"""Crossovers of thousands of centres: an auction, and how both end when they are stopped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import Abandoned
from evomeans.kernels import MOST_COSTS, MOST_MATCHED_EXACTLY, matching
from evomeans.search.crossover import Breeding, merging_crossover, squared_matching_crossover
from evomeans.search.population import Individual

both_costs = pytest.mark.parametrize("squared", [False, True], ids=["distance", "squares"])
coordinates = st.one_of(st.integers(-3, 3).map(float), st.floats(-1.0, 1.0, allow_subnormal=False))


def prices_of(first, second, squared):
    return cdist(first, second, "sqeuclidean" if squared else "euclidean")


def auction_of(first, second, *, squared):
    """Return the memory of an auction, whatever the number of centres."""
    k, many = len(first), matching.MatchingArrays.allocate(MOST_MATCHED_EXACTLY + 1)
    memory = matching.MatchingArrays.allocate(k)._replace(
        offers=np.empty((k, k), np.float32), cheap=many.cheap[:k], beyond=many.beyond[:k]
    )
    memory.places[5:7] = np.arange(k)
    highest = matching.set_offers(first, second, squared, k, memory)
    matching.hold_auction(k, highest, memory)
    return memory


def bid_by_bid(offers):
    """Hold the same auction; every row looks at all columns before it bids."""
    offers = offers.astype(float)
    k, highest, prices = len(offers), offers.max(), np.zeros(len(offers))
    step = highest / matching.FINER
    while True:
        row_of, column_of, waiting = np.full(k, -1), np.full(k, -1), list(range(k))[::-1]
        while waiting:
            a = waiting.pop()
            values = offers[a] + prices
            best = values.argmin()
            prices[best] += np.delete(values, best).min() - values[best] + step
            if row_of[best] >= 0:
                waiting.append(row_of[best])
            row_of[best], column_of[a] = a, best
        total = offers[np.arange(k), column_of].sum()
        if step * k <= matching.ALLOWANCE * total or step <= matching.FINEST_STEP * highest:
            return column_of, prices
        step /= matching.FINER


@st.composite
def parents(draw):
    """Two sets of up to 12 centres, with ties and with twins."""
    k, d = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    first, second = (draw(arrays(float, (k, d), elements=coordinates)) for _ in range(2))
    for i in range(k):
        if draw(st.booleans()):
            second[draw(st.integers(0, k - 1))] = first[i]
    return first, second


@both_costs
@given(parents())
def test_an_auction_is_nearly_the_cheapest_assignment(squared, case) -> None:
    """The allowance is a share of the total, or of the highest cost if the total is next to 0."""
    prices = prices_of(*case, squared)
    found = auction_of(*case, squared=squared).places[matching.COLUMN_OF]
    assert_array_equal(np.sort(found), np.arange(len(found)))
    rows, columns = linear_sum_assignment(prices)
    least, total = prices[rows, columns].sum(), prices[rows, found].sum()
    rounding = 1e-6 * len(found) * prices.max()
    assert total * (1.0 - matching.ALLOWANCE) <= least + rounding + 1e-29


@both_costs
def test_an_auction_that_remembers_cheap_columns_ends_alike(squared) -> None:
    """As one in which every row looks at all columns before it bids."""
    first, second = np.random.default_rng(5).normal(size=(2, 60, 4))
    second[:10] = second[10]
    memory = auction_of(first, second, squared=squared)
    columns, prices = bid_by_bid(memory.offers)
    assert_array_equal(memory.places[matching.COLUMN_OF], columns)
    assert_array_equal(memory.numbers[matching.COLUMN_PRICE], prices)


@both_costs
@pytest.mark.parametrize("n_shared", [0, 500])
def test_many_centres_are_matched_at_nearly_the_least_cost(squared, n_shared) -> None:
    """With 500 shared centres few are left, and these are matched at the least cost."""
    rng, k = np.random.default_rng(0), 2 * MOST_MATCHED_EXACTLY - 100
    first, second = rng.normal(size=(2, k, 6))
    places = rng.permutation(k)[:n_shared]
    second[places] = first[:n_shared]
    memory = matching.MatchingArrays.allocate(k)
    matching.match(first, second, squared, memory)
    assert_array_equal(np.sort(memory.partner), np.arange(k))
    assert_array_equal(memory.partner[:n_shared], places)
    assert np.count_nonzero(memory.is_shared) == n_shared
    others = np.setdiff1d(np.arange(k), places)
    prices = prices_of(first[n_shared:], second[others], squared)
    rows, columns = linear_sum_assignment(prices)
    if n_shared:
        assert_array_equal(memory.partner[n_shared:], others[columns])
    total = np.sum(prices_of(first, second, squared)[np.arange(k), memory.partner])
    assert total <= prices[rows, columns].sum() * (1.0 + 2.0 * matching.ALLOWANCE)


def clusters(n: int, d: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(1, 20, n).astype(float)


def individual(k: int, seed: int) -> Individual:
    return Individual(*[clusters(k, 3, seed)[0], 1.0, clusters(k, 3, seed)[1], 0.5])


@pytest.mark.parametrize("crossover", [squared_matching_crossover, merging_crossover])
def test_a_crossover_of_many_centres_sees_that_the_engine_is_abandoned(crossover) -> None:
    engine = CpuEngine(np.random.default_rng(0).normal(size=(50, 3)))
    k = MOST_COSTS + 1
    breeding = Breeding(engine, np.zeros(k), 0.5)
    engine.abandon(True)
    with pytest.raises(Abandoned):
        crossover(individual(k, 0), individual(k, 1), breeding)
    engine.abandon(False)
    child = crossover(individual(k, 0), individual(k, 1), breeding)
    assert np.isfinite(child.centers).all()


def test_long_kernels_end_before_they_begin_if_they_are_stopped() -> None:
    """What they would write is untouched."""
    k, stop = MOST_MATCHED_EXACTLY + 1, np.ones(1, np.int64)
    first, second = np.random.default_rng(0).normal(size=(2, k, 2))
    memory = matching.MatchingArrays.allocate(k, stop)
    memory.partner[:] = -7
    matching.match(first, second, True, memory)
    assert (memory.partner == -7).all()
