"""Draws by chances, from uniform numbers."""

from __future__ import annotations

import numpy as np

from evomeans.engines import sampling
from evomeans.typing import FloatArray, Indices
from lab.baselines.engine import BaselineEngine


def roulette(chances: FloatArray, uniforms: FloatArray) -> Indices:
    """Draw indices with these chances, with replacement; none without a chance is drawn.

    Any index may be drawn if all chances are zero.
    """
    if not chances.any():
        chances = np.ones_like(chances)
    return sampling.roulette(chances, uniforms)


def roulette_without_replacement(
    chances: FloatArray, count: int, rng: np.random.Generator
) -> Indices:
    """Draw different indices with these chances; fewer where fewer have a chance.

    Of exponential variables divided by the chances, the smallest come first as a wheel would draw
    one after the other [1]_.

    References
    ----------
    .. [1] P. S. Efraimidis and P. G. Spirakis, "Weighted random sampling with a reservoir",
       Information Processing Letters 97, 181-185, 2006.
    """
    possible = np.flatnonzero(chances)
    times = rng.exponential(size=len(chances))[possible] / chances[possible]
    chosen: Indices = possible[times.argsort(kind="stable")[:count]]
    return chosen


def weighted(engine: BaselineEngine, values: FloatArray) -> FloatArray:
    """Multiply values of samples by their weights."""
    return values if engine.weights is None else values * engine.weights
