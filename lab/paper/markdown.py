"""Tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """Return a Markdown table; the first ``left`` columns are aligned to the left."""
    rule = [":--" if column < left else "--:" for column in range(len(titles))]
    lines = [titles, rule, *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float | None, form: str = "{:.2f}") -> str:
    """Format a number; a dash for none."""
    if value is None or math.isnan(value):
        return "–"
    text = form.format(value)
    # No table needs a negative zero.
    return text.removeprefix("-") if float(text.replace(",", "")) == 0.0 else text


def seconds(value: float | None) -> str:
    """Format seconds with three significant digits."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def p_value(value: float | None) -> str:
    """Format a p-value: two digits, powers of ten for small ones."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.2g}" if value >= 1e-3 else f"{value:.0e}"
