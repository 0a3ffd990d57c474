"""What can be wrong with a table."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType

from evomeans.cli.failures import CommandError, UsageError
from evomeans.wording import listed, quoted


class TableError(CommandError):
    """The table cannot be used; the text says where and what to do."""


class TableOptionError(UsageError):
    """An option is wrong, not the data."""


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
