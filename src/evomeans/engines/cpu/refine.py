"""A refinement in one kernel: copy the parent, relocate, run K-means, swap centres; and momentum.

"What is valid when" in docs/background/cpu-engine.md shows the stages of :func:`descend`. All
threads run the same code. They leave the loop together, since every reason to leave it is data
that all of them read after the same barrier.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import call_at, jit
from evomeans.engines.course import EARLIEST, MOST_GAIN, PLAIN_STEPS
from evomeans.engines.cpu.assignment import forget, reassign
from evomeans.engines.cpu.layout import (
    FAR,
    MORE,
    NOTHING,
    NOWHERE,
    Centers,
    Solution,
    State,
    WorkArrays,
    copy_row,
    remember_center,
    write_row,
)
from evomeans.engines.cpu.seeding import draw_nearby, set_distances, sum_chunks, sum_nearby
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.sums import follow_sums, set_length_one, update_center
from evomeans.engines.cpu.swaps.lists import SUCCESSES
from evomeans.engines.cpu.threads import ABANDONED, meet, nth_item, share
from evomeans.engines.rules import MAX_ITERATIONS
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Index, SingleArray


@jit(inline=False)
def begin(
    parent: Solution, state: State, centers: Centers, inherit: bool, thread: int, n_threads: int
) -> None:
    """Copy a thread's share of the parent, or begin with sums of zero."""
    if inherit:
        copy_state(parent.state, state, thread, n_threads)
        first, last = share(parent.centers.shape[0], thread, n_threads)
        for j in range(first, last):
            copy_row(parent.centers, j, centers.exact, j)
    totals = parent.sums
    for j in range(totals.shape[0]):
        for limb in range(totals.shape[1]):
            for t in range(totals.shape[2]):
                # One thread has them all.
                own = totals[j, limb, t] if inherit and thread == 0 else 0
                centers.sums[thread, j, limb, t] = own


@jit(inline=False)
def copy_state(parent: State, state: State, thread: int, n_threads: int) -> None:
    """Copy the parent's state for a thread's share of the tiles."""
    n_tiles = state.spread.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for lane in range(WIDTH):
            state.labels[tile, lane] = parent.labels[tile, lane]
        state.spread[tile] = parent.spread[tile]
        for j in range(state.gaps.shape[1]):
            state.gaps[tile, j] = parent.gaps[tile, j]
            state.present[tile, j] = parent.present[tile, j]


@jit(inline=False)
def conclude(work: WorkArrays, found: Solution, is_limited: bool) -> None:
    """Write down the solution; if K-means ``is_limited``, set the weights of clusters as well."""
    samples, centers, totals = work.samples, work.centers, found.sums
    last = totals.shape[2] - 1
    for j in range(totals.shape[0]):
        for limb in range(totals.shape[1]):
            for t in range(totals.shape[2]):
                total = np.int64(0)
                for thread in range(centers.sums.shape[0]):
                    total += centers.sums[thread, j, limb, t]
                totals[j, limb, t] = total
        if is_limited:
            weight = totals[j, 0, last] + totals[j, 1, last] / samples.limb
            centers.weights[j] = weight / samples.scales[last]
        found.weights[j] = centers.weights[j]
        copy_row(centers.exact, j, found.centers, j)


@jit
def count_empty(weights: FloatArray) -> int:
    """Count the clusters that have no weight."""
    count = 0
    for j in range(weights.shape[0]):
        count += weights[j] == 0.0
    return count


# Stages: where centres move to, see ``move_centers``.
BEGIN, PLACE, LLOYD = range(3)
# Drift of a centre that moved by so little that its square vanishes in single precision.
SMALLEST = np.float32(1e-37)
Start = tuple[FloatArray, int, float]
"""Where centres go, the one that is removed (−1 for none), and the number to draw its place by."""


