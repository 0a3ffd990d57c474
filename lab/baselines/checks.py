"""Checks of parameters that several baselines have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evomeans.estimators.parameters import check_real, shown


def check_number(
    name: str, value: object, *, least: float = -math.inf, most: float = math.inf
) -> float:
    """Return a finite number within limits."""
    number = check_real(name, value)
    if number is None:
        raise TypeError(f"{name} must be a number, got None.")
    if not (math.isfinite(number) and least <= number <= most):
        limits = f"at least {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise ValueError(f"{name}={value} must be a number {limits}.")
    return number


def check_interval(name: str, value: Any) -> tuple[float, float]:
    """Return the two ends of an interval, the lower one first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name} must be a pair of numbers, got {shown(value)}.")
    low, high = (check_number(name, end) for end in value)
    if not low <= high:
        raise ValueError(f"{name}={value} must have its lower end first.")
    return low, high


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return one of several words."""
    listed = f"{', '.join(repr(choice) for choice in choices[:-1])} or {choices[-1]!r}"
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {listed}, got {shown(value)}.")
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be {listed}.")
    return value
