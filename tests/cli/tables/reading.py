"""A table in one call."""

from __future__ import annotations

from evomeans.cli.tables.table import Table, TableRequest


def read_table(*args, **more) -> Table:
    """Read a table into memory."""
    return TableRequest(*args, **more).table()
