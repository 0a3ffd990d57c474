"""From columns to numbers that k-means can use: missing values, scaling, and advice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.tables.readers import Contents
from evomeans.cli.terminal import CommandError, quote
from evomeans.typing import FloatArray
from evomeans.wording import SHOWN, counted, listed, quoted

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

    @classmethod
    def of(cls, what: str, bad: pl.Series, values: pl.Series | None = None) -> Defect:
        """Describe the rows that are bad, with the first value that shows it."""
        shown: Iterable[object] = () if values is None else values.filter(bad).drop_nulls()
        sample = next((quoted(value) for value in shown if str(value).strip()), "")
        return cls(what, tuple(bad.arg_true().head(ROWS).to_list()), sample)

    def described(self, contents: Contents) -> str:
        """Say what is wrong, and where."""
        if not self.rows:
            return self.what
        first = "first in" if len(self.rows) == ROWS else "in"
        sample = f": {self.sample}" if self.sample else ""
        return f"{self.what}, {first} {contents.where(self.rows)}{sample}"


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
            return Defect.of(f"text in {where}", text, written)
    elif not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        kind = "lists or structures" if dtype.is_nested() else "values that are not numbers"
        kind = "dates or times" if dtype.is_temporal() else kind
        return Defect(f"{kind} ({dtype})", (0,), quoted(column[0]))
    absent = column.is_null()
    if column.dtype.is_float():
        absent |= column.is_nan().fill_null(value=False)
    if absent.any() and not keep_missing:
        if absent.all():
            return Defect("missing in all rows")
        found = Defect.of(counted(int(absent.sum()), "missing value"), absent, written)
        return replace(found, is_missing=True)
    if dtype.is_integer():
        lost = column.cast(pl.Float64).cast(dtype, strict=False).ne_missing(column)
        if lost.any():
            what = f"{counted(int(lost.sum()), 'integer')} with more digits than can be kept"
            return Defect.of(what, lost, column)
    numbers = column.cast(pl.Float32 if dtype == pl.Float32 else pl.Float64)
    infinite = numbers.is_infinite().fill_null(value=False)
    if infinite.any():
        return Defect.of(counted(int(infinite.sum()), "infinite value"), infinite)
    return numbers.to_numpy()


DECIMAL_COMMA = re.compile(r"'\s*[-+]?\d*,\d+\s*'")
"""The sample of a column of numbers with decimal commas, in quotes."""
DOMINANT = 0.9
"""The share of the variance from which on a single column is pointed out."""


def unusable(defects: Mapping[str, Defect], contents: Contents, *, is_for_model: bool) -> str:
    """Name the columns and the first rows, and what to do; a model cannot do without a column."""
    noun = "a column" if len(defects) == 1 else f"{len(defects):,} columns"
    lines = [f"{contents.source.name} has {noun} that k-means cannot use:"]
    for name, defect in list(defects.items())[: 2 * SHOWN]:
        lines.append(f"  {quoted(name)}: {defect.described(contents)}")
    if len(defects) > 2 * SHOWN:
        lines.append(f"  and {len(defects) - 2 * SHOWN:,} more")
    if any(DECIMAL_COMMA.fullmatch(defect.sample) for defect in defects.values()):
        lines.append("If 1,5 is a number in this CSV, add --decimal-comma.")
    if contents.separator is not None and len(contents.columns) == 1:
        lines.append("If it has several columns, say what separates them: --separator space.")
    if is_for_model:
        lines.append(
            "Fix these rows. A model that was fitted with --missing drop, mean or median also "
            "takes rows with missing values."
        )
        return "\n".join(lines)
    if any(defect.is_missing for defect in defects.values()):
        lines.append(
            "Leave out rows with missing values (--missing drop), or fill them (--missing mean or "
            "median)."
        )
    excluded = quote(",".join(defects)) if len(defects) <= 2 * SHOWN else "…"
    lines.append(f"Leave out what is not a measurement (--exclude {excluded}), or fix these rows.")
    if texts := [name for name, defect in defects.items() if defect.what == "text in all rows"]:
        lines.append(
            f"If a column names the rows, --id {quote(texts[0])} keeps it next to the labels."
        )
    return "\n".join(lines)


def suspicions(X: NDArray[Any], columns: Sequence[str]) -> tuple[str, ...]:
    """Point out columns that count the rows: an index that came along spoils a clustering."""
    if len(X) < 3:
        return ()
    return tuple(
        f"column {quoted(name)} counts the rows; to leave it out: --exclude {quote(name)}"
        for j, name in enumerate(columns)
        if X[1, j] - X[0, j] == 1.0 and (np.diff(X[:, j]) == 1.0).all()
    )


def scale_note(
    X: NDArray[Any], weights: NDArray[np.float64] | None, columns: Sequence[str]
) -> str | None:
    """Point out a column that makes most of the variance, for k-means then sees little else."""
    if X.shape[1] < 2:
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        variances = _scaler(X, weights).var_
        share = variances / variances.sum()
    largest = int(np.argmax(share))
    # Not so if it cannot be computed.
    if not share[largest] >= DOMINANT:
        return None
    name = columns[largest]
    # Rounded down, so that 100 % is all of it.
    percent = np.floor(1000 * share[largest]) / 10
    return (
        f"column {quoted(name)} makes {percent:.4g} % of the variance, so the clusters follow "
        f"it alone; add --standardize, or leave it out: --exclude {quote(name)}"
    )


RULES = DROP, MEAN, MEDIAN = "drop", "mean", "median"


@dataclass(frozen=True)
class MissingValues:
    """How missing values are treated, and how many a table has; a rule comes from that of a fit."""

    how: str
    """One of "drop", "mean" and "median"."""
    values: tuple[float, ...] = ()
    """What each column is filled with; nothing with "drop"."""
    n_rows: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    """The columns that have missing values, and how many."""

    @classmethod
    def of(
        cls, how: str, X: NDArray[Any], weights: FloatArray | None, names: Sequence[str]
    ) -> MissingValues:
        """Learn from samples, each counting by its weight, what to fill columns with."""
        is_known = ~np.isnan(X)
        if empty := [quoted(names[int(j)]) for j in np.flatnonzero(~is_known.any(axis=0))]:
            raise CommandError(
                f"There is no value at all in {listed(empty)}; leave it out with --exclude."
            )
        if how == DROP:
            return cls(how)
        middle = weighted_mean if how == MEAN else weighted_median
        counts = np.ones(len(X)) if weights is None else weights
        known = zip(X.T, is_known.T, strict=True)
        return cls(how, tuple(middle(x[at].astype(np.float64), counts[at]) for x, at in known))

    def found_in(self, is_missing: NDArray[np.bool_], names: Sequence[str]) -> MissingValues:
        """Return the same rule with the counts of a table."""
        counts = zip(names, is_missing.sum(axis=0).tolist(), strict=True)
        columns = {name: count for name, count in counts if count}
        return replace(self, n_rows=int(is_missing.any(axis=1).sum()), columns=columns)

    def filled(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return samples with a value in every cell."""
        return np.where(np.isnan(X), np.array(self.values, X.dtype), X)

    def described(self) -> str:
        """Say what was missing and what was done about it; empty if nothing was missing."""
        if not self.n_rows:
            return ""
        where = listed(f"{quoted(name)} ({count:,})" for name, count in self.columns.items())
        values = counted(sum(self.columns.values()), "missing value")
        done = f"filled with the {self.how} of the column"
        if self.how == DROP:
            done = "these rows are left out" if self.n_rows > 1 else "this row is left out"
        return f"{values} in {counted(self.n_rows, 'row')}, in {where}; {done}"


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Return the mean; without weights that count, the mean of all alike."""
    weights = weights if weights.any() else np.ones_like(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(weights @ values / weights.sum())


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the median, where a weight of 2 counts like two equal values."""
    weights = weights if weights.any() else np.ones_like(values)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    # Different only where exactly half of the weights is below.
    places = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    low, high = values[order[places]].tolist()
    return float(low + (high - low) / 2)