@jit(by_address=True)
def refine(
    work: WorkArrays, parent: Solution, found: Solution, thread: int, n_threads: int
) -> None:
    """Run K-means from the centres ``centers.target``; try swaps, and run it again after them.

    No swaps are tried if a cluster is empty.

    * ``work``: its ``record`` says what to do, and ``scratch.outcome`` what came of it.
    * ``parent``: not read unless the record says ``inherit``.
    * ``found``, out: where the refinement ends. It may be the ``parent``, if that is what
      ``centers`` hold.
    """
    todo, outcome = work.record[0], work.scratch.outcome[0]
    centers, scratch, undo = work.centers, work.scratch, work.undo
    state, inherit, steps, placed = found.state, todo.inherit, todo.steps, todo.placed
    if not inherit:
        forget(state, centers.weights.shape[0], thread, n_threads)
    if not inherit or parent.state.labels.ctypes.data != state.labels.ctypes.data:
        begin(parent, state, centers, inherit, thread, n_threads)
    first, last = share(centers.target.shape[0], thread, n_threads)
    if placed >= 0 and first <= todo.gone < last:
        write_row(work.samples.rows, placed, centers.target, todo.gone)
    if work.samples.on_sphere != 0.0:
        # Crossovers may leave averages.
        for j in range(first, last):
            set_length_one(centers.target, j, centers.target)
    if thread == 0:
        outcome.iterations, outcome.swaps_kept = 0, -1
    start = centers.target, todo.gone if placed < 0 else -1, todo.uniform
    while True:
        if todo.lead != 0:
            # A single assignment; from there on there is momentum.
            descend(work, state, start, -1, 0, thread, n_threads)
            if scratch.barrier[ABANDONED] != 0:
                break
            call_at(todo.lead, work, state, thread, n_threads)
            if outcome.inertia == np.inf or scratch.barrier[ABANDONED] != 0:
                break
            start = centers.target, -1, 0.0
        descend(work, state, start, steps, todo.move, thread, n_threads)
        if todo.swap == 0 or outcome.swaps_kept >= 0 or count_empty(centers.weights) > 0:
            break
        if scratch.barrier[ABANDONED] != 0:
            break
        meet(scratch.barrier, n_threads)
        if thread == 0:
            outcome.unswapped = outcome.inertia
            call_at(todo.swap, work, state, todo.swaps, todo.quantile)
            outcome.swaps_kept = undo.numbers[SUCCESSES]
        meet(scratch.barrier, n_threads)
        if outcome.swaps_kept == 0:
            break
        # On all samples, because swaps only look at their neighbourhood.
        start = work.clusters.centers, -1, 0.0
    if thread == 0:
        conclude(work, found, steps < MAX_ITERATIONS)
        outcome.n_empty = count_empty(found.weights)


@jit(inline=False)
def descend(
    work: WorkArrays,
    state: State,
    start: Start,
    steps: int,
    single_moves: int,
    thread: int,
    n_threads: int,
) -> None:
    """Run K-means and single moves; see :func:`refine`."""
    # Typed, because Numba would compile the callees again for literal integers.
    stage, squared = np.int64(BEGIN), np.int64(2)
    scratch, todo, removed, iterations = work.scratch, work.record[0], start[1], 0
    while iterations < MAX_ITERATIONS:
        move_centers(work, stage, start, thread, n_threads)
        meet(scratch.barrier, n_threads)
        if single_moves != 0 and nothing_moved(scratch.largest_move):
            call_at(single_moves, work, state, thread, n_threads)
        if nothing_moved(scratch.largest_move) or scratch.barrier[ABANDONED] != 0:
            break
        iterations += 1
        gone = removed if stage == BEGIN else -1
        call_at(todo.assign, work, state, gone, thread, n_threads)
        meet(scratch.barrier, n_threads)
        if scratch.barrier[ABANDONED] != 0:
            break
        if stage == BEGIN and removed >= 0:
            stage = np.int64(PLACE)
            sum_distances(work, state, todo.power, thread, n_threads)
        elif steps > 0:
            stage = np.int64(LLOYD)
            steps -= 1
        else:
            break
    if thread == 0:
        scratch.outcome[0].iterations += iterations
    if scratch.barrier[ABANDONED] != 0 or steps < 0:
        return
    sum_distances(work, state, squared, thread, n_threads)


@jit(by_address=True)
def step(
    work: WorkArrays, state: State, fresh: bool, gone: int, thread: int, n_threads: int
) -> None:
    """Move the centres to ``centers.target`` and assign the samples to them, once.

    If nothing is known of the samples (``fresh``), the sums are zero. ``gone`` is a centre that is
    moved NOWHERE instead; −1 for none.
    """
    centers, barrier = work.centers, work.scratch.barrier
    if fresh:
        forget(state, centers.weights.shape[0], thread, n_threads)
    move_centers(work, np.int64(BEGIN), (centers.target, gone, 0.0), thread, n_threads)
    meet(barrier, n_threads)
    reassign(work, state, gone, thread, n_threads)
    meet(barrier, n_threads)


