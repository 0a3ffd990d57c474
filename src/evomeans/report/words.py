"""What a cluster is, in a line of words."""

from __future__ import annotations

from collections.abc import Sequence

from evomeans.wording import listed

# In standard deviations of the column.
CLEAR, STRONG = 0.5, 1.5
NAMED = 5
"""Columns that a description names."""


def cluster_words(telling: Sequence[tuple[str, float]]) -> str:
    """Describe a cluster by the columns in which its centre differs most from the mean.

    Parameters
    ----------
    telling : sequence of (name, difference)
        The most telling column first; differences are in standard deviations.

    Examples
    --------
    >>> cluster_words([("income", 2.0), ("age", -0.8), ("debt", 0.7)])
    'Very high income, high debt, low age.'
    >>> cluster_words([("income", 0.2)])
    'Close to the average in all columns.'
    """
    levels: dict[str, list[str]] = {"very high": [], "high": [], "very low": [], "low": []}
    for name, value in list(telling)[:NAMED]:
        if abs(value) >= CLEAR:
            side = "high" if value > 0 else "low"
            levels[f"very {side}" if abs(value) >= STRONG else side].append(shortened(name))
    parts = [f"{level} {listed(names)}" for level, names in levels.items() if names]
    if not parts:
        return "Close to the average in all columns."
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def shortened(name: str, length: int = 40) -> str:
    """Return a name that leaves room for others."""
    return name if len(name) <= length else name[: length - 1] + "…"
