"""Numbers and reasons in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SPACE = "\N{NO-BREAK SPACE}"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(value: float, digits: int = 6, pad: bool = False) -> str:
    """Write a number with some significant digits, e.g. 4,930,120 or 1.5 × 10⁻⁷.

    Zeros at the end are left out, unless ``pad`` asks for them, to align a column.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 10:
        text = f"{value:,.{max(0, digits - 1 - exponent)}f}"
        return text.rstrip("0").rstrip(".") if "." in text and not pad else text
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    raised = str(int(power)).translate(SUPERSCRIPTS)
    return f"{mantissa.rstrip('0').rstrip('.')}{SPACE}×{SPACE}10{raised}"


def percent_text(share: float) -> str:
    """Write a share of 1 in percent, with one more digit where it is small."""
    percent = 100 * share
    if percent == 0 or abs(percent) >= 9.95:
        return f"{percent:.0f}{SPACE}%" if percent in (0, 100) else f"{percent:.1f}{SPACE}%"
    return f"{percent:.2f}{SPACE}%" if abs(percent) >= 0.005 else f"{percent:.1g}{SPACE}%"


def duration_text(seconds: float) -> str:
    """Write a duration, e.g. 0.42 s, 12.3 s, 3 min 20 s or 1 h 5 min."""
    if seconds < 59.95:
        return f"{seconds:.2f}{SPACE}s" if seconds < 9.995 else f"{seconds:.1f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min {rest}{SPACE}s" if rest else f"{minutes}{SPACE}min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}{SPACE}h {minutes}{SPACE}min" if minutes else f"{hours:,}{SPACE}h"


def counted(count: int, noun: str) -> str:
    """Write a number of things, e.g. 1 column or 1,024 columns."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def counted_offspring(count: int) -> str:
    """Write a number of offspring, a word without a plural."""
    return "offspring" if count == 1 else f"{count:,} offspring"


def stop_text(reason: str, run: Mapping[str, Any]) -> str:
    """Say in a sentence why a search ended.

    Parameters
    ----------
    reason : str
        A :class:`~evomeans.StopReason`, or another text, which is then told as it is.
    run : mapping
        The part ``run`` of the data of a report.
    """
    made, vain = run["n_offspring"], run["n_offspring"] - run["last_improvement"]
    since = (
        f"The last {counted_offspring(vain)} had brought no improvement by then."
        if vain
        else "It had improved with its very last offspring."
    )
    texts = {
        "no_improvement": f"The search ended because the last {vain:,} offspring brought no "
        "improvement: the usual end of a search that has found what it could.",
        "max_iter": f"The search ended because it had made the {made:,} offspring it was allowed. "
        + since,
        "max_time": "The search ended because its time was used up. " + since,
        "target_inertia": "The search ended because it reached the inertia that was asked for.",
        "observer": "The search ended because an observer asked for it. " + since,
        "interrupted": "The search was interrupted; this is the best solution found until then. "
        + since,
        "proven_optimal": "The solution is proven to be optimal: no clustering of these samples "
        "into as many clusters has a lower inertia.",
    }
    return texts.get(reason, f"The search ended for this reason: {reason}.")


def advice_text(reason: str, run: Mapping[str, Any]) -> str:
    """Say whether a longer search could help; empty where there is nothing to say."""
    if reason not in ("max_iter", "max_time", "interrupted", "observer"):
        return ""
    made, vain = run["n_offspring"], run["n_offspring"] - run["last_improvement"]
    if vain < max(20, made // 4):
        return "It was still improving: a longer search would probably go deeper."
    return "A longer search might still go deeper."
