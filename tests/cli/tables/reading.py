"""A table in one call."""

from __future__ import annotations

from evomeans.cli.tables.table import Reading, Table


def read_table(*args, **more) -> Table:
    """Read a table into memory."""
    return Reading(*args, **more).table()
