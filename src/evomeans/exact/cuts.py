"""Star cuts of the relaxation, and the search for those that a matrix violates.

With z_ij = 1 / w(Q) if groups i and j share the cluster Q, else 0, every i and every set T without
i satisfy (docs/background/proofs.md)

    sum over t in T of z_it  -  sum over pairs s < t in T of z_st  <=  z_ii.

One member of T gives the pair cuts of the literature, two the triangle cuts [1]_. A cut is a row of
``MOST_MEMBERS + 1`` indices: i, then the members of T, then -1. As a matrix, <B, Y> is the left
side minus the right side, with Y_ij = z_ij sqrt(w_i w_j).


References
----------
.. [1] V. Piccialli, A. M. Sudoso, A. Wiegele: "SOS-SDP: an exact solver for minimum sum-of-squares
   clustering", INFORMS Journal on Computing 34, 2022.
"""

from __future__ import annotations

import itertools
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import FINITE, REORDER, jit
from evomeans.exact.cases import side_by_side
from evomeans.typing import FloatArray, Integers

Cuts = NDArray[np.int32]
MOST_MEMBERS = 6  # of T


def no_cuts() -> Cuts:
    """Return an empty list of cuts."""
    return np.zeros((0, MOST_MEMBERS + 1), np.int32)


