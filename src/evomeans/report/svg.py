"""The few pieces of SVG that the charts are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape


def tag(name: str, *children: str, **attributes: str | float | None) -> str:
    """Write an element.

    Parameters
    ----------
    name : str
        Of the element.
    *children : str
        Markup: other elements, or text that went through :func:`words`.
    **attributes
        Escaped here. ``class_`` and ``data_cluster`` stand for ``class`` and ``data-cluster``;
        None leaves the attribute out.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}>{''.join(children)}</{name}>"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else coordinate(value)


def words(text: str) -> str:
    """Make text, whatever stands in it, part of the markup."""
    return escape(text)


def coordinate(value: float) -> str:
    """Write a coordinate to a tenth of a unit."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def shortened(text: str, length: int) -> str:
    """Cut a text that is longer than ``length`` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


@dataclass(frozen=True)
class Scale:
    """Where values lie in a picture.

    Parameters
    ----------
    low, high : float
        Values at the ends.
    start, end : float
        Coordinates of the ends.
    log : bool
        Whether equal ratios, not equal differences, are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        # Halved, so that not even the largest floats overflow.
        part = (value / 2 - low / 2) / (high / 2 - low / 2)
        return self.start + part * (self.end - self.start)


def round_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers from ``low`` to ``high``."""
    step = _round_step(high / count - low / count)
    if not (step > 0 and math.isfinite(step)):
        return []
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)] if last - first <= 4 * count else []


def _round_step(step: float) -> float:
    if not (step > 0 and math.isfinite(step)):
        return 0.0
    power = 10.0 ** math.floor(math.log10(step))
    return power * next((nice for nice in (1, 2, 5) if nice * power >= step * 0.999), 10)


def tick_text(value: float, step: float) -> str:
    """Write the number at a tick with the decimals that its neighbours need."""
    if value == 0:
        return "0"
    if max(abs(value), step) >= 1e6 or step < 1e-4:
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e−").replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{decimals}f}".replace("-", "−")
