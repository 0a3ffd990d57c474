"""Counts, lists, numbers, durations and reasons in words, for the terminal and the report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

SHOWN = 5  # items that a list shows before it only counts

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|s|m|h|d)?\s*")
UNFINISHED = ("max_offspring", "max_time", "interrupted", "observer")
"""Reasons with which a limit or a person ends a search, rather than the search itself."""


def counted(count: int, noun: str) -> str:
    """Write "1 row", "2,000 rows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(items: Iterable[object], shown: int = SHOWN) -> str:
    """Join items as "a, b and c", or "a, b and 7 more"."""
    texts = [str(item) for item in items]
    if len(texts) > shown:
        texts = [*texts[:shown], f"{len(texts) - shown:,} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def how_to_install(extra: str) -> str:
    """Say how to get the packages of an extra, for a clone and for an installed evomeans."""
    return (
        f"pip install '.[{extra}]' in a clone of evomeans, or pip install 'evomeans[{extra}]' if "
        "evomeans came from a package index"
    )


def quoted(value: object, width: int = 40) -> str:
    """Show a cell or a name: quoted, without control characters, and not too long."""
    text = repr(str(value))
    return text if len(text) <= width else f"{text[: width - 4]}...'"


def printable(text: str) -> str:
    """Return a text for a terminal: control and direction characters as their escapes.

    Names come from files of others. Lines and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else repr(letter)[1:-1]
        for letter in text
    )


def number_text(value: float, digits: int = 7, pad: bool = False) -> str:
    """Write a number with some significant digits, e.g. 4,930,120 or 1.5 × 10⁻⁷.

    Trailing zeros are dropped, unless ``pad`` keeps them to align a column.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 10:
        text = f"{value:,.{max(0, digits - 1 - exponent)}f}"
        return text.rstrip("0").rstrip(".") if "." in text and not pad else text
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    raised = str(int(power)).translate(SUPERSCRIPTS)
    return f"{mantissa.rstrip('0').rstrip('.')} × 10{raised}"


def percent_text(share: float) -> str:
    """Write a share of 1 in percent, with three significant digits."""
    return f"{number_text(100 * share, 3)} %"


def duration_text(seconds: float) -> str:
    """Write a duration, e.g. 0.42 s, 12.3 s, 3 min 20 s, 1 h 5 min or 6 days."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 100:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours / 24:,.0f} days"


def parse_duration(text: str) -> float:
    """Return the seconds of "90", "90s", "1.5m" or "1h30m"."""
    words = text.strip().lower()
    parts = DURATION_PART.findall(words)
    is_bare = any(not unit for _, unit in parts)
    if not parts or DURATION_PART.sub("", words) or (is_bare and len(parts) > 1):
        raise ValueError(f"{text!r} is not a duration; write 90, 90s, 5m or 1h30m.")
    seconds = math.fsum(float(count) * UNITS[unit or "s"] for count, unit in parts)
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} must be longer than zero, and finite.")
    return seconds


def stop_text(reason: str, offspring: int, since_improvement: int, rediscoveries: int) -> str:
    """Say why a search ended; a reason that is no :class:`~evomeans.StopReason` is quoted."""
    # Files of earlier versions give "no_improvement" for both.
    if reason in ("agreement", "no_improvement") and rediscoveries:
        starts = "two" if rediscoveries == 1 else f"{rediscoveries + 1:,}"
        return (
            f"The search ended because {starts} independent starts led to the same best solution."
        )
    reasons = {
        "agreement": "The search ended because independent starts agreed.",
        "no_improvement": f"The search ended because the last {since_improvement:,} offspring "
        "brought no improvement.",
        "max_offspring": f"The search ended because it had made all {offspring:,} offspring "
        "allowed.",
        "max_time": "The search ended because its time was up.",
        "target_inertia": "The search ended because it reached the target inertia.",
        "observer": "The search ended because an observer stopped it.",
        "interrupted": "The search was interrupted; the best solution so far was kept.",
        "proven_optimal": "The solution is proven to be optimal: no clustering into as many "
        "clusters has a lower inertia.",
        "precision": "The search ended where float64 does: samples or weights span so many orders "
        "of magnitude that a better solution cannot be told from rounding.",
    }
    sentences = [reasons.get(reason, f"The search ended for this reason: {reason}.")]
    if reason in UNFINISHED:
        if not offspring:
            sentences.append("No offspring were made, so no solutions were combined.")
        elif since_improvement > 1:
            sentences.append(f"The last {since_improvement:,} offspring brought no improvement.")
        else:
            sentences.append("It was still improving.")
    if rediscoveries:
        times = "once" if rediscoveries == 1 else f"{rediscoveries:,} times"
        sentences.append(f"Its best solution was found again {times}, independently.")
    return " ".join(sentences)


def probability_text(certainty: float) -> str:
    """Say how probable it is that a search has found the best solution; empty if not known."""
    if math.isnan(certainty):
        return ""
    percent = certain_percent(certainty)
    return f"It is {percent} certain that no solution within reach is better by more than 0.01 %."


def certain_percent(certainty: float) -> str:
    """Round a probability down: what is not proven is never 100 % certain."""
    return "100 %" if certainty == 1.0 else f"{math.floor(100.0 * certainty)} %"


def levels_text(levels: Sequence[int]) -> str:
    """Say on how many rows populations began, given all rows and those of samples, if any."""
    if len(levels) < 2:
        return ""
    *others, largest = (f"{rows:,}" for rows in reversed(levels[1:]))
    samples = f"{', '.join(others)} and {largest}" if others else largest
    return f"Populations began on samples of about {samples} of the {levels[0]:,} rows."


def offspring_text(made: int, given_up: int = 0, on_samples: int = 0) -> str:
    """Say how many offspring a search made on all rows and on samples, and how many it gave up."""
    text = f"{made:,} offspring"
    if given_up:
        text += f" ({given_up:,} abandoned early)"
    return f"{text} and {on_samples:,} on samples" if on_samples else text


def advice_text(reason: str, offspring: int, since_improvement: int, rediscoveries: int) -> str:
    """Say whether a longer search could help; empty if it is not expected to."""
    if rediscoveries or reason not in UNFINISHED:
        return ""
    if since_improvement < max(20, offspring // 4):
        return "A longer search would probably find a lower inertia."
    return "A longer search might still find a lower inertia."