def are_valid(cuts: Cuts, n: int) -> bool:
    """Whether these are star cuts of n groups: members differ, and -1 only follows them."""
    if cuts.ndim != 2 or cuts.shape[1] != MOST_MEMBERS + 1:
        return False
    if len(cuts) == 0:
        return True
    used = cuts >= 0
    in_order = bool(np.all(used[:, :-1] >= used[:, 1:])) and bool(used[:, :2].all())
    ordered = np.sort(cuts, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    return in_order and cuts.min() >= -1 and cuts.max() < n and not repeated.any()


@jit
def add_cuts(
    matrix: FloatArray, sizes: FloatArray, inverse_roots: FloatArray, cuts: Cuts, prices: FloatArray
) -> None:
    """Add sum_c prices[c] B_c to ``matrix``, and the absolute values of all terms to ``sizes``.

    Shapes: matrix, sizes (n, n); inverse_roots (n,), 1 / sqrt(w); cuts (m, MOST_MEMBERS + 1);
    prices (m,).
    """
    for c in range(cuts.shape[0]):
        price = prices[c]
        if price == 0.0:
            continue
        i = cuts[c, 0]
        term = price * inverse_roots[i] * inverse_roots[i]
        matrix[i, i] -= term
        sizes[i, i] += term
        for a in range(1, MOST_MEMBERS + 1):
            t = cuts[c, a]
            if t < 0:
                break
            term = 0.5 * price * inverse_roots[i] * inverse_roots[t]
            matrix[i, t] += term
            matrix[t, i] = matrix[i, t]
            sizes[i, t] += term
            sizes[t, i] = sizes[i, t]
            for b in range(1, a):
                s = cuts[c, b]
                term = 0.5 * price * inverse_roots[s] * inverse_roots[t]
                matrix[s, t] -= term
                matrix[t, s] = matrix[s, t]
                sizes[s, t] += term
                sizes[t, s] = sizes[s, t]


@jit(fastmath=REORDER)
def sweep_cuts(
    matrix: FloatArray,
    apart: NDArray[np.bool_],
    inverse_roots: FloatArray,
    cuts: Cuts,
    prices: FloatArray,
) -> None:
    """Hildreth's sweep towards the projection onto {V >= 0, V[apart] = 0, all cuts}.

    Dual coordinate ascent: every visit of a cut sets its price to the best value, given all others.
    ``matrix`` holds the point to project minus sum_c prices[c] B_c, and V is its positive part.

    Shapes: matrix, apart (n, n); inverse_roots (n,); cuts (m, MOST_MEMBERS + 1); prices (m,).
    """
    for c in range(cuts.shape[0]):
        i = cuts[c, 0]
        own = inverse_roots[i]
        norm = own * own * own * own
        excess = -max(matrix[i, i], 0.0) * own * own
        size = 0
        for a in range(1, MOST_MEMBERS + 1):
            t = cuts[c, a]
            if t < 0:
                break
            size = a
            factor = own * inverse_roots[t]
            norm += 0.5 * factor * factor
            if matrix[i, t] > 0.0 and not apart[i, t]:
                excess += matrix[i, t] * factor
            for b in range(1, a):
                s = cuts[c, b]
                factor = inverse_roots[s] * inverse_roots[t]
                norm += 0.5 * factor * factor
                if matrix[s, t] > 0.0 and not apart[s, t]:
                    excess -= matrix[s, t] * factor
        change = max(excess / norm, -prices[c])
        if change == 0.0:
            continue
        prices[c] += change
        matrix[i, i] += change * own * own
        for a in range(1, size + 1):
            t = cuts[c, a]
            matrix[i, t] -= 0.5 * change * own * inverse_roots[t]
            matrix[t, i] = matrix[i, t]
            for b in range(1, a):
                s = cuts[c, b]
                matrix[s, t] += 0.5 * change * inverse_roots[s] * inverse_roots[t]
                matrix[t, s] = matrix[s, t]


# ---- the search ----------------------------------------------------------------------------------

FEW_CUTS = 10
"""Cuts per group, below which a search for cuts is repeated more thoroughly."""
PER_GROUP, TRIANGLES = 100, 4
"""Cuts that one search returns for each i, and triangle cuts for each pair (i, j), at most."""
NEAR, TIGHT = 0.02, 1 / 6
"""Stars are grown of groups and pairs beyond these shares of z_ii, see `grow_stars`."""
RANGES = 32  # of groups, which threads share
NEVER = 1e30  # instead of infinity, so that maxima can be vectorised


@bundle
class FoundCuts(NamedTuple):
    """The cuts that a search has found, the cut that it looks at, and its memory.

    Shapes, for m groups i of n: cuts (m PER_GROUP, MOST_MEMBERS + 1), values (m PER_GROUP,), by how
    much each is violated; row (MOST_MEMBERS + 1,); near, shares, gains (n,); others (n, n); best,
    who (TRIANGLES,).
    """

    cuts: Cuts
    values: FloatArray
    row: NDArray[np.int32]
    near: Integers
    shares: FloatArray
    gains: FloatArray
    others: FloatArray
    best: FloatArray
    who: Integers


@jit
def offer(found: FoundCuts, first: int, count: int, value: float) -> int:
    """Keep the cut in ``row`` if it is among the PER_GROUP most violated ones from ``first`` on.

    These are a heap by value, the least one first. Returns how many there are.
    """
    cuts, values = found.cuts, found.values
    if count == PER_GROUP and value <= values[first]:
        return count
    if count < PER_GROUP:
        place = count
        count += 1
        while place > 0 and values[first + (place - 1) // 2] > value:
            parent = (place - 1) // 2
            put(cuts, values, first + place, cuts[first + parent], values[first + parent])
            place = parent
    else:
        place = 0
        while True:
            child = 2 * place + 1
            if child >= count:
                break
            if child + 1 < count and values[first + child + 1] < values[first + child]:
                child += 1
            if values[first + child] >= value:
                break
            put(cuts, values, first + place, cuts[first + child], values[first + child])
            place = child
    put(cuts, values, first + place, found.row, value)
    return count


@jit
def put(cuts: Cuts, values: FloatArray, place: int, row: Any, value: float) -> None:
    """Write a cut and its value to a place."""
    values[place] = value
    for e in range(MOST_MEMBERS + 1):
        cuts[place, e] = row[e]


@jit
def find_cuts(Z: FloatArray, least: float, start: int, stop: int, found: FoundCuts) -> int:
    """Find violated cuts: pairs, the best triangles of each (i, j), and a star grown greedily.

    The groups i are those from ``start`` to ``stop``. Returns the number of cuts found, each
    violated by more than ``least``; for every i the PER_GROUP most violated ones.
    """
    row, near, gains, best, who = found.row, found.near, found.gains, found.best, found.who
    n = Z.shape[0]
    total = 0
    for i in range(start, stop):
        count = 0
        own = Z[i, i]
        m = 0
        for j in range(n):
            if j != i and Z[i, j] > least:
                near[m] = j
                m += 1
        row[0] = i
        for p in range(m):
            j = near[p]
            for e in range(1, MOST_MEMBERS + 1):
                row[e] = -1
            row[1] = j
            if Z[i, j] - own > least:
                count = offer(found, total, count, Z[i, j] - own)
            n_best = 0
            for q in range(p + 1, m):
                h = near[q]
                excess = Z[i, j] + Z[i, h] - own - Z[j, h]
                if excess <= least or (n_best == TRIANGLES and excess <= best[n_best - 1]):
                    continue
                place = min(n_best, TRIANGLES - 1)
                n_best = place + 1
                while place > 0 and best[place - 1] < excess:
                    best[place] = best[place - 1]
                    who[place] = who[place - 1]
                    place -= 1
                best[place] = excess
                who[place] = h
            for place in range(n_best):
                row[2] = who[place]
                count = offer(found, total, count, best[place])
            row[2] = -1
            size, excess = 1, Z[i, j] - own
            for q in range(m):
                gains[q] = Z[i, near[q]] - Z[j, near[q]]
            gains[p] = -np.inf
            while size < MOST_MEMBERS:
                leader, gain = -1, least
                for q in range(m):
                    if gains[q] > gain:
                        leader, gain = q, gains[q]
                if leader < 0:
                    break
                h = near[leader]
                size += 1
                excess += gain
                row[size] = h
                for q in range(m):
                    gains[q] -= Z[h, near[q]]
                gains[leader] = -np.inf
            if size > 2 and excess > least:
                sort_members(row, size)
                count = offer(found, total, count, excess)
        total += count
    return total


@jit
def grow_stars(Z: FloatArray, least: float, start: int, stop: int, found: FoundCuts) -> int:
    """Find violated cuts with three members or more, grown from all pairs that are nearly tight.

    See docs/background/proofs.md; arguments and results are those of `find_cuts`.
    """
    row, near, shares = found.row, found.near, found.shares
    gains, others = found.gains, found.others
    n = Z.shape[0]
    total = 0
    for i in range(start, stop):
        own = Z[i, i]
        least_share = max(least, NEAR * own)
        m = 0
        for j in range(n):
            if j != i and Z[i, j] > least_share:
                near[m] = j
                shares[m] = Z[i, j]
                m += 1
        for p in range(m):
            for q in range(m):
                others[p, q] = Z[near[p], near[q]]
            others[p, p] = NEVER
        count = 0
        row[0] = i
        for p in range(m):
            for q in range(p):
                if (own - shares[p] - shares[q]) / 2.0 + others[p, q] >= TIGHT * own:
                    continue
                excess = shares[p] + shares[q] - others[p, q] - own
                for h in range(m):
                    gains[h] = shares[h] - others[p, h] - others[q, h]
                row[1], row[2] = near[p], near[q]
                size = 2
                while size < MOST_MEMBERS:
                    leader = largest_of(gains, m)
                    gain = gains[leader]
                    if gain <= 0.0:
                        break
                    size += 1
                    excess += gain
                    row[size] = near[leader]
                    for h in range(m):
                        gains[h] -= others[leader, h]
                if size == 2 or excess <= least:
                    continue
                for e in range(size + 1, MOST_MEMBERS + 1):
                    row[e] = -1
                sort_members(row, size)
                if not is_among(found, total, count, excess, 1e-9 * own):
                    count = offer(found, total, count, excess)
        total += count
    return total


@jit(fastmath=FINITE)
def largest_of(values: FloatArray, count: int) -> int:
    """Return where the largest of the first values is."""
    best = values[0]
    for q in range(count):
        best = max(best, values[q])
    for q in range(count):
        if values[q] == best:
            return q
    return 0


@jit
def is_among(found: FoundCuts, first: int, count: int, value: float, rounding: float) -> bool:
    """Whether the cut in ``row`` was found before; equal ones have equal values, up to rounding."""
    for place in range(first, first + count):
        if abs(found.values[place] - value) > rounding:
            continue
        is_equal = True
        for e in range(MOST_MEMBERS + 1):
            is_equal = is_equal and found.cuts[place, e] == found.row[e]
        if is_equal:
            return True
    return False


@jit
def sort_members(row: Any, size: int) -> None:
    """Sort entries 1..size, so that equal cuts look alike."""
    for a in range(2, size + 1):
        value = row[a]
        b = a
        while b > 1 and row[b - 1] > value:
            row[b] = row[b - 1]
            b -= 1
        row[b] = value


def violated_cuts(Z: FloatArray, least: float, pool: Executor | None = None) -> Cuts:
    """Return cuts that Z violates by more than ``least``, the same with threads and without."""
    Z = np.ascontiguousarray(Z)
    ends = np.linspace(0, len(Z), 2 if pool is None else RANGES + 1).astype(int).tolist()
    ranges = [pair for pair in itertools.pairwise(ends) if pair[0] < pair[1]]

    def found_by(search: Any) -> Cuts:
        calls = [(search, Z, least, *pair) for pair in ranges]
        return np.concatenate(side_by_side(pool, searched, calls))

    found = found_by(find_cuts)
    if len(found) > FEW_CUTS * len(Z):
        return found
    return np.concatenate([found, found_by(grow_stars)])


def searched(search: Any, Z: FloatArray, least: float, start: int, stop: int) -> Cuts:
    """Return the cuts of the groups i from ``start`` to ``stop`` that a search finds."""
    n, most = len(Z), (stop - start) * PER_GROUP
    cuts, row = np.empty((most, MOST_MEMBERS + 1), np.int32), np.empty(MOST_MEMBERS + 1, np.int32)
    near, who = np.empty(n, np.int64), np.empty(TRIANGLES, np.int64)
    values, shares, gains, best = (np.empty(size) for size in (most, n, n, TRIANGLES))
    found = FoundCuts(cuts, values, row, near, shares, gains, np.empty((n, n)), best, who)
    return cuts[: search(Z, least, start, stop, found)].copy()
