"""From a column to numbers that k-means can use, or to what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from numpy.typing import NDArray

from evomeans.wording import counted, quoted

ROWS = 3
"""Rows that a defect names."""

MISSING = (
    *("", "na", "n/a", "nan", "-nan", "null", "none", "nil", "nat", "missing"),
    *("?", "-", "--", "---", ".", "*", "<na>", "(null)", "\\n", "n.a.", "k.a."),
    # What spreadsheets and old libraries write.
    *("#n/a", "#n/a n/a", "#na", "#null!", "#div/0!", "#value!", "#ref!", "#num!", "#name?"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)
"""How programs and people write that there is no value, in lower case."""


@dataclass(frozen=True)
class Defect:
    """Why a column cannot be used."""

    what: str
    """For the message, e.g. "2 missing values"."""
    rows: tuple[int, ...] = ()
    """The first ones concerned, from 0; none if it is the whole column."""
    sample: str = ""
    """The value in the first of them."""
    is_missing: bool = False
    """Whether it is that values are missing."""


def numbers_of(column: pl.Series, *, keep_missing: bool = False) -> NDArray[Any] | Defect:
    """Return a column as float32 if it is that, else as float64; or what is wrong with it.

    Booleans are 0 and 1, decimals the nearest numbers. Integers that a float64 would round are
    refused: they are identifiers, as a rule. Missing values are NaN if they are kept.
    """
    # polars takes some names for patterns.
    column = column.alias("column")
    written, dtype = None, column.dtype
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        # Padded, signed, or of mixed notation.
        written = column.cast(pl.String)
        stripped = written.str.strip_chars()
        is_missing = stripped.is_null() | stripped.str.to_lowercase().is_in(MISSING)
        # polars takes "nan" for a number.
        known = pl.select(pl.when(is_missing).then(None).otherwise(stripped)).to_series()
        column = known.cast(pl.Float64, strict=False)
        text = column.is_null() & ~is_missing
        if text.any():
            where = "all rows" if text.all() else counted(int(text.sum()), "row")
            return _defect(f"text in {where}", text, written)
    elif not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        kind = "lists or structures" if dtype.is_nested() else "values that are not numbers"
        kind = "dates or times" if dtype.is_temporal() else kind
        return Defect(f"{kind} ({dtype})", (0,), quoted(column[0]))
    absent = column.is_null()
    if column.dtype.is_float():
        absent |= column.is_nan().fill_null(value=False)
    if absent.any() and not keep_missing:
        return _missing(absent, written)
    if dtype.is_integer():
        lost = column.cast(pl.Float64).cast(dtype, strict=False).ne_missing(column)
        if lost.any():
            what = f"{counted(int(lost.sum()), 'integer')} with more digits than can be kept"
            return _defect(what, lost, column)
    numbers = column.cast(pl.Float32 if dtype == pl.Float32 else pl.Float64)
    infinite = numbers.is_infinite().fill_null(value=False)
    if infinite.any():
        return _defect(counted(int(infinite.sum()), "infinite value"), infinite)
    return numbers.to_numpy()


def _missing(bad: pl.Series, written: pl.Series | None = None) -> Defect:
    if bad.all():
        return Defect("missing in all rows")
    found = _defect(counted(int(bad.sum()), "missing value"), bad, written)
    return replace(found, is_missing=True)


def _defect(what: str, bad: pl.Series, values: pl.Series | None = None) -> Defect:
    shown: Iterable[object] = () if values is None else values.filter(bad).drop_nulls()
    sample = next((quoted(value) for value in shown if str(value).strip()), "")
    return Defect(what, tuple(bad.arg_true().head(ROWS).to_list()), sample)
