"""One assignment step: bounds first, a few distances where they fail, all of them as a last resort.

Three sieves, each leaving fewer samples to the next: :func:`filter_samples` looks at bounds only,
:func:`compare_few` at the distances to the own centre, the runners-up and the movers, and
:func:`compare_all` at every centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.moves import LESS, MORE
from evomeans.engines.cpu.rows import rank_samples, squared_distance
from evomeans.engines.cpu.sums import transfer
from evomeans.engines.cpu.tile import RANKS, WIDTH

CHANGED, FAILED, FEW_PAIRS, ALL_PAIRS, DECIDED = range(5)
UNIT = np.float32(2.0**-24)
# Distances in double precision that differ by less than this are left to the one place that
# decides between centres; rounding is a hundred times smaller.
CLOSE_CALL = 1e-12


@jit
def filter_samples(state: Any, centers: Any, rest: Any, active: Any, first: int, last: int) -> int:
    """Widen the bounds of samples ``first`` to ``last`` by what the centres moved; list failures.

    Of the samples that fail, ``far`` is left as the bound on the centres that are no movers.
    """
    names, upper, near, far = state.names, state.upper, state.near, state.far
    drift, own_drift = centers.drift, centers.own_drift
    reach, others = centers.reach, centers.others
    count = first
    for i in range(first, last):
        a = names[i, 0]
        watched = max(drift[names[i, 1]], max(drift[names[i, 2]], drift[names[i, 3]]))
        above = (upper[i] + own_drift[a]) * MORE
        below = near[i] * LESS - watched
        beyond = far[i] * LESS
        safe = max(beyond - others[a], min(beyond - rest, reach[a] - above))
        keeps = above < min(below, safe)
        upper[i] = above
        near[i] = below
        far[i] = safe if keeps else beyond - rest
        active[count] = i
        count += not keeps
    return count - first


@jit
def compare_few(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    rest: Any,
    n_movers: int,
    first: int,
    count: int,
    thread: int,
) -> int:
    """Compare samples ``active[first:first + count]`` with the centres their bounds are afraid of.

    Returns
    -------
    left : int
        ``pending[first:first + left]`` have to be compared with all centres.
    """
    rows, weights = samples.rows, samples.weights
    names, upper, near, far = state.names, state.upper, state.near, state.far
    exact, reach, others = centers.exact, centers.reach, centers.others
    movers, sums = centers.movers, centers.sums[thread]
    active, pending = scratch.active, scratch.pending
    changed, pairs = 0, count
    left = first
    for position in range(first, first + count):
        i = active[position]
        a = names[i, 0]
        own = np.sqrt(squared_distance(rows, i, exact, a))
        above = np.float32(own) * MORE
        beyond = far[i]
        safe = LESS * max(beyond + (rest - others[a]), min(beyond, reach[a] - above))
        if not above < near[i]:
            best, second, rank = np.inf, np.inf, 1
            for r in range(1, RANKS - 1):
                distance = np.sqrt(squared_distance(rows, i, exact, names[i, r]))
                if distance < best:
                    best, second, rank = distance, best, r
                else:
                    second = min(second, distance)
            pairs += RANKS - 2
            gap = best - own if own < best else min(own, second) - best
            if gap <= CLOSE_CALL * own:
                upper[i] = above
                pending[left] = i
                left += 1
                continue
            if best < own:
                b = names[i, rank]
                names[i, 0] = b
                names[i, rank] = a
                weight = weights[i] if weights.shape[0] else 1.0
                transfer(sums, a, b, rows, i, weight, samples.scales, samples.limb)
                changed += 1
                best, second, own = own, min(own, second), best
                above = np.float32(own) * MORE
                near[i] = np.float32(second) * LESS
            else:
                near[i] = np.float32(best) * LESS
        upper[i] = above
        if above < safe:
            far[i] = safe
            continue
        if above < beyond:
            closest = np.inf
            for q in range(n_movers):
                j = movers[q]
                if j != names[i, 0] and j != names[i, 1] and j != names[i, 2] and j != names[i, 3]:
                    closest = min(closest, squared_distance(rows, i, exact, j))
                    pairs += 1
            bound = np.float32(np.sqrt(closest)) * LESS
            if above < bound:
                far[i] = min(beyond, bound)
                continue
        pending[left] = i
        left += 1
    scratch.counts[thread, CHANGED] += changed
    scratch.counts[thread, FAILED] += count
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
    changed, decided = 0, 0
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
                decided += 1
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
                changed += 1
    scratch.counts[thread, CHANGED] += changed
    scratch.counts[thread, DECIDED] += decided
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
