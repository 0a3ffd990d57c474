"""Pairs that no clustering cheaper than the known one puts together.

The inequality of `bound` loses <S, Y>: a clustering with groups i and j in a cluster Q has

    inertia >= bound + <S, Y> >= bound + (2 s_ij + sum over a in Q of 2 (s_ia + s_ja)) / w(Q)

with s_ab = S_ab sqrt(w_a w_b). If the right side exceeds the known inertia for every Q, the pair
can be kept apart. That is so if and only if, with the gap g between known inertia and bound,

    2 s_ij - g (w_i + w_j) - sum over a of max(0, g w_a - 2 (s_ia + s_ja)) > 0,

where a runs over the groups that may join both i and j: a worst cluster Q takes exactly the groups
for which the term is positive.
"""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.exact.multipliers import Multipliers
from evomeans.exact.points import Floats
from evomeans.exact.subproblem import MARGIN, Mask, Subproblem


def pairs_to_fix(problem: Subproblem, multipliers: Multipliers, bound: float) -> Mask:
    """Return the pairs that can be kept apart, given the bound of the multipliers."""
    gap = problem.cutoff * (1 + MARGIN) - bound
    found = np.zeros_like(problem.apart)
    if not 0 < gap < problem.cutoff:
        return found
    slack = np.maximum(multipliers.slack, 0.0)
    slack = np.where(problem.apart, 0.0, (slack + slack.T) / 2) * problem.products
    fix_pairs(slack, problem.weights, problem.apart, gap * (1 + MARGIN), found)
    return found


@jit
def fix_pairs(slack: Floats, weights: Floats, apart: Mask, gap: float, found: Mask) -> None:
    """Mark pairs by the test above. Shapes: slack, apart, found (n, n); weights (n,)."""
    n = weights.shape[0]
    for i in range(n):
        for j in range(i):
            left = 2.0 * slack[i, j] - gap * (weights[i] + weights[j])
            if apart[i, j] or left <= 0.0:
                continue
            least = 1e-12 * slack[i, j]
            for a in range(n):
                if a in (i, j) or apart[i, a] or apart[j, a]:
                    continue
                left -= max(0.0, gap * weights[a] - 2.0 * (slack[i, a] + slack[j, a]))
                if left <= least:
                    break
            if left > least:
                found[i, j] = True
                found[j, i] = True


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, mask = np.zeros((1, 1)), np.zeros((1, 1), np.bool_)
    return [Call(fix_pairs, (grid, np.zeros(1), mask, 0.0, mask), 0.3)]
