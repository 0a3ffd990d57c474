"""Tables in and out: from the files that people have to a matrix, and from a fit to files."""

from evomeans.wording import how_to_install

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"Tables need polars, which is not installed: {how_to_install('cli')}."
    ) from error

from evomeans.cli.tables.opening import open_table
from evomeans.cli.tables.table import read_pairs

__all__ = ["open_table", "read_pairs"]
