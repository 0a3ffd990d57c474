"""Lengths of time as people write and read them."""

from __future__ import annotations

import math
import re

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|s|m|h|d)?\s*")


def parse_duration(text: str) -> float:
    """Return seconds: "90", "90s", "1.5m" and "1h30m" are all understood."""
    parts = list(PART.finditer(text.strip().lower()))
    whole = "".join(part[0] for part in parts) == text.strip().lower()
    bare = [part for part in parts if part[2] is None]
    if not parts or not whole or (bare and len(parts) > 1):
        raise ValueError(f"{text!r} is no length of time; write 90, 90s, 5m or 1h30m.")
    seconds = math.fsum(float(part[1]) * UNITS[part[2] or "s"] for part in parts)
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} must be more than no time.")
    return seconds


def show_duration(seconds: float) -> str:
    """Write seconds so that they read at a glance."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours < 1:
        return f"{minutes} min {rest:02d} s"
    if hours < 100:
        return f"{hours} h {minutes:02d} min"
    return f"{hours / 24:,.0f} days"
