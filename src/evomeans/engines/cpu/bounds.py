"""One assignment step: bounds first, a few distances where they fail, all of them as a last resort.

A row of sieves, each leaving fewer samples to the next: :func:`filter_samples` looks at bounds
only, :func:`measure_active` at the distance to the own centre, :func:`compare_runners_up` and
:func:`compare_movers` at those to a few others, and :func:`compare_all` at every centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.moves import LESS, MORE
from evomeans.engines.cpu.rows import rank_samples, squared_distance
from evomeans.engines.cpu.sums import transfer
from evomeans.engines.cpu.tile import RANKS, WIDTH

FEW_PAIRS, ALL_PAIRS = range(2)
UNIT = np.float32(2.0**-24)
# Distances in double precision that differ by less than this are left to the one place that
# decides between centres; rounding is a hundred times smaller.
CLOSE_CALL = 1e-12


@jit
def safe_distance(far: Any, rest: Any, others: Any, reach: Any, above: Any) -> Any:
    """Return a bound below the distances to all centres that are neither the own nor a runner-up.

    Parameters
    ----------
    far : float32
        Bound on those that are no movers.
    rest : float32
        τ, which has been taken off ``far`` already.
    others, reach : float32
        Of the own centre: the farthest move of any other, and the distance to the closest mover.
    above : float32
        At least the distance to the own centre.
    """
    return LESS * max(far + (rest - others), min(far, reach - above))


@jit
def filter_samples(state: Any, centers: Any, scratch: Any, rest: Any, first: int, last: int) -> int:
    """Widen the bounds of samples ``first`` to ``last`` by what the centres moved; list failures.

    Without branches, here and in the next two sieves: which bounds fail is as good as random, and
    a processor that guesses wrong loses more time than a distance takes. So ``far`` becomes the
    bound on all of the rest whether or not that is good enough, and the bound on those that are no
    movers goes to ``scratch.beyond``.

    Returns
    -------
    count : int
        ``active[first:first + count]`` are the samples whose bounds fail.
    """
    names, upper, near, far = state.names, state.upper, state.near, state.far
    drift, own_drift = centers.drift, centers.own_drift
    reach, others = centers.reach, centers.others
    active, beyond = scratch.active, scratch.beyond
    count = first
    for i in range(first, last):
        a = names[i, 0]
        watched = max(drift[names[i, 1]], max(drift[names[i, 2]], drift[names[i, 3]]))
        above = (upper[i] + own_drift[a]) * MORE
        below = near[i] * LESS - watched
        rest_bound = far[i] * LESS - rest
        safe = safe_distance(rest_bound, rest, others[a], reach[a], above)
        upper[i] = above
        near[i] = below
        far[i] = safe
        beyond[i] = rest_bound
        active[count] = i
        count += not above < min(below, safe)
    return count - first


@jit
def measure_active(
    rows: Any, state: Any, centers: Any, scratch: Any, rest: Any, first: int, count: int
) -> Any:
    """Measure the own distance of samples ``active[first:first + count]``; look at bounds again.

    Returns
    -------
    near_doubt, far_doubt : int
        ``active[first:first + near_doubt]`` are not safe from their runners-up; of the others,
        ``pending[first:first + far_doubt]`` are not safe from the rest.
    """
    names, upper, near, far = state.names, state.upper, state.near, state.far
    exact, reach, others = centers.exact, centers.reach, centers.others
    active, pending = scratch.active, scratch.pending
    nearby, beyond = scratch.nearby, scratch.beyond
    near_doubt, far_doubt = first, first
    for position in range(first, first + count):
        i = active[position]
        a = names[i, 0]
        own = squared_distance(rows, i, exact, a)
        above = np.float32(np.sqrt(own)) * MORE
        safe = safe_distance(beyond[i], rest, others[a], reach[a], above)
        is_near_safe = above < near[i]
        nearby[i] = own
        upper[i] = above
        far[i] = safe
        active[near_doubt] = i
        near_doubt += not is_near_safe
        pending[far_doubt] = i
        far_doubt += is_near_safe & (not above < safe)
    return near_doubt - first, far_doubt - first


@jit
def compare_runners_up(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    rest: Any,
    first: int,
    count: int,
    far_doubt: int,
    thread: int,
) -> int:
    """Compare samples ``active[first:first + count]`` with their runners-up.

    Returns
    -------
    far_doubt : int
        The samples in ``pending``, with those of here that are not safe from the rest.
    """
    rows, weights = samples.rows, samples.weights
    names, upper, near, far = state.names, state.upper, state.near, state.far
    exact, reach, others = centers.exact, centers.reach, centers.others
    active, pending = scratch.active, scratch.pending
    nearby, beyond = scratch.nearby, scratch.beyond
    sums = centers.sums[thread]
    left = first + far_doubt
    for position in range(first, first + count):
        i = active[position]
        own, best, second, rank = nearby[i], np.inf, np.inf, 1
        for r in range(1, RANKS - 1):
            square = squared_distance(rows, i, exact, names[i, r])
            rank = r if square < best else rank
            second = min(second, max(best, square))
            best = min(best, square)
        lowest, following = min(own, best), min(max(own, best), second)
        above = np.float32(np.sqrt(lowest)) * MORE
        upper[i] = above
        near[i] = np.float32(np.sqrt(following)) * LESS
        if following - lowest <= CLOSE_CALL * following:
            # Not safe from anybody, then, until all centres have been compared.
            beyond[i] = -np.inf
        elif best < own:
            a, b = names[i, 0], names[i, rank]
            names[i, 0], names[i, rank] = b, a
            weight = weights[i] if weights.shape[0] else 1.0
            transfer(sums, a, b, rows, i, weight, samples.scales, samples.limb)
        label = names[i, 0]
        safe = safe_distance(beyond[i], rest, others[label], reach[label], above)
        far[i] = safe
        pending[left] = i
        left += not above < safe
    scratch.counts[thread, FEW_PAIRS] += count * (RANKS - 2)
    return left - first


@jit
def compare_movers(
    rows: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    n_movers: int,
    first: int,
    count: int,
    thread: int,
) -> int:
    """Compare samples ``pending[first:first + count]`` with the movers.

    Returns
    -------
    left : int
        How many of them, moved to the front, have to be compared with all centres.
    """
    names, upper, far = state.names, state.upper, state.far
    exact, movers = centers.exact, centers.movers
    pending, beyond = scratch.pending, scratch.beyond
    left, pairs = first, 0
    for position in range(first, first + count):
        i = pending[position]
        closest = -1.0
        if upper[i] < beyond[i]:
            closest = np.inf
            for q in range(n_movers):
                j = movers[q]
                if j != names[i, 0] and j != names[i, 1] and j != names[i, 2] and j != names[i, 3]:
                    closest = min(closest, squared_distance(rows, i, exact, j))
                    pairs += 1
        safe = min(beyond[i], np.float32(np.sqrt(max(0.0, closest))) * LESS)
        far[i] = safe
        pending[left] = i
        left += not upper[i] < safe
    scratch.counts[thread, FEW_PAIRS] += pairs
    return left - first


@jit
def compare_all(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    fresh: bool,
    first: int,
    count: int,
    thread: int,
) -> None:
    """Find the closest centre of the samples ``pending[first:first + count]`` among all.

    Parameters
    ----------
    fresh : bool
        The samples have no centre yet.
    """
    rows, norms, weights = samples.rows, samples.norms, samples.weights
    names, upper, near, far = state.names, state.upper, state.near, state.far
    pending, keys = scratch.pending, scratch.keys[thread]
    key_squares = scratch.key_squares[thread]
    sums, exact = centers.sums[thread], centers.exact
    k = centers.weights.shape[0]
    bits = scratch.name_bits
    mask = np.int32((1 << bits) - 1)
    # Rounding of the distances, and the bits that the names have taken.
    relative = samples.roundoff + np.float32(1 << bits) * UNIT
    for begin in range(first, first + count, WIDTH):
        filled = min(WIDTH, first + count - begin)
        rank_samples(rows, pending, begin, filled, centers, bits, scratch, thread)
        for lane in range(filled):
            i = pending[begin + lane]
            before = -1 if fresh else int(names[i, 0])
            absolute = np.float32(8.0) * UNIT * norms[i]
            for rank in range(RANKS - 1):
                names[i, rank] = keys[rank * WIDTH + lane] & mask
            for rank in range(RANKS):
                keys[rank * WIDTH + lane] &= ~mask
            above = np.sqrt(key_squares[lane])
            below = np.sqrt(key_squares[WIDTH + lane])
            beyond = np.sqrt(key_squares[4 * WIDTH + lane])
            above = above + relative * above + absolute
            below = below - relative * below - absolute
            far[i] = beyond - relative * beyond - absolute
            if not above < below:
                label, best, second = decide(rows, i, exact, k)
                above, below = np.float32(best) * MORE, np.float32(second) * LESS
                rank = 0
                while rank < RANKS - 2 and names[i, rank] != label:
                    rank += 1
                if names[i, rank] != label:
                    far[i] = below
                names[i, rank] = names[i, 0]
                names[i, 0] = label
            upper[i] = above
            near[i] = below
            label = int(names[i, 0])
            if label != before:
                weight = weights[i] if weights.shape[0] else 1.0
                transfer(sums, before, label, rows, i, weight, samples.scales, samples.limb)
    scratch.counts[thread, ALL_PAIRS] += count * k


@jit
def decide(rows: Any, i: int, exact: Any, k: int) -> Any:
    """Compare a sample with all centres in double precision; the lowest index wins a tie.

    Returns
    -------
    label : int
    best, second : float
        The distances to that centre and to the next one.
    """
    best, second, label = np.inf, np.inf, 0
    for j in range(k):
        square = squared_distance(rows, i, exact, j)
        if square < best:
            best, second, label = square, best, j
        else:
            second = min(second, square)
    return label, np.sqrt(best), np.sqrt(second)