@jit(inline=False, by_address=True)
def sum_distances(
    work: WorkArrays, state: State, power: Index, thread: int, n_threads: int
) -> None:
    """Set the inertia of the outcome to Σ w‖x − c‖ᵖ over all samples and their own centres."""
    samples, scratch = work.samples, work.scratch
    set_distances(samples, state, work.centers.exact, power, scratch, thread, n_threads)
    meet(scratch.barrier, n_threads)
    sum_nearby(samples.places, scratch, thread, n_threads)
    meet(scratch.barrier, n_threads)
    if thread == 0:
        scratch.outcome[0].inertia = sum_chunks(scratch.partial)
    meet(scratch.barrier, n_threads)


@jit(inline=False)
def move_centers(work: WorkArrays, stage: Index, start: Start, thread: int, n_threads: int) -> None:
    """Move a thread's share of the centres, and set how far they moved.

    BEGIN moves them to the target, and a removed centre NOWHERE. PLACE moves the removed centre to
    a drawn sample. LLOYD moves centres to the means of their clusters, or on the sphere to the
    directions of these.
    """
    target, removed, quantile = start
    samples, centers, scratch = work.samples, work.centers, work.scratch
    exact, before, drift = centers.exact, centers.before, centers.drift
    first, last = share(drift.shape[0], thread, n_threads)
    # Only Lloyd's iterations end when nothing has moved.
    farthest = NOTHING if stage == LLOYD else FAR
    for j in range(first, last):
        drift[j] = centers.approached[j] = NOTHING
        if (stage == LLOYD and not is_touched(centers.touched, j)) or (
            stage == PLACE and j != removed
        ):
            continue
        centers.changed[j] = 1
        copy_row(exact, j, before, j)
        if stage == BEGIN:
            for t in range(exact.shape[1]):
                exact[j, t] = NOWHERE if j == removed else target[j, t]
            # The first Lloyd step moves it to the mean even if no sample changes its label.
            centers.touched[thread, j] = 1
        elif stage == PLACE:
            drawn = draw_nearby(scratch.nearby, scratch.partial, samples.places, quantile)
            write_row(samples.rows, drawn, exact, removed)
        else:
            follow_sums(samples, centers, j, scratch.totals[thread])
        remember_center(samples.rows, exact, j)
        moved = np.sqrt(squared_difference(before, j, exact, j))
        drift[j] = max(np.float32(moved) * MORE, SMALLEST if moved > 0.0 else NOTHING)
        # A centre that is taken away comes nearer to no sample.
        centers.approached[j] = NOTHING if stage == BEGIN and j == removed else drift[j]
        farthest = max(farthest, drift[j])
    scratch.largest_move[thread, 0] = farthest


@jit
def nothing_moved(largest_move: SingleArray) -> np.bool_:
    """Whether no thread has moved a centre."""
    total = NOTHING
    for thread in range(largest_move.shape[0]):
        total += largest_move[thread, 0]
    return total == NOTHING


@jit
def is_touched(touched: NDArray[np.uint8], j: int) -> bool:
    """Whether any thread has changed the sums of a cluster; resets its marks."""
    found = False
    for thread in range(touched.shape[0]):
        if touched[thread, j]:
            touched[thread, j] = 0
            found = True
    return found


# ---- momentum ------------------------------------------------------------------------------------

# The rules are those of engines/course.py, and so is the arithmetic, to the last bit.

# What comes next, in ``MomentumState.verdict``.
GO_ON, ARRIVED, HOPELESS = range(3)


@bundle
class MomentumState(NamedTuple):
    """How centres move with momentum.

    * ``means``, ``before`` (k, d): means of the clusters, and those of the assignment before.
    * ``weights`` (k,): of the clusters.
    * ``own`` (k,): what each centre explains.
    * ``explained`` (MAX_ITERATIONS,): what the centres explain, after each assignment.
    * ``t`` (1,): of Nesterov's method.
    * ``verdict`` (1,): GO_ON, ARRIVED or HOPELESS.
    """

    means: FloatArray
    before: FloatArray
    weights: FloatArray
    own: FloatArray
    explained: FloatArray
    t: FloatArray
    verdict: FloatArray

    @classmethod
    def allocate(cls, n_clusters: int, n_features: int) -> MomentumState:
        """Allocate the arrays."""
        means, before = np.empty((2, n_clusters, n_features))
        (weights, own), explained = np.empty((2, n_clusters)), np.empty(MAX_ITERATIONS)
        return cls(means, before, weights, own, explained, np.empty(1), np.empty(1))


