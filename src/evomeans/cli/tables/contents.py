"""What readers return: the columns of a table, not yet looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

Column: TypeAlias = pl.Series | NDArray[Any]
Load: TypeAlias = Callable[[Sequence[str], Sequence[str]], Mapping[str, Column]]
"""Return columns by name; those of a text that the second list names as they are written."""


def row_numbers(rows: Sequence[int]) -> tuple[str, list[int]]:
    """Locate rows by their number; people count from 1."""
    return "row", [row + 1 for row in rows]


@dataclass(frozen=True)
class Contents:
    """The columns of a table and how to get at them.

    Parameters
    ----------
    columns : tuple of str
        Their names.
    named : bool
        Whether the file has the names, or they were made up (x0, x1, …).
    load : Load
        From names to columns.
    locate : callable
        From row indices to what these are called for the user: "line" or "row", and numbers.
    matrix : (n, d) array, optional
        All columns together, if the file holds them so.
    notes : tuple of str
        What the user should know about how it was read.
    """

    columns: tuple[str, ...]
    named: bool
    load: Load
    locate: Callable[[Sequence[int]], tuple[str, list[int]]] = row_numbers
    matrix: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()


def unnamed(count: int) -> tuple[str, ...]:
    """Names for columns that have none, those that scikit-learn gives them."""
    return tuple(f"x{index}" for index in range(count))


def array_contents(matrix: NDArray[Any]) -> Contents:
    """Offer the columns of a matrix."""
    names = unnamed(matrix.shape[1])

    def load(columns: Sequence[str], _: Sequence[str]) -> dict[str, NDArray[Any]]:
        return {name: matrix[:, names.index(name)] for name in columns}

    return Contents(names, named=False, load=load, matrix=np.asarray(matrix))
