"""Pairing up the centres of two solutions at minimum cost, compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import FINITE, jit
from evomeans.compiled.ready import Call
from evomeans.kernels import MOST_MATCHED_EXACTLY
from evomeans.kernels.vectors import (
    CENTERS_IN_CACHE,
    ENDLESS,
    coordinate_sum,
    is_equal,
    minimum,
    squared_difference,
)
from evomeans.typing import Flags, FloatArray, Indices, Integers, SingleArray

NONE = -1
# Rows of the working memory: dual prices and lengths of shortest paths; integers of columns, and
# of rows.
ROW_PRICE, COLUMN_PRICE, LENGTH = range(3)
ROW_OF, BEFORE, LEFT, COLUMN_OF, VISITED = range(5)


@bundle
class MatchingArrays(NamedTuple):
    """Working memory for pairs of solutions with k clusters each.

    * ``partner`` (k,), out: ``second[partner[i]]`` is matched with ``first[i]``.
    * ``is_shared`` (k,), out: whether the two are equal, to the last bit.
    * ``costs`` (m, m): of pairs, with the lesser of k and MOST_MATCHED_EXACTLY for m.
    * ``numbers`` (3, k) and ``places`` (7, k).
    * ``offers`` (k, k): costs of pairs for an auction; empty if there is none, and so are the next.
    * ``cheap`` (k, N_CHEAP): the columns that were the cheapest for each row when all were looked
      at, prices included; ``beyond`` (k,): the lowest price of the others then.
    * ``stop`` (1,): an auction ends soon after another thread sets it. The partners are undefined
      then.
    """

    partner: Indices
    is_shared: Flags
    costs: FloatArray
    numbers: FloatArray
    places: Indices
    offers: SingleArray
    cheap: Indices
    beyond: FloatArray
    stop: Integers

    @classmethod
    def allocate(cls, k: int, stop: Integers | None = None) -> MatchingArrays:
        """Allocate the arrays; without ``stop`` there is none."""
        few, many = min(k, MOST_MATCHED_EXACTLY), k if k > MOST_MATCHED_EXACTLY else 0
        return cls(
            partner=np.empty(k, np.intp),
            is_shared=np.empty(k, np.bool_),
            costs=np.empty((few, few)),
            numbers=np.empty((3, k)),
            places=np.empty((7, k), np.intp),
            offers=np.empty((many, many), np.float32),
            cheap=np.empty((many, N_CHEAP), np.intp),
            beyond=np.empty(many),
            stop=np.zeros(1, np.int64) if stop is None else stop,
        )


@jit
def cross(
    first: FloatArray,
    second: FloatArray,
    coins: FloatArray,
    child: FloatArray,
    squared: bool,
    arrays: MatchingArrays,
    is_second: Flags,
) -> None:
    """Match the centres of two parents, and take one centre of each pair.

    * ``first`` and ``second`` (k, d).
    * ``coins`` (k,): below one half for the pairs, by the first, from which the second is taken.
    * ``child`` (k, d), out: at the positions of the parent from which most of what they do not
      share is taken. ``is_second`` (1,) says whether that is the second. Undefined if an auction
      was stopped.
    * ``squared``: whether a pair costs its squared distance, instead of its distance.
    """
    match(first, second, squared, arrays)
    if arrays.stop[0] != 0:
        return
    partner, is_shared, balance = arrays.partner, arrays.is_shared, 0
    for i in range(first.shape[0]):
        if not is_shared[i]:
            balance += 1 if coins[i] < 0.5 else -1
    for i in range(first.shape[0]):
        for t in range(first.shape[1]):
            own, other = first[i, t], second[partner[i], t]
            place = partner[i] if balance > 0 else i
            child[place, t] = other if coins[i] < 0.5 and not is_shared[i] else own
    is_second[0] = balance > 0


@jit
def match(first: FloatArray, second: FloatArray, squared: bool, arrays: MatchingArrays) -> None:
    """Assign every centre of ``first`` its own centre of ``second``; see :func:`cross`.

    Centres that both have are paired with each other. The others are paired at minimum cost, or by
    an auction if they are more than MOST_MATCHED_EXACTLY. By the triangle inequality this is a
    least total distance of all centres; a least total of squares need not pair equal centres.
    """
    count, rows, columns = pair_shared(first, second, arrays), arrays.places[5], arrays.places[6]
    if count <= MOST_MATCHED_EXACTLY:
        for a in range(count):
            for b in range(count):
                cost = squared_difference(first, rows[a], second, columns[b])
                arrays.costs[a, b] = cost if squared else math.sqrt(cost)
        assign(arrays.costs, count, arrays.numbers, arrays.places)
    else:
        highest = set_offers(first, second, squared, count, arrays)
        hold_auction(count, highest, arrays)
        if arrays.stop[0] != 0:
            return
    for a in range(count):
        arrays.partner[rows[a]] = columns[arrays.places[COLUMN_OF, a]]


@jit
def pair_shared(first: FloatArray, second: FloatArray, arrays: MatchingArrays) -> int:
    """Pair up equal centres; list others in the last two ``arrays.places``, and count them."""
    rows, columns, sums = arrays.places[5], arrays.places[6], arrays.numbers[LENGTH]
    k, count = first.shape[0], 0
    for j in range(k):
        columns[j] = j
        sums[j] = coordinate_sum(second, j)
    left = k
    for i in range(k):
        arrays.is_shared[i] = False
        own = coordinate_sum(first, i)
        for b in range(left):
            # Thousands of sums are read much faster than a coordinate of thousands of centres.
            if sums[b] == own and is_equal(first, i, second, columns[b]):
                arrays.partner[i] = columns[b]
                arrays.is_shared[i] = True
                left -= 1
                # In order, so that the result is that of one loop over all columns.
                for c in range(b, left):
                    columns[c] = columns[c + 1]
                    sums[c] = sums[c + 1]
                break
        if not arrays.is_shared[i]:
            rows[count] = i
            count += 1
    return count


@jit
def assign(costs: FloatArray, count: int, numbers: FloatArray, places: Indices) -> None:
    """Solve the assignment problem of ``costs[:count, :count]``; see COLUMN_OF in ``places``.

    One row after the other finds its column by the shortest path through the assignments so far,
    in costs reduced by dual prices (Jonker and Volgenant's method without its preparation [1]_).

    References
    ----------
    .. [1] Jonker, R. and Volgenant, A. (1987). "A shortest augmenting path algorithm for dense and
       sparse linear assignment problems". Computing 38, 325-340.
    """
    for a in range(count):
        numbers[ROW_PRICE, a] = numbers[COLUMN_PRICE, a] = 0.0
        places[ROW_OF, a] = places[COLUMN_OF, a] = NONE
    for row in range(count):
        column = shortest_path(costs, count, row, numbers, places)
        while column != NONE:
            before = places[BEFORE, column]
            places[ROW_OF, column] = before
            places[COLUMN_OF, before], column = column, places[COLUMN_OF, before]


@jit
def shortest_path(
    costs: FloatArray, count: int, row: int, numbers: FloatArray, places: Indices
) -> int:
    """Find the nearest column without a row, from ``row`` on; adapt the prices, and return it.

    ``places[BEFORE, j]`` is the row from which the path enters column j.
    """
    row_price, column_price, length = numbers[ROW_PRICE], numbers[COLUMN_PRICE], numbers[LENGTH]
    row_of, before, left, visited = places[ROW_OF], places[BEFORE], places[LEFT], places[VISITED]
    for b in range(count):
        length[b] = ENDLESS
        left[b] = b
    n_visited, so_far, a = 0, 0.0, row
    while True:
        nearest, place = ENDLESS, 0
        for c in range(count - n_visited):
            b = left[c]
            reached = so_far + costs[a, b] - row_price[a] - column_price[b]
            if reached < length[b]:
                length[b], before[b] = reached, a
            if length[b] < nearest or (length[b] == nearest and row_of[b] == NONE):
                nearest, place = length[b], c
        so_far, b = nearest, left[place]
        if row_of[b] == NONE:
            break
        left[place] = left[count - n_visited - 1]
        visited[n_visited] = b
        n_visited += 1
        a = row_of[b]
    row_price[row] += so_far
    for c in range(n_visited):
        rest = so_far - length[visited[c]]
        row_price[row_of[visited[c]]] += rest
        column_price[visited[c]] -= rest
    return b


# ---- thousands of centres ------------------------------------------------------------------------

# The total of an auction exceeds the least one by at most this share of itself.
ALLOWANCE = 0.005
# How much finer each round of bids is than the one before, and the finest one, as a share of the
# highest cost.
FINER, FINEST_STEP = 5.0, 1e-9
# How many cheap columns are remembered of each row.
N_CHEAP = 8
# Costs are in single precision. The highest one is between these, for the first round.
LOWEST_COST, HIGHEST_COST = 1e-30, 1e38


@jit(inline=False)
def set_offers(
    first: FloatArray, second: FloatArray, squared: bool, count: int, arrays: MatchingArrays
) -> float:
    """Compute the costs of all pairs that are left for an auction, and return the highest."""
    rows, columns, highest = arrays.places[5], arrays.places[6], np.float32(0.0)
    for begin in range(0, count, CENTERS_IN_CACHE):
        for a in range(count):
            if arrays.stop[0] != 0:
                return 0.0
            for b in range(begin, min(begin + CENTERS_IN_CACHE, count)):
                cost = squared_difference(first, rows[a], second, columns[b])
                single = np.float32(min(cost if squared else math.sqrt(cost), HIGHEST_COST))
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
    highest = max(highest, LOWEST_COST)
    step = highest / FINER
    for b in range(count):
        arrays.numbers[COLUMN_PRICE, b] = 0.0
        # Nothing is known of any row.
        arrays.beyond[b] = -ENDLESS
    while True:
        bid(count, step, arrays)
        if arrays.stop[0] != 0:
            return
        total = 0.0
        for a in range(count):
            total += arrays.offers[a, arrays.places[COLUMN_OF, a]]
        if step * count <= ALLOWANCE * total or step <= FINEST_STEP * highest:
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
        best, lowest, second = cheapest_known(a, arrays)
        if second >= arrays.beyond[a]:
            best, lowest, second = cheapest(a, count, arrays)
        prices[best] += second - lowest + step
        if row_of[best] != NONE:
            column_of[row_of[best]] = NONE
            waiting[left] = row_of[best]
            left += 1
        row_of[best], column_of[a] = a, best


@jit
def cheapest_known(a: int, arrays: MatchingArrays) -> tuple[int, float, float]:
    """Return the cheapest column among those known to be cheap, its cost, and the next cost.

    Prices only rise. So the others still cost as much as ``arrays.beyond`` says, or more.
    """
    costs, prices = arrays.offers[a], arrays.numbers[COLUMN_PRICE]
    best, lowest, second, c = NONE, ENDLESS, ENDLESS, 0
    while arrays.beyond[a] > -ENDLESS and c < N_CHEAP:
        b = arrays.cheap[a, c]
        value = costs[b] + prices[b]
        if value < lowest or (value == lowest and b < best):
            best, lowest, second = b, value, lowest
        else:
            second = min(second, value)
        c += 1
    return best, lowest, second


@jit(inline=False)
def cheapest(a: int, count: int, arrays: MatchingArrays) -> tuple[int, float, float]:
    """Return the same of all columns, and remember which are cheap."""
    values, cheap, highest, known = arrays.numbers[LENGTH], arrays.cheap[a], ENDLESS, 0
    add(arrays.offers[a], arrays.numbers[COLUMN_PRICE], count, values)
    for begin in range(0, count, CENTERS_IN_CACHE):
        end = min(begin + CENTERS_IN_CACHE, count)
        if minimum(values[begin:end], end - begin) >= highest:
            continue
        for b in range(begin, end):
            if values[b] < highest:
                place = min(known, N_CHEAP - 1)
                while place > 0 and values[cheap[place - 1]] > values[b]:
                    cheap[place] = cheap[place - 1]
                    place -= 1
                cheap[place] = b
                known = min(known + 1, N_CHEAP)
                if known == N_CHEAP:
                    highest = values[cheap[N_CHEAP - 1]]
    # Few columns need no list.
    arrays.beyond[a] = highest if known == N_CHEAP else -ENDLESS
    return cheap[0], values[cheap[0]], values[cheap[1]] if known > 1 else ENDLESS


@jit(fastmath=FINITE)
def add(costs: SingleArray, prices: FloatArray, count: int, values: FloatArray) -> None:
    """Add prices to costs."""
    for b in range(count):
        values[b] = costs[b] + prices[b]


def kernel_calls() -> list[Call]:
    """Return what a search calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    one, grid = np.zeros(1), np.zeros((1, 1))
    arrays, flag = MatchingArrays.allocate(1), np.zeros(1, np.bool_)
    return [Call(cross, (grid, grid, one, grid, True, arrays, flag), 1.1)]
