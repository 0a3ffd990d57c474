"""Proofs for many points: split them into parts that look alike, and add up their bounds [1]_.

The optimum of the whole is at least the sum of the optima of the parts; docs/background/proofs.md
tells what the sum loses. `anticlusters` divides every cluster into cells of neighbours, and deals
these to the parts. Then points of a cell are exchanged while that brings means closer together.

References
----------
.. [1] A. L. Croella, V. Piccialli, A. M. Sudoso: "Strong bounds for large-scale minimum
   sum-of-squares clustering", arXiv:2502.08397, 2025.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evomeans.compiled.jit import jit
from evomeans.exact.admm import RelaxationTree
from evomeans.exact.cases import Limits
from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints, kmeans
from evomeans.exact.proofs import DirectProof, Finding, PartsProof, Proof, is_direct
from evomeans.typing import FloatArray, Integers

MOST_POINTS = 1200
"""Distinct points up to which the relaxation is solved as a whole; an iteration takes 0.3 s."""
TRIALS_PER_POINT = 400
PAIRS_AT_A_TIME = 1 << 20
PER_CELL = 8  # points of a cell that every part gets, at least
CELLS_COUNT = 0.3  # what the means of cells count for, compared with those of clusters


def anticlusters(
    points: WeightedPoints, labels: Integers, n_parts: int, limits: Limits | None = None
) -> Integers:
    """Return the part of every point; the same for the same points, unless time is up before."""
    limits = limits or Limits(max_time=math.inf)
    rng = np.random.default_rng(0)
    parts = np.empty(points.n, np.int64)
    turn = 0
    means = points.means(labels)
    for cluster in range(len(means)):
        members = np.flatnonzero(labels == cluster)
        offsets, w = points.values[members] - means[cluster], points.weights[members]
        cells = list(halved(offsets, 2 * PER_CELL * n_parts - 1))
        dealt = np.empty(len(members), np.int64)
        for cell in cells:
            dealt[cell], turn = deal(offsets[cell], n_parts, turn, rng)
        if not limits.expired():
            balance(offsets, w, dealt, cells, n_parts, rng, limits)
        parts[members] = dealt
    return parts


def halved(offsets: FloatArray, most: int, multiple: int = 1) -> Iterator[Integers]:
    """Halve points along their longest axis until no cell has more than ``most``.

    First halves have a multiple of some number of points.
    """
    pending = [np.arange(len(offsets))]
    while pending:
        cell = pending.pop()
        if len(cell) <= most:
            yield cell
            continue
        own = offsets[cell] - offsets[cell].mean(axis=0)
        axis = np.linalg.eigh(own.T @ own)[1][:, -1]
        ordered = cell[np.argsort(own @ axis, kind="stable")]
        half = max(multiple, len(cell) // 2 // multiple * multiple)
        pending += [ordered[:half], ordered[half:]]


def deal(
    offsets: FloatArray, n_parts: int, turn: int, rng: np.random.Generator
) -> tuple[Integers, int]:
    """Divide points into neighbours, one for each part, and deal them."""
    dealt = np.empty(len(offsets), np.int64)
    for members in halved(offsets, n_parts, n_parts):
        dealt[members] = (turn + rng.permutation(len(members))) % n_parts
        turn = (turn + len(members)) % n_parts
    return dealt, turn


def balance(
    offsets: FloatArray,
    w: FloatArray,
    dealt: Integers,
    cells: list[Integers],
    n_parts: int,
    rng: np.random.Generator,
    limits: Limits,
) -> None:
    """Exchange points of the cells of a cluster, chosen at random; ``dealt`` is changed."""
    n, d = offsets.shape
    places, steps = np.empty(n, np.int64), offsets.copy()
    for number, cell in enumerate(cells):
        places[cell] = number
        steps[cell] -= np.average(offsets[cell], axis=0, weights=w[cell])
    sums, sizes = np.zeros((n_parts, d)), np.zeros(n_parts)
    np.add.at(sums, dealt, offsets * w[:, None])
    np.add.at(sizes, dealt, w)
    cell_sums = np.zeros((len(cells), n_parts, d))
    cell_sizes = np.zeros((len(cells), n_parts))
    np.add.at(cell_sums, (places, dealt), steps * w[:, None])
    np.add.at(cell_sizes, (places, dealt), w)
    order = np.concatenate(cells)
    starts = np.cumsum([0, *map(len, cells)])
    left = TRIALS_PER_POINT * n
    while left > 0 and n > 1 and not limits.expired():
        first = rng.integers(0, n, min(left, PAIRS_AT_A_TIME))
        place = places[first]
        within = rng.random(len(first)) * (starts[place + 1] - starts[place])
        second = order[starts[place] + within.astype(np.int64)]
        pairs = np.stack([first, second], axis=1)
        exchange(offsets, steps, w, dealt, places, sums, sizes, cell_sums, cell_sizes, pairs)
        left -= len(pairs)


@jit
def exchange(
    offsets: FloatArray,
    steps: FloatArray,
    w: FloatArray,
    parts: Integers,
    places: Integers,
    sums: FloatArray,
    sizes: FloatArray,
    cell_sums: FloatArray,
    cell_sizes: FloatArray,
    pairs: NDArray[np.int64],
) -> None:
    """Exchange the parts of two points of a cell where that lowers the loss of their parts.

    The loss is the sum of |sums[p]|² / sizes[p], plus `CELLS_COUNT` times that of all cells.

    Shapes: offsets from the mean of the cluster and steps from that of the cell (n, d); w, parts,
    places (n,); sums (n_parts, d); sizes (n_parts,); cell_sums (n_cells, n_parts, d); cell_sizes
    (n_cells, n_parts); pairs (m, 2).
    """
    for trial in range(pairs.shape[0]):
        a, b = pairs[trial, 0], pairs[trial, 1]
        p, q, c = parts[a], parts[b], places[a]
        if p == q:
            continue
        gain = gain_of_exchange(offsets, w, a, b, sums, sizes, p, q)
        cell_gain = gain_of_exchange(steps, w, a, b, cell_sums[c], cell_sizes[c], p, q)
        if gain + CELLS_COUNT * cell_gain > 0.0:
            move(offsets, w, a, b, sums, sizes, p, q)
            move(steps, w, a, b, cell_sums[c], cell_sizes[c], p, q)
            parts[a], parts[b] = q, p


@jit
def gain_of_exchange(
    offsets: FloatArray, w: FloatArray, a: int, b: int, sums: Any, sizes: Any, p: int, q: int
) -> float:
    """Return how much less point b in part p and point a in part q would lose."""
    before_p = before_q = after_p = after_q = 0.0
    for e in range(offsets.shape[1]):
        change = w[b] * offsets[b, e] - w[a] * offsets[a, e]
        before_p += sums[p, e] * sums[p, e]
        before_q += sums[q, e] * sums[q, e]
        after_p += (sums[p, e] + change) * (sums[p, e] + change)
        after_q += (sums[q, e] - change) * (sums[q, e] - change)
    more = w[b] - w[a]
    gain: float = before_p / sizes[p] + before_q / sizes[q]
    return gain - after_p / (sizes[p] + more) - after_q / (sizes[q] - more)


@jit
def move(
    offsets: FloatArray, w: FloatArray, a: int, b: int, sums: Any, sizes: Any, p: int, q: int
) -> None:
    """Move point b into part p and point a into part q."""
    for e in range(offsets.shape[1]):
        change = w[b] * offsets[b, e] - w[a] * offsets[a, e]
        sums[p, e] += change
        sums[q, e] -= change
    sizes[p] += w[b] - w[a]
    sizes[q] -= w[b] - w[a]


PART_SIZES = 250, 800  # points, at least and at most; other clusterings gain less in larger parts
PART_SECONDS = 1.5e-7  # of a part on one core, over the cube of its points: an estimate
PART_GAP = 2e-4  # relative; to close the rest gains less than the split loses


class UselessError(ValueError):
    """A proof that would say next to nothing, and is not attempted."""


def count_parts(
    points: WeightedPoints, labels: Integers, max_time: float, part_size: int | None = None
) -> int:
    """Return into how many parts to split, as time allows on one core by default, or refuse."""
    smallest = int(np.bincount(labels).min())
    fewest = math.ceil(points.n / MOST_POINTS)
    if smallest < max(fewest, 2):
        raise UselessError(
            f"The smallest cluster has {smallest} distinct samples, fewer than the "
            f"{max(fewest, 2)} parts into which {points.n} distinct samples would have to be "
            "split. Most parts would miss that cluster, and the bound would say next to nothing. "
            "Certify fewer samples or fewer clusters."
        )
    affordable = np.clip(math.sqrt(max_time / (PART_SECONDS * points.n)), *PART_SIZES)
    size = affordable if part_size is None else min(part_size, MOST_POINTS)
    return max(2, fewest, min(round(points.n / size), smallest))


def prove_part(
    points: WeightedPoints,
    k: int,
    labels: Integers,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Proof | None:
    """Prove a bound for one part, at the root of its search tree; None if underflow forbids it."""
    if is_direct(points, k):
        return DirectProof()
    labels = np.unique(labels, return_inverse=True)[1].ravel()
    better = kmeans(points, points.means(labels))
    if better is not None and points.inertia(better) < points.inertia(labels):
        labels = better
    cutoff = points.inertia(labels)
    if cutoff < SMALLEST_INERTIA:
        return None
    known = labels if labels.max() + 1 == k else None
    limits = Limits(PART_GAP, seconds, interrupted, clock=clock)
    with threadpool_limits(1):
        tree = RelaxationTree(points, k, cutoff, known, limits, improving=False, max_nodes=1)
        proof: Proof = tree.prove()
        return proof


def by_parts(
    points: WeightedPoints,
    k: int,
    labels: Integers,
    limits: Limits,
    n_jobs: int = 1,
    part_size: int | None = None,
) -> Finding:
    """Prove a bound by parts."""
    if labels.max() + 1 != k:
        raise UselessError(f"The given clustering has {labels.max() + 1} clusters, not {k}.")
    n_parts = count_parts(points, labels, limits.max_time, part_size)
    # A bound needs proofs: at most a third of the time is for better parts.
    earlier = replace(limits, max_time=limits.seconds + limits.seconds_left / 3)
    parts = anticlusters(points, labels, n_parts, earlier)
    members = [np.flatnonzero(parts == number) for number in range(n_parts)]
    tasks = [(points.restricted(own), k, labels[own]) for own in members]
    # A part without a proof counts as nothing, which is valid.
    found: list[Proof | None] = [None] * n_parts
    if n_jobs > 1:
        share = max(limits.seconds_left, 0.0) * 0.95 * n_jobs / n_parts
        found = list(Parallel(n_jobs)(delayed(prove_part)(*task, share) for task in tasks))
    else:
        lower, cutoff = 0.0, points.in_data_units(points.inertia(labels))
        for number, task in enumerate(tasks):
            if limits.expired():
                break
            # Time that one part does not need is left to the others.
            share = max(limits.seconds_left, 0.0) / (n_parts - number)
            found[number] = proven = prove_part(*task, share, limits.interrupted, limits.clock)
            lower += 0.0 if proven is None else proven.lower_bound(*task[:2])
            limits.progress(points.in_data_units(lower), cutoff, number + 1)
    proof = PartsProof(parts, tuple(found))
    cuts = sum(getattr(part, "n_cuts", 0) for part in found)
    return Finding(proof.lower_bound(points, k), labels, proof, "", n_parts, cuts)
