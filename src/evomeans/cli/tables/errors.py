"""What can be wrong with a table, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from types import ModuleType

SHOWN = 5
"""Names, rows or columns that an error lists before it only counts."""


class TableError(ValueError):
    """The table cannot be used; the text says where and what to do."""


class TableOptionError(ValueError):
    """What was asked of the table cannot be: an option is wrong, not the data."""


def listed(items: Iterable[object], shown: int = SHOWN) -> str:
    """Join items as "a, b and c", or "a, b and 7 more"."""
    texts = [str(item) for item in items]
    if len(texts) > shown:
        texts = [*texts[:shown], f"{len(texts) - shown:,} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def counted(count: int, noun: str) -> str:
    """Write "1 row", "2,000 rows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def quoted(value: object, width: int = 40) -> str:
    """Show a cell or a name: quoted, without control characters, and not too long."""
    text = repr(str(value))
    return text if len(text) <= width else f"{text[: width - 4]}...'"


def unknown_column(option: str, missing: Sequence[str], columns: Sequence[str], table: str) -> str:
    """Say that an option names columns that are not there, and which may be meant."""
    near = dict.fromkeys(
        name for wanted in missing for name in get_close_matches(wanted, columns, n=1)
    )
    folded = {name.casefold(): name for name in columns}
    near |= dict.fromkeys(folded[m.casefold()] for m in missing if m.casefold() in folded)
    hint = (
        f"Did you mean {' or '.join(map(quoted, near))}?"
        if near
        else f"It has {listed(map(quoted, columns), 12)}."
    )
    noun = "a column" if len(missing) == 1 else "columns"
    return (
        f"{option} names {noun} that {table} does not have: {listed(map(quoted, missing))}. {hint}"
    )


def import_polars() -> ModuleType:
    """Return polars, or say which extra brings it."""
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "Tables need polars, which is not installed: pip install 'evomeans[cli]'"
        ) from error
    return polars
