"""The three filters of methods that try several places for each new centre."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from evomeans.estimators.parameters import shown

RANGES = {
    "gamma1": (0.0, 1.0, "a number in [0, 1]"),
    "gamma2": (0.0, 1.0, "a number in [0, 1]"),
    "gamma3": (1.0, np.inf, "a number from 1 on"),
}


def check_gammas(estimator: Any, defaults: Sequence[float]) -> list[float]:
    """Return gamma1, gamma2 and gamma3 as numbers within their ranges.

    Parameters
    ----------
    estimator : object
        Has them as attributes.
    defaults : sequence of float
        What "auto" stands for, one after another.
    """
    gammas = []
    for (name, (low, high, expected)), default in zip(RANGES.items(), defaults, strict=True):
        given = getattr(estimator, name)
        given = default if isinstance(given, str) and given == "auto" else given
        if isinstance(given, bool) or not isinstance(given, Real):
            raise TypeError(f"{name} must be {expected} or 'auto', got {shown(given)}.")
        if not low <= float(given) <= high:
            raise ValueError(f"{name}={given} must be {expected}, or 'auto'.")
        gammas.append(float(given))
    return gammas
