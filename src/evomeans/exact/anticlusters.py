"""Parts that look alike: every cluster is spread evenly over all of them.

The bound of `parts` loses what the means of a cluster in the parts differ from its mean in the
whole. Neighbours within a cluster are therefore dealt to different parts, and then points are
exchanged while that brings the means closer together [1]_.

References
----------
.. [1] A. L. Croella, V. Piccialli, A. M. Sudoso: "Strong bounds for large-scale minimum
   sum-of-squares clustering", arXiv:2502.08397, 2025.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.exact.points import Floats, Indices, WeightedPoints

TRIALS_PER_POINT = 400
CHUNK = 1 << 20


def anticlusters(points: WeightedPoints, labels: Indices, n_parts: int) -> Indices:
    """Return the part of every point; the same for the same points."""
    rng = np.random.default_rng(0)
    parts = np.empty(points.n, np.int64)
    turn = 0
    means = points.means(labels)
    for cluster in range(len(means)):
        members = np.flatnonzero(labels == cluster)
        offsets, w = points.values[members] - means[cluster], points.weights[members]
        dealt, turn = deal(offsets, n_parts, turn, rng)
        sums, sizes = np.zeros((n_parts, offsets.shape[1])), np.zeros(n_parts)
        np.add.at(sums, dealt, offsets * w[:, None])
        np.add.at(sizes, dealt, w)
        left = TRIALS_PER_POINT * len(members)
        while left > 0 and len(members) > 1:
            pairs = rng.integers(0, len(members), (min(left, CHUNK), 2))
            exchange(offsets, w, dealt, sums, sizes, pairs)
            left -= len(pairs)
        parts[members] = dealt
    return parts


def deal(offsets: Floats, n_parts: int, turn: int, rng: np.random.Generator) -> tuple[Indices, int]:
    """Halve a cluster along its longest axis again and again, and deal what stays together."""
    dealt = np.empty(len(offsets), np.int64)
    pending = [np.arange(len(offsets))]
    while pending:
        members = pending.pop()
        count = len(members)
        if count <= n_parts:
            dealt[members] = (turn + rng.permutation(count)) % n_parts
            turn = (turn + count) % n_parts
            continue
        own = offsets[members] - offsets[members].mean(axis=0)
        axis = np.linalg.eigh(own.T @ own)[1][:, -1]
        ordered = members[np.argsort(own @ axis, kind="stable")]
        half = max(n_parts, count // 2 // n_parts * n_parts)
        pending += [ordered[:half], ordered[half:]]
    return dealt, turn


@jit
def exchange(
    offsets: Floats,
    w: Floats,
    parts: Indices,
    sums: Floats,
    sizes: Floats,
    pairs: NDArray[np.int64],
) -> None:
    """Exchange the parts of two points where that lowers the sum of |sums[p]|² / sizes[p].

    Shapes: offsets (n, d); w, parts (n,); sums (n_parts, d); sizes (n_parts,); pairs (m, 2).
    """
    d = offsets.shape[1]
    for trial in range(pairs.shape[0]):
        a, b = pairs[trial, 0], pairs[trial, 1]
        p, q = parts[a], parts[b]
        if p == q:
            continue
        before = after_p = after_q = before_q = 0.0
        for e in range(d):
            change = w[b] * offsets[b, e] - w[a] * offsets[a, e]
            before += sums[p, e] * sums[p, e]
            before_q += sums[q, e] * sums[q, e]
            after_p += (sums[p, e] + change) * (sums[p, e] + change)
            after_q += (sums[q, e] - change) * (sums[q, e] - change)
        shift = w[b] - w[a]
        size_p, size_q = sizes[p] + shift, sizes[q] - shift
        if after_p / size_p + after_q / size_q < before / sizes[p] + before_q / sizes[q]:
            for e in range(d):
                change = w[b] * offsets[b, e] - w[a] * offsets[a, e]
                sums[p, e] += change
                sums[q, e] -= change
            sizes[p], sizes[q] = size_p, size_q
            parts[a], parts[b] = q, p


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one, index = np.zeros((1, 1)), np.zeros(1), np.zeros(1, np.int64)
    return [Call(exchange, (grid, one, index, grid, one, np.zeros((1, 2), np.int64)), 0.4)]
