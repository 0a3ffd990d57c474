"""Parts that look alike: every cluster is spread evenly over all of them.

The bound of `parts` loses what the means of a cluster in the parts differ from its mean in the
whole, and what other clusterings gain in a part because it is a sample [1]_. Each cluster is
therefore divided into cells of neighbours, and every part gets as many points of each cell as the
others. Then points of a cell are exchanged between parts while that brings the means of clusters
and of cells closer together.

References
----------
.. [1] A. L. Croella, V. Piccialli, A. M. Sudoso: "Strong bounds for large-scale minimum
   sum-of-squares clustering", arXiv:2502.08397, 2025.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.exact.points import Floats, Indices, WeightedPoints

TRIALS_PER_POINT = 400
CHUNK = 1 << 20
PER_CELL = 8
"""Points of a cell that every part gets, at least."""
CELLS_COUNT = 0.3
"""What the means of cells count for, compared with those of clusters."""


def anticlusters(points: WeightedPoints, labels: Indices, n_parts: int) -> Indices:
    """Return the part of every point; the same for the same points."""
    rng = np.random.default_rng(0)
    parts = np.empty(points.n, np.int64)
    turn = 0
    means = points.means(labels)
    for cluster in range(len(means)):
        members = np.flatnonzero(labels == cluster)
        offsets, w = points.values[members] - means[cluster], points.weights[members]
        cells = list(halved(offsets, np.arange(len(members)), 2 * PER_CELL * n_parts))
        dealt = np.empty(len(members), np.int64)
        for cell in cells:
            dealt[cell], turn = deal(offsets[cell], n_parts, turn, rng)
        balance(offsets, w, dealt, cells, n_parts, rng)
        parts[members] = dealt
    return parts


def halved(offsets: Floats, members: Indices, most: int) -> Iterator[Indices]:
    """Halve points along their longest axis again and again, until fewer than ``most`` are left."""
    pending = [members]
    while pending:
        cell = pending.pop()
        if len(cell) < most:
            yield cell
            continue
        ordered = along_longest_axis(offsets, cell)
        half = len(cell) // 2
        pending += [ordered[:half], ordered[half:]]


def along_longest_axis(offsets: Floats, members: Indices) -> Indices:
    """Sort some of the points by their first principal component."""
    own = offsets[members] - offsets[members].mean(axis=0)
    axis = np.linalg.eigh(own.T @ own)[1][:, -1]
    return members[np.argsort(own @ axis, kind="stable")]


def deal(offsets: Floats, n_parts: int, turn: int, rng: np.random.Generator) -> tuple[Indices, int]:
    """Divide points into neighbours, one for each part, and deal them."""
    dealt = np.empty(len(offsets), np.int64)
    pending = [np.arange(len(offsets))]
    while pending:
        members = pending.pop()
        count = len(members)
        if count <= n_parts:
            dealt[members] = (turn + rng.permutation(count)) % n_parts
            turn = (turn + count) % n_parts
            continue
        ordered = along_longest_axis(offsets, members)
        half = max(n_parts, count // 2 // n_parts * n_parts)
        pending += [ordered[:half], ordered[half:]]
    return dealt, turn


def balance(
    offsets: Floats,
    w: Floats,
    dealt: Indices,
    cells: list[Indices],
    n_parts: int,
    rng: np.random.Generator,
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
    while left > 0 and n > 1:
        first = rng.integers(0, n, min(left, CHUNK))
        place = places[first]
        within = rng.random(len(first)) * (starts[place + 1] - starts[place])
        second = order[starts[place] + within.astype(np.int64)]
        pairs = np.stack([first, second], axis=1)
        exchange(
            offsets, steps, w, dealt, places, sums, sizes, cell_sums, cell_sizes, pairs, CELLS_COUNT
        )
        left -= len(pairs)


@jit
def exchange(
    offsets: Floats,
    steps: Floats,
    w: Floats,
    parts: Indices,
    places: Indices,
    sums: Floats,
    sizes: Floats,
    cell_sums: Floats,
    cell_sizes: Floats,
    pairs: NDArray[np.int64],
    share: float,
) -> None:
    """Exchange the parts of two points of a cell where that lowers the loss of their parts.

    The loss is the sum of |sums[p]|² / sizes[p], plus ``share`` times that of all cells.

    Shapes: offsets from the mean of the cluster and steps from that of the cell (n, d); w, parts,
    places (n,); sums (n_parts, d); sizes (n_parts,); cell_sums (n_cells, n_parts, d); cell_sizes
    (n_cells, n_parts); pairs (m, 2).
    """
    d = offsets.shape[1]
    for trial in range(pairs.shape[0]):
        a, b = pairs[trial, 0], pairs[trial, 1]
        p, q = parts[a], parts[b]
        if p == q:
            continue
        c = places[a]
        before_p = before_q = after_p = after_q = 0.0
        cell_before_p = cell_before_q = cell_after_p = cell_after_q = 0.0
        for e in range(d):
            change = w[b] * offsets[b, e] - w[a] * offsets[a, e]
            before_p += sums[p, e] * sums[p, e]
            before_q += sums[q, e] * sums[q, e]
            after_p += (sums[p, e] + change) * (sums[p, e] + change)
            after_q += (sums[q, e] - change) * (sums[q, e] - change)
            change = w[b] * steps[b, e] - w[a] * steps[a, e]
            of_p, of_q = cell_sums[c, p, e], cell_sums[c, q, e]
            cell_before_p += of_p * of_p
            cell_before_q += of_q * of_q
            cell_after_p += (of_p + change) * (of_p + change)
            cell_after_q += (of_q - change) * (of_q - change)
        more = w[b] - w[a]
        size_p, size_q = sizes[p] + more, sizes[q] - more
        cell_p, cell_q = cell_sizes[c, p] + more, cell_sizes[c, q] - more
        gain = before_p / sizes[p] + before_q / sizes[q] - after_p / size_p - after_q / size_q
        cell_gain = cell_before_p / cell_sizes[c, p] + cell_before_q / cell_sizes[c, q]
        cell_gain -= cell_after_p / cell_p + cell_after_q / cell_q
        if gain + share * cell_gain > 0.0:
            for e in range(d):
                change = w[b] * offsets[b, e] - w[a] * offsets[a, e]
                sums[p, e] += change
                sums[q, e] -= change
                change = w[b] * steps[b, e] - w[a] * steps[a, e]
                cell_sums[c, p, e] += change
                cell_sums[c, q, e] -= change
            sizes[p], sizes[q] = size_p, size_q
            cell_sizes[c, p], cell_sizes[c, q] = cell_p, cell_q
            parts[a], parts[b] = q, p


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one, index = np.zeros((1, 1)), np.zeros(1), np.zeros(1, np.int64)
    cells, pairs = np.zeros((1, 1, 1)), np.zeros((1, 2), np.int64)
    arrays = grid, grid, one, index, index, grid, one, cells, grid, pairs
    return [Call(exchange, (*arrays, 0.0), 0.6)]
