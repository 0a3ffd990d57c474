"""What the centres did in a step, boiled down to a few numbers per cluster.

A sample keeps its centre c_a if its distance to it stays below those to all others. The three
runners-up of the sample are watched one by one. Of the rest, the few that moved far (the movers)
are told apart from those that moved by at most τ:

    distance to a runner-up b     ≥ near − drift_b
    distance to one of the rest   ≥ far − τ
    distance to a mover j         ≥ max(far − drift_j, ‖c_a − c_j‖ − upper)

so that one centre that jumps through the space does not spoil the bounds of everybody.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.rows import squared_difference

# Single-precision results may be off by a few units of 2⁻²⁴; bounds are widened by a little more.
PAD = np.float32(2.0**-21)
MORE = np.float32(1.0) + PAD
LESS = np.float32(1.0) - PAD


@jit
def measure_drift(before: Any, after: Any, k: int, drift: Any) -> Any:
    """How far every centre moved, rounded up; exactly zero for those that did not.

    Returns
    -------
    farthest : float32
    """
    farthest = np.float32(0.0)
    for j in range(k):
        drift[j] = np.float32(np.sqrt(squared_difference(before, j, after, j))) * MORE
        farthest = max(farthest, drift[j])
    return farthest


@jit
def choose_movers(drift: Any, k: int, movers: Any) -> Any:
    """Split the centres into at most an eighth that moved farthest, and the rest.

    A sample is compared with the movers one by one, at four times the cost per centre of comparing
    it with all centres in a tile: more movers would not pay.

    Returns
    -------
    n_movers : int
        ``movers[:n_movers]`` lists them; none if no useful split exists.
    rest : float32
        τ, the farthest move of the rest.
    """
    farthest = np.float32(0.0)
    for j in range(k):
        if drift[j] < np.inf:
            farthest = max(farthest, drift[j])
    limit = max(1, k // 8)
    level = np.float32(0.0)
    for attempt in range(5):
        # τ = 0 first: only what moved at all; then an eighth, a quarter, a half of the farthest.
        if attempt > 0:
            level = farthest * np.float32(2.0 ** (attempt - 4))
        count = 0
        for j in range(k):
            count += drift[j] > level
        if count <= limit:
            break
    n_movers = 0
    rest = np.float32(0.0)
    for j in range(k):
        if drift[j] > level and n_movers < limit:
            movers[n_movers] = j
            n_movers += 1
        else:
            rest = max(rest, drift[j])
    return n_movers, rest


@jit
def summarise_others(drift: Any, k: int, others: Any) -> None:
    """For every cluster, the farthest move of any other centre."""
    first, second, leader = np.float32(0.0), np.float32(0.0), -1
    for j in range(k):
        if drift[j] > first or leader < 0:
            first, second, leader = drift[j], first, j
        else:
            second = max(second, drift[j])
    for j in range(k):
        others[j] = second if j == leader else first


@jit
def measure_reach(
    exact: Any, movers: Any, n_movers: int, reach: Any, first: int, last: int
) -> None:
    """For clusters ``first`` to ``last``, the distance of their centre to the closest mover."""
    for a in range(first, last):
        closest = np.inf
        for q in range(n_movers):
            if movers[q] != a:
                closest = min(closest, squared_difference(exact, a, exact, movers[q]))
        reach[a] = np.float32(np.sqrt(closest)) * LESS
