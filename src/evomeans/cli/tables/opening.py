"""A table of the command line, opened in Python."""

from __future__ import annotations

import os
from collections.abc import Sequence

from evomeans.cli.options import MissingRule, TableFormat, TableOptions
from evomeans.cli.tables.table import Table, read_table


def open_table(
    name: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    id: str | None = None,  # noqa: A002
    format: TableFormat | None = None,  # noqa: A002
    separator: str | None = None,
    header: bool | None = None,
    decimal_comma: bool = False,
    weights: str | None = None,
    standardize: bool = False,
    missing: MissingRule | None = None,
) -> Table:
    r"""Read a table exactly as ``evomeans fit`` does with the options of the same names.

    Parameters
    ----------
    name : str or path-like
        The file; "-" for standard input; ``file.npz:name`` for one array of several.
    columns, exclude : sequence of str, optional
        The columns to take, or those to leave out.
    id : str, optional
        The column that names the rows.
    format : {"csv", "tsv", "parquet", "arrow", "npy", "npz"}, optional
        By default found out from the content and the name.
    separator : str, optional
        Between the fields of a CSV.
    header : bool, optional
        Whether the first line of a CSV holds the names of the columns.
    decimal_comma : bool, default=False
        Whether numbers of a CSV are written 1,5.
    weights : str, optional
        The column that says how much each row counts.
    standardize : bool, default=False
        Whether to bring all columns to mean 0 and deviation 1.
    missing : {"drop", "mean", "median"}, optional
        Leave out rows with missing values, or fill these. By default they are refused.

    Returns
    -------
    Table
        ``X`` are the samples, ``weights`` their weights, ``ids`` their names and ``columns`` the
        names of the columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evomeans.cli.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("name,height,weight\nann,1.7,60\nbob,1.8,n/a\n")
    ...     table = open_table(file, id="name", missing="drop")
    >>> table.columns, table.X, list(table.ids)
    (('height', 'weight'), array([[ 1.7, 60. ]]), ['ann'])
    """
    options = TableOptions(
        columns=None if columns is None else tuple(columns),
        exclude=tuple(exclude),
        id=id,
        format=format,
        separator=separator,
        header=header,
        decimal_comma=decimal_comma,
    )
    table = read_table(os.fspath(name), options, weights=weights, missing=missing)
    return table.standardized() if standardize else table
