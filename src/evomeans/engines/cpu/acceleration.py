"""K-means with momentum, compiled: the rules of :mod:`evomeans.engines.course`.

The arithmetic is the same, to the last bit. A run takes dozens of iterations, and if Python decided
after each of them where centres go, all other threads would wait for it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import call_at, jit
from evomeans.engines.course import EARLIEST, MOST_GAIN, PLAIN_STEPS
from evomeans.engines.cpu.layout import Centers, Samples, Scratch, State
from evomeans.engines.cpu.refine import BEGIN, INERTIA, ITERATIONS, move_centers
from evomeans.engines.cpu.sums import update_center
from evomeans.engines.cpu.threads import ABANDONED, meet
from evomeans.engines.rules import MAX_ITERATIONS
from evomeans.typing import FloatArray

# What comes next, in ``MomentumState.verdict``.
GO_ON, ARRIVED, HOPELESS = range(3)


@bundle
class MomentumState(NamedTuple):
    """How centres move with momentum.

    * ``means``, ``before`` (k, d): means of the clusters, and those of the assignment before.
    * ``weights`` (k,): of the clusters.
    * ``explained`` (MAX_ITERATIONS,): what the centres explain, after each assignment.
    * ``t`` (1,): of Nesterov's method.
    * ``verdict`` (1,): GO_ON, ARRIVED or HOPELESS.
    """

    means: FloatArray
    before: FloatArray
    weights: FloatArray
    explained: FloatArray
    t: FloatArray
    verdict: FloatArray

    @classmethod
    def allocate(cls, n_clusters: int, n_features: int) -> MomentumState:
        """Allocate the arrays."""
        means, before = np.empty((2, n_clusters, n_features))
        weights, explained = np.empty(n_clusters), np.empty(MAX_ITERATIONS)
        return cls(means, before, weights, explained, np.empty(1), np.empty(1))


@jit(by_address=True)
def lead(
    samples: Samples,
    state: State,
    centers: Centers,
    scratch: Scratch,
    momentum: MomentumState,
    least: float,
    assign: int,
    thread: int,
    n_threads: int,
) -> None:
    """Lead the centres to a fixed point, or near one, from where samples have just been assigned.

    They have to explain the ``least`` in the end, 0 for anything. ``centers.target`` is where they
    are then. ITERATIONS are added to ``scratch.numbers``; if it is hopeless to go on, INERTIA is
    infinite. ``assign`` is the address of :func:`~evomeans.engines.cpu.assignment.reassign`.
    """
    stage, iterations = np.int64(BEGIN), 0
    while True:
        if thread == 0:
            verdict = judge(samples, centers, scratch, momentum, iterations, least)
            if verdict == GO_ON:
                verdict = choose_target(centers, momentum, iterations)
            momentum.verdict[0] = verdict
        meet(scratch.barrier, n_threads)
        is_over = momentum.verdict[0] != GO_ON or iterations == MAX_ITERATIONS - 1
        if is_over or scratch.barrier[ABANDONED] != 0:
            break
        target = centers.target
        move_centers(samples, centers, scratch, stage, target, -1, 0.0, thread, n_threads)
        meet(scratch.barrier, n_threads)
        call_at(assign, samples, state, centers, scratch, np.int64(-1), thread, n_threads)
        meet(scratch.barrier, n_threads)
        iterations += 1
    if thread == 0:
        scratch.numbers[ITERATIONS] += iterations
        scratch.numbers[INERTIA] = np.inf if momentum.verdict[0] == HOPELESS else 0.0
        for j in range(centers.exact.shape[0]):
            for t in range(centers.exact.shape[1]):
                centers.target[j, t] = centers.exact[j, t]
    meet(scratch.barrier, n_threads)


@jit
def judge(
    samples: Samples,
    centers: Centers,
    scratch: Scratch,
    momentum: MomentumState,
    n_steps: int,
    least: float,
) -> int:
    """Set the means and weights of clusters; return HOPELESS if they promise too little."""
    exact, means, total = centers.exact, momentum.means, 0.0
    scales, limb, totals = samples.scales, samples.limb, scratch.totals[0]
    for j in range(exact.shape[0]):
        for t in range(exact.shape[1]):
            means[j, t] = exact[j, t]
        update_center(centers.sums, scales, limb, means, momentum.weights, j, totals)
        own = 0.0
        for t in range(exact.shape[1]):
            own += exact[j, t] * (2.0 * means[j, t] - exact[j, t])
        total += momentum.weights[j] * own
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