@jit(by_address=True)
def lead(work: WorkArrays, state: State, thread: int, n_threads: int) -> None:
    """Lead the centres to a fixed point, or near one, from where samples have just been assigned.

    ``centers.target`` is where they are then. If it is hopeless to go on, the inertia of the
    outcome is infinite.
    """
    centers, scratch, momentum = work.centers, work.scratch, work.momentum
    outcome, stage, iterations = scratch.outcome[0], np.int64(BEGIN), 0
    while True:
        average(work, thread, n_threads)
        meet(scratch.barrier, n_threads)
        if thread == 0:
            verdict = judge(momentum, iterations, work.record[0].least)
            if verdict == GO_ON:
                verdict = choose_target(centers, momentum, iterations)
            momentum.verdict[0] = verdict
        meet(scratch.barrier, n_threads)
        is_over = momentum.verdict[0] != GO_ON or iterations == MAX_ITERATIONS - 1
        if is_over or scratch.barrier[ABANDONED] != 0:
            break
        move_centers(work, stage, (centers.target, -1, 0.0), thread, n_threads)
        meet(scratch.barrier, n_threads)
        call_at(work.record[0].assign, work, state, np.int64(-1), thread, n_threads)
        meet(scratch.barrier, n_threads)
        iterations += 1
    if thread == 0:
        outcome.iterations += iterations
        outcome.inertia = np.inf if momentum.verdict[0] == HOPELESS else 0.0
        for j in range(centers.exact.shape[0]):
            copy_row(centers.exact, j, centers.target, j)
    meet(scratch.barrier, n_threads)


@jit
def average(work: WorkArrays, thread: int, n_threads: int) -> None:
    """Set the means and weights of a thread's share of the clusters, and what these explain."""
    momentum, sums, totals = work.momentum, work.centers.sums, work.scratch.totals[thread]
    exact, means = work.centers.exact, momentum.means
    first, last = share(exact.shape[0], thread, n_threads)
    for j in range(first, last):
        copy_row(exact, j, means, j)
        update_center(work.samples, sums, means, momentum.weights, j, totals)
        own = 0.0
        for t in range(exact.shape[1]):
            own += exact[j, t] * (2.0 * means[j, t] - exact[j, t])
        momentum.own[j] = momentum.weights[j] * own


@jit
def judge(momentum: MomentumState, n_steps: int, least: float) -> int:
    """Note what the centres explain; return HOPELESS if they promise too little."""
    total = 0.0
    for j in range(momentum.own.shape[0]):
        total += momentum.own[j]
    momentum.explained[n_steps] = total
    count = n_steps + 1
    if least == 0.0 or count < EARLIEST:
        return GO_ON
    gained = max(0.0, total - momentum.explained[count // 2 - 1])
    return HOPELESS if total + MOST_GAIN * gained < least else GO_ON


@jit
def choose_target(centers: Centers, momentum: MomentumState, n_steps: int) -> int:
    """Set the target of the centres; return ARRIVED if they are at a fixed point."""
    exact, means, before, target = centers.exact, momentum.means, momentum.before, centers.target
    k, d = exact.shape[0], exact.shape[1]
    is_fixed, is_moving, uphill = True, False, 0.0
    for j in range(k):
        for t in range(d):
            is_fixed = is_fixed and exact[j, t] == means[j, t]
    if is_fixed:
        return ARRIVED
    share = 0.0
    if n_steps == 0:
        momentum.t[0] = 1.0
    if n_steps >= PLAIN_STEPS:
        for j in range(k):
            for t in range(d):
                step = means[j, t] - before[j, t] if momentum.weights[j] != 0.0 else 0.0
                is_moving = is_moving or step != 0.0
                uphill += momentum.weights[j] * (exact[j, t] - means[j, t]) * step
        if not is_moving or uphill > 0.0:
            momentum.t[0] = 1.0
        if is_moving:
            last = momentum.t[0]
            later = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * last * last))
            share = (last - 1.0) / later
            momentum.t[0] = later
    for j in range(k):
        for t in range(d):
            step = means[j, t] - before[j, t] if momentum.weights[j] != 0.0 else 0.0
            target[j, t] = means[j, t] + share * step if is_moving else means[j, t]
            before[j, t] = means[j, t]
    return GO_ON
