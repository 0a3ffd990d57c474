"""Tables in and out: from the files that people have to a matrix, and from a fit to files."""

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Tables need polars, which is not installed: pip install 'evomeans[cli]'"
    ) from error

from evomeans.cli.tables.opening import open_table
from evomeans.cli.tables.pairs import read_pairs

__all__ = ["open_table", "read_pairs"]
