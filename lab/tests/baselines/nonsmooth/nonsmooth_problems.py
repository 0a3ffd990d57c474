"""Standard nonsmooth test functions with their starts and optima.

From Lukšan and Vlček, "Test problems for nonsmooth unconstrained and linearly constrained
optimization" (2000); Haarala, Miettinen and Mäkelä (2004) for the large ones; and Joki, Bagirov,
Karmitsa and Mäkelä (2017) for differences of convex functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lab.baselines.nonsmooth.evaluation import Evaluation


@dataclass(frozen=True)
class Problem:
    """A function, where to start, and the optimum."""

    name: str
    function: Callable[[np.ndarray], Evaluation]
    start: np.ndarray
    optimum: float

    def __repr__(self) -> str:
        return self.name


def largest(*pieces) -> Evaluation:
    """Return the piece with the largest value."""
    value, gradient = max(pieces, key=lambda piece: piece[0])
    return Evaluation(float(value), np.asarray(gradient, float))


def cb2(x):
    a, b = x
    return largest(
        (a**2 + b**4, [2 * a, 4 * b**3]),
        ((2 - a) ** 2 + (2 - b) ** 2, [2 * a - 4, 2 * b - 4]),
        (2 * np.exp(b - a), [-2 * np.exp(b - a), 2 * np.exp(b - a)]),
    )


def cb3(x):
    a, b = x
    return largest(
        (a**4 + b**2, [4 * a**3, 2 * b]),
        ((2 - a) ** 2 + (2 - b) ** 2, [2 * a - 4, 2 * b - 4]),
        (2 * np.exp(b - a), [-2 * np.exp(b - a), 2 * np.exp(b - a)]),
    )


def dem(x):
    a, b = x
    return largest(
        (5 * a + b, [5, 1]), (-5 * a + b, [-5, 1]), (a**2 + b**2 + 4 * b, [2 * a, 2 * b + 4])
    )


def ql(x):
    a, b = x
    square, slope = a**2 + b**2, np.array([2 * a, 2 * b])
    return largest(
        (square, slope),
        (square + 10 * (4 - 4 * a - b), slope - [40, 10]),
        (square + 10 * (6 - a - 2 * b), slope - [10, 20]),
    )


def lq(x):
    a, b = x
    return largest((-a - b, [-1, -1]), (-a - b + a**2 + b**2 - 1, [2 * a - 1, 2 * b - 1]))


def mifflin1(x):
    """Not convex in its subgradients: −x₁ + 20·max(x₁² + x₂² − 1, 0)."""
    a, b = x
    return largest((-a, [-1, 0]), (-a + 20 * (a**2 + b**2 - 1), [-1 + 40 * a, 40 * b]))


def crescent(x):
    """Not convex."""
    a, b = x
    return largest(
        (a**2 + (b - 1) ** 2 + b - 1, [2 * a, 2 * b - 1]),
        (-(a**2) - (b - 1) ** 2 + b + 1, [-2 * a, 3 - 2 * b]),
    )


def rosen_suzuki(x):
    a, b, c, d = x
    first = a**2 + b**2 + 2 * c**2 + d**2 - 5 * a - 5 * b - 21 * c + 7 * d
    slope = np.array([2 * a - 5, 2 * b - 5, 4 * c - 21, 2 * d + 7])
    second = a**2 + b**2 + c**2 + d**2 + a - b + c - d - 8
    third = a**2 + 2 * b**2 + c**2 + 2 * d**2 - a - d - 10
    fourth = 2 * a**2 + b**2 + c**2 + 2 * a - b - d - 5
    return largest(
        (first, slope),
        (first + 10 * second, slope + 10 * np.array([2 * a + 1, 2 * b - 1, 2 * c + 1, 2 * d - 1])),
        (first + 10 * third, slope + 10 * np.array([2 * a - 1, 4 * b, 2 * c, 4 * d - 1])),
        (first + 10 * fourth, slope + 10 * np.array([4 * a + 2, 2 * b - 1, 2 * c, -1])),
    )


def maxq(x):
    i = int(np.argmax(x**2))
    gradient = np.zeros_like(x)
    gradient[i] = 2 * x[i]
    return Evaluation(float(x[i] ** 2), gradient)


def chained_lq(x):
    a, b = x[:-1], x[1:]
    ball = a**2 + b**2 - 1
    outside = ball > 0
    gradient = np.zeros_like(x)
    gradient[:-1] += -1 + np.where(outside, 2 * a, 0)
    gradient[1:] += -1 + np.where(outside, 2 * b, 0)
    return Evaluation(float((-a - b + np.maximum(ball, 0)).sum()), gradient)


def _chained_cb3_pieces(x):
    a, b = x[:-1], x[1:]
    grown = 2 * np.exp(b - a)
    values = np.array([a**4 + b**2, (2 - a) ** 2 + (2 - b) ** 2, grown])
    left = np.array([4 * a**3, 2 * a - 4, -grown])
    right = np.array([2 * b, 2 * b - 4, grown])
    return values, left, right


def chained_cb3_one(x):
    """Add maxima."""
    values, left, right = _chained_cb3_pieces(x)
    best, every = values.argmax(axis=0), np.arange(len(x) - 1)
    gradient = np.zeros_like(x)
    gradient[:-1] += left[best, every]
    gradient[1:] += right[best, every]
    return Evaluation(float(values.max(axis=0).sum()), gradient)


def chained_cb3_two(x):
    """Take the maximum of sums."""
    values, left, right = _chained_cb3_pieces(x)
    best = values.sum(axis=1).argmax()
    gradient = np.zeros_like(x)
    gradient[:-1] += left[best]
    gradient[1:] += right[best]
    return Evaluation(float(values[best].sum()), gradient)


def active_faces(x):
    """Count active faces; not convex."""
    every = np.append(np.abs(x), abs(x.sum()))
    i = int(every.argmax())
    gradient = np.zeros_like(x)
    if i == len(x):
        gradient[:] = np.sign(x.sum()) / (1 + every[i])
    else:
        gradient[i] = np.sign(x[i]) / (1 + every[i])
    return Evaluation(float(np.log1p(every[i])), gradient)


SMALL = [
    Problem("CB2", cb2, np.array([1.0, -0.1]), 1.9522245),
    Problem("CB3", cb3, np.array([2.0, 2.0]), 2.0),
    Problem("DEM", dem, np.array([1.0, 1.0]), -3.0),
    Problem("QL", ql, np.array([-1.0, 5.0]), 7.2),
    Problem("LQ", lq, np.array([-0.5, -0.5]), -np.sqrt(2)),
    Problem("Mifflin 1", mifflin1, np.array([0.8, 0.6]), -1.0),
    Problem("Crescent", crescent, np.array([-1.5, 2.0]), 0.0),
    Problem("Rosen-Suzuki", rosen_suzuki, np.zeros(4), -44.0),
    Problem("MAXQ", maxq, np.where(np.arange(20) < 10, 1.0, -1.0) * np.arange(1.0, 21.0), 0.0),
]
LARGE = [
    Problem("Chained LQ", chained_lq, np.full(50, -0.5), -49 * np.sqrt(2)),
    Problem("Chained CB3 I", chained_cb3_one, np.full(50, 2.0), 98.0),
    Problem("Chained CB3 II", chained_cb3_two, np.full(50, 2.0), 98.0),
    Problem("Active faces", active_faces, np.ones(50), 0.0),
]


# ---- differences of convex functions -------------------------------------------------------------


def squares_minus_lengths(x):
    """‖x‖² − ‖x‖₁: every local minimum is global."""
    signs = np.where(x >= 0, 1.0, -1.0)
    return Evaluation(float(x @ x - np.abs(x).sum()), 2 * x - signs, 2 * x)


def joki_two(x):
    """Problem 2: |x₁ − 1| + 200·max(0, |x₁| − x₂) minus 100·(|x₁| − x₂)."""
    a, b = x
    sign, over = np.sign(a), abs(a) - b > 0
    first = np.array([np.sign(a - 1) + 200 * over * sign, -200.0 * over])
    second = np.array([100 * sign, -100.0])
    value = abs(a - 1) + 200 * max(0.0, abs(a) - b) - 100 * (abs(a) - b)
    return Evaluation(float(value), first - second, first)


def joki_four(x):
    """Problem 4: n·max|xᵢ| minus Σ|xᵢ|."""
    i = int(np.abs(x).argmax())
    first = np.zeros_like(x)
    first[i] = len(x) * np.sign(x[i])
    value = len(x) * abs(x[i]) - np.abs(x).sum()
    return Evaluation(float(value), first - np.sign(x), first)


SMOOTH_DC = [Problem("squares − lengths", squares_minus_lengths, np.linspace(-2, 3, 10), -2.5)]
DC = [
    *SMOOTH_DC,
    Problem("Joki 2", joki_two, np.array([-1.2, 1.0]), 0.0),
    Problem("Joki 4", joki_four, np.where(np.arange(10) < 5, 1.0, -1.0) * np.arange(1, 11.0), 0.0),
]
