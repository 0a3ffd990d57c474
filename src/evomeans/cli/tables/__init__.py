"""Tables in and out: from the files that people have to a matrix, and from a fit to files.

polars is loaded by the functions that need it, never by importing this package.
"""

from __future__ import annotations

from evomeans.cli.tables.errors import TableError, TableOptionError
from evomeans.cli.tables.scaling import Standardization
from evomeans.cli.tables.source import FORMATS, Source, open_source
from evomeans.cli.tables.table import Choice, Table, read_table
from evomeans.cli.tables.writing import centers_frame, history_frame, labels_frame, table_bytes

__all__ = [
    "FORMATS",
    "Choice",
    "Source",
    "Standardization",
    "Table",
    "TableError",
    "TableOptionError",
    "centers_frame",
    "history_frame",
    "labels_frame",
    "open_source",
    "read_table",
    "table_bytes",
]
