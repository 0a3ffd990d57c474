"""A whole refinement in one kernel: take over, relocate, then Lloyd's iterations to the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.cpu.bounds import (
    FEW_PAIRS,
    compare_all,
    compare_movers,
    compare_runners_up,
    filter_samples,
    measure_active,
)
from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.layout import CHUNK
from evomeans.engines.cpu.moves import (
    choose_movers,
    measure_drift,
    measure_reach,
    summarise_others,
)
from evomeans.engines.cpu.roulette import draw_nearby, measure_own, sum_chunks
from evomeans.engines.cpu.rows import remember_centers, write_row
from evomeans.engines.cpu.sums import update_centers
from evomeans.engines.cpu.threads import ABANDONED, meet
from evomeans.engines.rules import MAX_ITERATIONS

INERTIA, ITERATIONS, MOVERS, REST, GO_ON = range(5)
BEGIN, PLACE, LLOYD = range(3)
# A centre that is nowhere: beyond everything in the frame, its square within float32.
NOWHERE = 1e17


@jit
def refine(
    samples: Any,
    parent: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    target: Any,
    inherit: bool,
    removed: int,
    quantile: float,
    power: int,
    lloyd: bool,
    thread: int,
    n_threads: int,
) -> None:
    """Run K-means from the centres ``target``.

    Parameters
    ----------
    samples : Samples
    parent : State
        Consistent with ``centers.exact`` and ``centers.sums`` if ``inherit``; else these are zero.
    state : State, out
        May be ``parent`` itself.
    centers : Centers, in and out
    scratch : Scratch
        ``numbers`` receives inertia and iterations.
    target : (k, d) array
    inherit : bool
        Whether to begin from ``parent``.
    removed : int
        The centre to be put onto a sample drawn by distance; −1 for none.
    quantile, power
        Of that draw.
    lloyd : bool
        False to assign the samples to the target and stop there.
    thread, n_threads : int
    """
    first, last = share(samples.norms.shape[0], thread, n_threads)
    take_over(parent, state, scratch.pending, inherit, first, last)
    # Typed: Numba would compile what takes a literal number once more for it.
    stage, squared = np.int64(BEGIN), np.int64(2)
    while True:
        if thread == 0:
            move_centers(samples, centers, scratch, stage, target, removed, quantile)
        meet(scratch.barrier, n_threads)
        if scratch.numbers[GO_ON] == 0.0 or scratch.barrier[ABANDONED] != 0:
            break
        fresh = stage == BEGIN and not inherit
        reassign(samples, state, centers, scratch, fresh, first, last, thread, n_threads)
        meet(scratch.barrier, n_threads)
        if stage == BEGIN and removed >= 0:
            stage = np.int64(PLACE)
            measure_own(samples, state, centers.exact, power, scratch, first, last)
            meet(scratch.barrier, n_threads)
        elif lloyd:
            stage = np.int64(LLOYD)
        else:
            break
    measure_own(samples, state, centers.exact, squared, scratch, first, last)
    meet(scratch.barrier, n_threads)
    if thread == 0:
        scratch.numbers[INERTIA] = sum_chunks(scratch.partial)


@jit
def share(n_samples: int, thread: int, n_threads: int) -> Any:
    """Return the samples of a thread: whole chunks."""
    chunks = (n_samples + CHUNK - 1) // CHUNK
    first = CHUNK * (chunks * thread // n_threads)
    last = CHUNK * (chunks * (thread + 1) // n_threads)
    return first, min(last, n_samples)


@jit
def take_over(parent: Any, state: Any, pending: Any, inherit: bool, first: int, last: int) -> None:
    """Copy a parent's state, or mark all samples as pending."""
    if inherit:
        for i in range(first, last):
            for rank in range(parent.names.shape[1]):
                state.names[i, rank] = parent.names[i, rank]
            state.upper[i] = parent.upper[i]
            state.near[i] = parent.near[i]
            state.far[i] = parent.far[i]
    else:
        for i in range(first, last):
            pending[i] = i


@jit
def move_centers(
    samples: Any,
    centers: Any,
    scratch: Any,
    stage: Any,
    target: Any,
    removed: int,
    quantile: float,
) -> None:
    """Move the centres to where the stage wants them and sum the move up for the samples.

    BEGIN: to the target, a removed centre to nowhere. PLACE: the removed one onto a drawn sample.
    LLOYD: to the means of their clusters; if none moves, ``GO_ON`` becomes 0.
    """
    exact, before = centers.exact, centers.before
    drift, own_drift, numbers = centers.drift, centers.own_drift, scratch.numbers
    k, n_features = centers.weights.shape[0], exact.shape[1]
    for j in range(k):
        for t in range(n_features):
            before[j, t] = exact[j, t]
            if stage == BEGIN:
                exact[j, t] = NOWHERE if j == removed else target[j, t]
    if stage == BEGIN:
        numbers[ITERATIONS] = 0.0
    elif numbers[ITERATIONS] >= MAX_ITERATIONS:
        numbers[GO_ON] = 0.0
        return
    elif stage == PLACE:
        drawn = max(0, draw_nearby(scratch.nearby, scratch.partial, quantile))
        write_row(samples.rows, drawn, exact, removed)
    else:
        update_centers(centers.sums, samples.scales, samples.limb, exact, centers.weights)
    farthest = measure_drift(before, exact, k, drift)
    if stage == LLOYD and farthest == 0.0:
        numbers[GO_ON] = 0.0
        return
    for j in range(k):
        own_drift[j] = drift[j]
    if removed >= 0 and stage == BEGIN:
        # Leaving hurts nobody's bounds but those of the centre's own samples.
        drift[removed] = 0.0
    n_movers, rest = choose_movers(drift, k, centers.movers)
    summarise_others(drift, k, centers.others)
    remember_centers(samples.rows, exact, k, centers.copy, drift, stage == BEGIN)
    numbers[GO_ON] = 1.0
    numbers[MOVERS] = n_movers
    numbers[REST] = rest
    numbers[ITERATIONS] += 1.0


@jit
def reassign(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    fresh: bool,
    first: int,
    last: int,
    thread: int,
    n_threads: int,
) -> None:
    """Bring labels and bounds of a thread's samples up to date after a move of the centres."""
    left = last - first
    if not fresh:
        n_movers, rest = int(scratch.numbers[MOVERS]), np.float32(scratch.numbers[REST])
        k = centers.weights.shape[0]
        mine, end = k * thread // n_threads, k * (thread + 1) // n_threads
        measure_reach(centers.exact, centers.movers, n_movers, centers.reach, mine, end)
        meet(scratch.barrier, n_threads)
        count = filter_samples(state, centers, scratch, rest, first, last)
        scratch.counts[thread, FEW_PAIRS] += count
        near_doubt, far_doubt = measure_active(
            samples.rows, state, centers, scratch, rest, first, count
        )
        far_doubt = compare_runners_up(
            samples, state, centers, scratch, rest, first, near_doubt, far_doubt, thread
        )
        left = compare_movers(
            samples.rows, state, centers, scratch, n_movers, first, far_doubt, thread
        )
    compare_all(samples, state, centers, scratch, fresh, first, left, thread)