def _scaler(X: NDArray[Any], weights: FloatArray | None) -> Any:
    """Return scikit-learn's scaler, fitted; values that are too large make it overflow."""
    # Imported here: the command line answers without loading it.
    from sklearn.preprocessing import StandardScaler

    with np.errstate(over="ignore", invalid="ignore"):
        return StandardScaler().fit(X, sample_weight=weights)


@dataclass(frozen=True)
class Standardization:
    """Subtract a mean and divide by a standard deviation, column by column."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    """The standard deviations, or 1 where one is 0."""

    @classmethod
    def of(
        cls, X: NDArray[Any], weights: FloatArray | None, names: Sequence[str]
    ) -> Standardization:
        """Learn it from samples, each counting by its weight."""
        scaler = _scaler(X, weights)
        if (is_bad := ~np.isfinite(scaler.mean_ + scaler.var_)).any():
            bad = listed(quoted(names[int(j)]) for j in np.flatnonzero(is_bad))
            raise CommandError(f"Values too large to standardize in {bad}; divide them first.")
        return cls(tuple(scaler.mean_.tolist()), tuple(scaler.scale_.tolist()))

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return standardized samples of the same precision."""
        out: FloatArray = np.subtract(X, self.mean, dtype=np.float64)
        out /= self.scale
        return out.astype(X.dtype, copy=False)

    def undo(self, centers: NDArray[Any]) -> FloatArray:
        """Return centres in the units of the table."""
        restored: FloatArray = centers.astype(np.float64) * self.scale + np.asarray(self.mean)
        return restored
