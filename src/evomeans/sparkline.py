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
    return f"<div>{line_svg(best)}{caption}</div>"


def line_svg(best: Sequence[float]) -> str:
    """Draw the lowest inertia after each solution as a falling line."""
    line = (
        f'<path d="{_path(best)}" fill="none" stroke="#0072B2" stroke-width="2" '
        'stroke-linejoin="round"/>'
    )
    return _picture(line, "Best inertia by solutions made")


def bars_svg(values: Sequence[float], label: str) -> str:
    """Draw numbers that are not negative as bars, side by side."""
    largest = max(values, default=0) or 1
    step = WIDTH / max(1, len(values))
    width = max(0.5, step - min(3.0, step / 4))
    bars = "".join(
        f"M{i * step + width / 2:.1f} {HEIGHT}V{HEIGHT - (HEIGHT - 4) * value / largest:.1f}"
        for i, value in enumerate(values)
    )
    return _picture(f'<path d="{bars}" stroke="#0072B2" stroke-width="{width:.2f}"/>', label)


def _picture(content: str, label: str) -> str:
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'style="margin:4px 16px 4px 0" aria-label="{escape(label)}">'
        f'<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="currentColor" opacity="0.25"/>'
        f"{content}</svg>"
    )


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
