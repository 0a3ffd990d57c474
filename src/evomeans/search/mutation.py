"""The self-adapting parameter of the relocation (section 3.3 of the paper)."""

from __future__ import annotations

ALPHA_STEP = 0.2


def inherited_alpha(first: float, second: float, uniform: float) -> float:
    """Average of the parents' α, moved by up to ±0.2 and clipped to [0, 1]."""
    alpha = 0.5 * (first + second) + ALPHA_STEP * (2.0 * uniform - 1.0)
    return min(1.0, max(0.0, alpha))
