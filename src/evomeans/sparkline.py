"""A small picture of a search for notebooks, from numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

WIDTH, HEIGHT = 320, 64
# A gap of this share of the first one is at the bottom; the scale is logarithmic.
SMALLEST = 1e-6


def convergence_html(best: Sequence[float], text: str) -> str:
    """Draw the lowest inertia after each solution as a falling line, with a line of text below.

    The text is escaped here. The colours are those of the surroundings.
    """
    caption = f'<div style="font-size:90%">{escape(text)}</div>'
    if not len(best):
        return f"<div>{caption}</div>"
    picture = (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Best inertia by solutions made">'
        f'<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="currentColor" opacity="0.25"/>'
        f'<path d="{_path(best)}" fill="none" stroke="#0072B2" stroke-width="2" '
        'stroke-linejoin="round"/></svg>'
    )
    return f"<div>{picture}{caption}</div>"


def _path(best: Sequence[float]) -> str:
    """Write a staircase: the gap above the last value, over all solutions."""
    values = np.asarray(best, dtype=np.float64)
    gaps = values - values[-1]
    depth = np.ones(len(gaps))
    if gaps[0] > 0:
        depth = np.log(np.maximum(gaps / gaps[0], SMALLEST)) / np.log(SMALLEST)
    down = 3 + (HEIGHT - 6) * depth
    step = (WIDTH - 2) / max(1, len(values) - 1)
    corners = np.flatnonzero(np.diff(down)) + 1
    falls = "".join(f"H{1 + step * i:.1f}V{down[i]:.1f}" for i in corners)
    return f"M1 {down[0]:.1f}{falls}H{WIDTH - 1}"
