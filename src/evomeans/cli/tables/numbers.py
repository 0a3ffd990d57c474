"""From a column to numbers that k-means can use, or to what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.wording import counted, quoted

if TYPE_CHECKING:
    from evomeans.cli.tables.contents import Column

ROWS = 3
"""Rows that a defect names."""

EXACT = 2**53
"""Integers up to this are float64 numbers."""

MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "?", "-", ".")
"""How people write that there is no value."""


@dataclass(frozen=True)
class Defect:
    """Why a column cannot be used.

    Parameters
    ----------
    what : str
        For the message, e.g. "2 missing values".
    rows : tuple of int
        The first ones concerned, from 0; none if it is the whole column.
    sample : str
        The value in the first of them.
    """

    what: str
    rows: tuple[int, ...] = ()
    sample: str = ""


def numbers_of(column: Column) -> NDArray[Any] | Defect:
    """Return a column as float32 if it is that, else as float64; or what is wrong with it.

    Booleans are 0 and 1, decimals the nearest numbers. Integers that a float64 would round are
    refused: they are identifiers, as a rule.
    """
    if isinstance(column, np.ndarray):
        return _array_numbers(column)
    return _series_numbers(column)


def _array_numbers(column: NDArray[Any]) -> NDArray[Any] | Defect:
    if column.dtype.kind in "iu" and (defect := _digits_lost(column)):
        return defect
    dtype = np.float32 if column.dtype == np.float32 else np.float64
    with np.errstate(over="ignore"):
        numbers = column.astype(dtype, copy=False)
    return _finite(numbers)


def _digits_lost(column: Any) -> Defect | None:
    """Look for integers that a float64 would round."""
    if not len(column) or max(int(column.max()), -int(column.min())) <= EXACT:
        return None
    lost = np.array([int(float(value)) != int(value) for value in column])
    if not lost.any():
        return None
    rows = _first(lost)
    return Defect(
        f"{counted(int(lost.sum()), 'integer')} with more digits than can be kept",
        rows,
        quoted(column[rows[0]]),
    )


def _series_numbers(column: pl.Series) -> NDArray[Any] | Defect:
    dtype = column.dtype
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _text_numbers(column.cast(pl.String))
    if dtype == pl.Null:
        return Defect("missing in all rows")
    if not (dtype.is_numeric() or dtype == pl.Boolean):
        return Defect(
            _kind_of(dtype), (0,) if len(column) else (), quoted(column[0]) if len(column) else ""
        )
    if column.null_count():
        return _missing(column.is_null().to_numpy())
    if dtype.is_integer() and (defect := _digits_lost(column)):
        return defect
    wanted = pl.Float32 if dtype == pl.Float32 else pl.Float64
    return _finite(column.cast(wanted).to_numpy())


def _kind_of(dtype: pl.DataType) -> str:
    if dtype.is_temporal():
        return f"dates or times ({dtype})"
    if dtype.is_nested():
        return f"lists or structures ({dtype})"
    return f"values of type {dtype}"


def _text_numbers(column: pl.Series) -> NDArray[Any] | Defect:
    """Read numbers written as text: padded, signed, or of mixed notation."""
    stripped = column.str.strip_chars()
    numbers = stripped.cast(pl.Float64, strict=False)
    bad = numbers.is_null().to_numpy()
    if not bad.any():
        return _finite(numbers.to_numpy())
    missing = (stripped.is_null() | stripped.str.to_lowercase().is_in(MISSING)).to_numpy()
    if not (bad & ~missing).any():
        return _missing(bad, next(filter(None, column.filter(bad).to_list()), ""))
    bad &= ~missing
    rows = _first(bad)
    everywhere = "all rows" if bad.all() else counted(int(bad.sum()), "row")
    return Defect(f"text in {everywhere}", rows, quoted(column[rows[0]]))


def _missing(bad: NDArray[np.bool_], written: str = "") -> Defect:
    what = "missing in all rows" if bad.all() else counted(int(bad.sum()), "missing value")
    return Defect(
        what, () if bad.all() else _first(bad), quoted(written) if written.strip() else ""
    )


def _finite(numbers: NDArray[Any]) -> NDArray[Any] | Defect:
    if np.isfinite(numbers).all():
        return numbers
    if np.isnan(numbers).any():
        return _missing(np.isnan(numbers))
    bad = np.isinf(numbers)
    return Defect(counted(int(bad.sum()), "infinite value"), _first(bad))


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(bad)[:ROWS].tolist())
