"""Tables in and out: from the files that people have to a matrix, and from a fit to files."""

from evomeans.cli.tables.opening import open_table
from evomeans.cli.tables.table import read_pairs

__all__ = ["open_table", "read_pairs"]
