"""Star cuts: inequalities that hold for clusterings and not for their relaxation.

With z_ij = 1 / w(Q) if groups i and j share the cluster Q, else 0, every i and every set T without
i satisfy

    sum over t in T of z_it  -  sum over pairs s < t in T of z_st  <=  z_ii.

If m members of T are in the cluster of i, the left side is at most (m - m (m - 1) / 2) / w(Q),
which is at most 1 / w(Q), and pairs in other clusters only lower it. One member of T gives the pair
cuts of the literature, two the triangle cuts [1]_.

A cut is a row of ``LARGEST + 1`` indices: i, then the members of T, then -1. As a matrix, <B, Y> is
the left side minus the right side, with Y_ij = z_ij sqrt(w_i w_j).

References
----------
.. [1] V. Piccialli, A. M. Sudoso, A. Wiegele: "SOS-SDP: an exact solver for minimum sum-of-squares
   clustering", INFORMS Journal on Computing 34, 2022.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.exact.points import Floats

Cuts = NDArray[np.int32]
LARGEST = 6
"""Members of T, at most."""


def no_cuts() -> Cuts:
    """Return an empty list of cuts."""
    return np.zeros((0, LARGEST + 1), np.int32)


def are_valid(cuts: Cuts, n: int) -> bool:
    """Whether these are star cuts of n groups: members differ, and -1 only follows them."""
    if cuts.ndim != 2 or cuts.shape[1] != LARGEST + 1:
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
    matrix: Floats, sizes: Floats, inverse_roots: Floats, cuts: Cuts, prices: Floats
) -> None:
    """Add sum_c prices[c] B_c to ``matrix``, and the absolute values of all terms to ``sizes``.

    Shapes: matrix, sizes (n, n); inverse_roots (n,), 1 / sqrt(w); cuts (m, LARGEST + 1);
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
        for a in range(1, LARGEST + 1):
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
    matrix: Floats,
    apart: NDArray[np.bool_],
    inverse_roots: Floats,
    cuts: Cuts,
    prices: Floats,
    n_sweeps: int,
) -> None:
    """Hildreth's sweeps towards the projection onto {V >= 0, V[apart] = 0, all cuts}.

    Dual coordinate ascent: every visit of a cut sets its price to the best value, given all others.
    ``matrix`` holds the point to project minus sum_c prices[c] B_c, and V is its positive part.

    Shapes: matrix, apart (n, n); inverse_roots (n,); cuts (m, LARGEST + 1); prices (m,).
    """
    m = cuts.shape[0]
    for sweep in range(n_sweeps):
        for step in range(m):
            c = step if sweep % 2 == 0 else m - 1 - step
            if sweep > 0 and prices[c] == 0.0:
                continue
            i = cuts[c, 0]
            own = inverse_roots[i]
            norm = own * own * own * own
            excess = -max(matrix[i, i], 0.0) * own * own
            size = 0
            for a in range(1, LARGEST + 1):
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


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one, cuts = np.zeros((1, 1)), np.zeros(1), no_cuts()
    apart = np.zeros((1, 1), np.bool_)
    return [
        Call(add_cuts, (grid, grid, one, cuts, one), 0.5),
        Call(sweep_cuts, (grid, apart, one, cuts, one, 1), 0.8),
    ]
