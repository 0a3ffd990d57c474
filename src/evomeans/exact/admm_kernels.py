"""The element-wise steps of `admm`, each in one pass over its matrices."""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.exact.points import Floats
from evomeans.exact.subproblem import Mask


@jit(fastmath=REORDER)
def point_to_project(V: Floats, C: Floats, U: Floats, penalty: float, A: Floats) -> float:
    """Set A = V - C / penalty - U, all of shape (n, n); return its Frobenius norm."""
    n = V.shape[0]
    inverse, total = 1.0 / penalty, 0.0
    for i in range(n):
        for j in range(n):
            value = V[i, j] - C[i, j] * inverse - U[i, j]
            A[i, j] = value
            total += value * value
    return np.sqrt(total)


@jit(fastmath=REORDER)
def shift(A: Floats, b: Floats, v: Floats) -> None:
    """Subtract b v' + v b' from A. Shapes: A (n, n); b, v (n,)."""
    n = v.shape[0]
    for i in range(n):
        for j in range(n):
            A[i, j] -= b[i] * v[j] + v[i] * b[j]


@jit
def capped_simplex(values: Floats, total: float) -> None:
    """Project onto {0 <= x <= 1, sum x = total}, in place: x = clip(values - t, 0, 1).

    Shape: values (n,), ascending. The shift t is found by bisection.
    """
    n = values.shape[0]
    low, high = values[0] - 1.0, values[n - 1]
    for _ in range(60):
        middle = (low + high) / 2.0
        found = 0.0
        for i in range(n - 1, -1, -1):
            if values[i] <= middle:
                break
            found += min(values[i] - middle, 1.0)
        if found > total:
            low = middle
        else:
            high = middle
    for i in range(n):
        values[i] = min(max(values[i] - (low + high) / 2.0, 0.0), 1.0)


@jit(fastmath=REORDER)
def relax(Y: Floats, V: Floats, N: Floats, share: float, base: Floats, matrix: Floats) -> None:
    """Set base = share Y + (1 - share) V and matrix = base + N, all of shape (n, n)."""
    n = Y.shape[0]
    for i in range(n):
        for j in range(n):
            value = share * Y[i, j] + (1.0 - share) * V[i, j]
            base[i, j] = value
            matrix[i, j] = value + N[i, j]


@jit(fastmath=REORDER)
def finish(
    matrix: Floats, base: Floats, apart: Mask, Y: Floats, V: Floats, U: Floats, N: Floats
) -> tuple[float, float]:
    """V becomes the positive part of matrix, U += base - V, and N = matrix - V.

    All are of shape (n, n). Returns the squares of |Y - V| and of the change of V.
    """
    n = V.shape[0]
    primal = dual = 0.0
    for i in range(n):
        for j in range(n):
            value = 0.0 if apart[i, j] else max(matrix[i, j], 0.0)
            change = value - V[i, j]
            dual += change * change
            rest = Y[i, j] - value
            primal += rest * rest
            U[i, j] += base[i, j] - value
            N[i, j] = matrix[i, j] - value
            V[i, j] = value
    return primal, dual


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one, mask = np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1), np.bool_)
    return [
        Call(point_to_project, (grid, grid, grid, 1.0, grid), 0.3),
        Call(shift, (grid, one, one), 0.2),
        Call(capped_simplex, (one, 1.0), 0.2),
        Call(relax, (grid, grid, grid, 1.0, grid, grid), 0.3),
        Call(finish, (grid, grid, mask, grid, grid, grid, grid), 0.4),
    ]
