"""Pairing up the centres of two solutions with thousands of clusters, compiled."""

from __future__ import annotations

import math

import numpy as np

from evomeans.compiled.jit import FINITE, jit
from evomeans.kernels import MOST_EXACT
from evomeans.kernels.matching import (
    COLUMN_OF,
    COLUMN_PRICE,
    ENDLESS,
    LEFT,
    LENGTH,
    NONE,
    ROW_OF,
    MatchingArrays,
    match_exactly,
    pair_shared,
    take_one_of_each,
)
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import Flags, FloatArray, SingleArray

# The total of an auction exceeds the least one by at most this share of itself.
ALLOWANCE = 0.005
# How much finer each round of bids is than the one before, and the finest one, as a share of the
# highest cost.
FINER, FINEST = 5.0, 1e-9
# Costs are in single precision. The highest one is between these, for the first round.
SMALLEST, MOST = 1e-30, 1e38
# Centres of the second solution that stay in the cache of the processor while costs are computed.
BLOCK = 64


@jit
def cross_many(
    first: FloatArray,
    second: FloatArray,
    coins: FloatArray,
    child: FloatArray,
    squared: bool,
    arrays: MatchingArrays,
    is_second: Flags,
) -> None:
    """Do what :func:`~evomeans.kernels.matching.cross` does, for more than MOST_EXACT centres.

    Centres that both have are paired with each other. If at most MOST_EXACT are left, they are
    paired at the least cost, and otherwise by an auction. If it is stopped, there is no child.
    """
    match_many(first, second, squared, arrays)
    if arrays.stop[0] == 0:
        take_one_of_each(first, second, coins, child, arrays, is_second)


@jit
def match_many(
    first: FloatArray, second: FloatArray, squared: bool, arrays: MatchingArrays
) -> None:
    """Assign every centre of ``first`` its own centre of ``second``; see :func:`cross_many`."""
    count = pair_shared(first, second, arrays)
    if count <= MOST_EXACT:
        match_exactly(first, second, squared, count, arrays)
        return
    highest = set_costs(first, second, squared, count, arrays)
    hold_auction(count, highest, arrays)
    if arrays.stop[0] != 0:
        return
    rows, columns = arrays.places[5], arrays.places[6]
    for a in range(count):
        arrays.partner[rows[a]] = columns[arrays.places[COLUMN_OF, a]]


@jit(inline=False)
def set_costs(
    first: FloatArray, second: FloatArray, squared: bool, count: int, arrays: MatchingArrays
) -> float:
    """Compute the costs of all pairs that are left, and return the highest."""
    rows, columns, highest = arrays.places[5], arrays.places[6], np.float32(0.0)
    for begin in range(0, count, BLOCK):
        for a in range(count):
            if arrays.stop[0] != 0:
                return 0.0
            for b in range(begin, min(begin + BLOCK, count)):
                cost = squared_difference(first, rows[a], second, columns[b])
                single = np.float32(min(cost if squared else math.sqrt(cost), MOST))
                arrays.offers[a, b] = single
                highest = max(highest, single)
    return np.float64(highest)


@jit(inline=False)
def hold_auction(count: int, highest: float, arrays: MatchingArrays) -> None:
    """Assign rows to columns at nearly the least cost; see COLUMN_OF in ``arrays.places``.

    Rows bid for columns [1]_: each raises the price of the one that is cheapest for it, prices
    included, until another one is cheaper by a step. Then no assignment costs less by more than a
    step for each row. Rounds with smaller and smaller steps keep the prices, so each of them has
    little to do, until all steps together are the ALLOWANCE of the total at most.

    References
    ----------
    .. [1] Bertsekas, D.P. (1988). "The auction algorithm: a distributed relaxation method for the
       assignment problem". Annals of Operations Research 14, 105-123.
    """
    highest = max(highest, SMALLEST)
    step = highest / FINER
    for b in range(count):
        arrays.numbers[COLUMN_PRICE, b] = 0.0
    while True:
        bid(count, step, arrays)
        if arrays.stop[0] != 0:
            return
        total = 0.0
        for a in range(count):
            total += arrays.offers[a, arrays.places[COLUMN_OF, a]]
        if step * count <= ALLOWANCE * total or step <= FINEST * highest:
            return
        step /= FINER


@jit
def bid(count: int, step: float, arrays: MatchingArrays) -> None:
    """Let all rows bid for columns, with prices that rise by ``step`` at least."""
    row_of, column_of = arrays.places[ROW_OF], arrays.places[COLUMN_OF]
    waiting, prices = arrays.places[LEFT], arrays.numbers[COLUMN_PRICE]
    for a in range(count):
        row_of[a] = column_of[a] = NONE
        waiting[a] = count - 1 - a
    left = count
    while left > 0 and arrays.stop[0] == 0:
        left -= 1
        a = waiting[left]
        values = arrays.numbers[LENGTH]
        lowest = add(arrays.offers[a], prices, count, values)
        best = 0
        while best < count - 1 and values[best] != lowest:
            best += 1
        values[best] = ENDLESS
        prices[best] += least(values, count) - lowest + step
        if row_of[best] != NONE:
            column_of[row_of[best]] = NONE
            waiting[left] = row_of[best]
            left += 1
        row_of[best], column_of[a] = a, best


@jit(fastmath=FINITE)
def add(costs: SingleArray, prices: FloatArray, count: int, values: FloatArray) -> float:
    """Add prices to costs, and return the lowest sum."""
    lowest = ENDLESS
    for b in range(count):
        values[b] = costs[b] + prices[b]
        lowest = min(lowest, values[b])
    return lowest


@jit(fastmath=FINITE)
def least(values: FloatArray, count: int) -> float:
    """Return the lowest of the first numbers."""
    lowest = ENDLESS
    for b in range(count):
        lowest = min(lowest, values[b])
    return lowest
