"""Missing values and scaling, for a fit and for the rows of a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError, UsageError
from evomeans.typing import FloatArray
from evomeans.wording import counted, listed, quoted

DROP, MEAN, MEDIAN = "drop", "mean", "median"


@dataclass(frozen=True)
class MissingValues:
    """How missing values are treated; what it was learned from is the table of a fit."""

    how: str
    """One of "drop", "mean" and "median"."""
    values: tuple[float, ...] = ()
    """What each column is filled with; nothing with "drop"."""

    @classmethod
    def of(
        cls, how: str, X: NDArray[Any], weights: FloatArray | None, names: Sequence[str]
    ) -> MissingValues:
        """Learn from samples, each counting by its weight, what to fill columns with."""
        if how not in (DROP, MEAN, MEDIAN):
            raise UsageError(f"missing must be drop, mean or median, got {quoted(how)}.")
        is_known = ~np.isnan(X)
        if empty := [quoted(names[int(j)]) for j in np.flatnonzero(~is_known.any(axis=0))]:
            raise CommandError(
                f"There is no value at all in {listed(empty)}; leave it out with --exclude."
            )
        if how == DROP:
            return cls(how)
        counts = np.ones(len(X)) if weights is None else weights
        middle = weighted_mean if how == MEAN else weighted_median
        parts = (
            middle(X[known, j].astype(np.float64), counts[known])
            for j, known in enumerate(is_known.T)
        )
        return cls(how, tuple(parts))

    def apply(self, X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return samples without missing values, and which of the rows they are."""
        if self.how == DROP:
            kept = ~np.isnan(X).any(axis=1)
            return X[kept], kept
        return self.filled(X), np.ones(len(X), dtype=bool)

    def filled(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return samples with a value in every cell."""
        return np.where(np.isnan(X), np.array(self.values, X.dtype), X)


@dataclass(frozen=True)
class MissingFound:
    """How many values were missing in a table, and in how many rows."""

    n_rows: int
    columns: Mapping[str, int]
    """The columns that have missing values, and how many."""

    @classmethod
    def of(cls, X: NDArray[Any], names: Sequence[str]) -> MissingFound:
        """Count what is missing."""
        is_missing = np.isnan(X)
        counts = is_missing.sum(axis=0).tolist()
        columns = {name: count for name, count in zip(names, counts, strict=True) if count}
        return cls(int(is_missing.any(axis=1).sum()), columns)

    @property
    def n_values(self) -> int:
        """All missing values together."""
        return sum(self.columns.values())

    def described(self, how: str) -> str:
        """Say what was missing and what was done about it; empty if nothing was missing."""
        if not self.n_rows:
            return ""
        where = listed(f"{quoted(name)} ({count:,})" for name, count in self.columns.items())
        found = f"{counted(self.n_values, 'missing value')} in {counted(self.n_rows, 'row')}"
        if how == DROP:
            done = "these rows are left out" if self.n_rows > 1 else "this row is left out"
        else:
            done = f"filled with the {how} of the column"
        return f"{found}, in {where}; {done}"


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Return the mean; without weights that count, the mean of all alike."""
    weights = weights if weights.any() else np.ones_like(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(weights @ values / weights.sum())


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the median, where a weight of 2 counts like two equal values."""
    weights = weights if weights.any() else np.ones_like(values)
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0]
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    place = int(np.searchsorted(below, half))
    first = float(values[order[place]])
    if below[place] > half or place + 1 == len(order):
        return first
    return first + (float(values[order[place + 1]]) - first) / 2


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
        total = len(X) if weights is None else weights.sum()
        if not total > 0:
            raise CommandError("The weights are all zero: no row would count.")
        parts = (_moments(X[:, j].astype(np.float64), weights, total) for j in range(X.shape[1]))
        mean, scale = np.array(list(parts)).T
        bad = [quoted(names[int(j)]) for j in np.flatnonzero(~np.isfinite(mean + scale))]
        if bad:
            raise CommandError(
                f"Values too large to standardize in {listed(bad)}; divide them first."
            )
        return cls(tuple(mean.tolist()), tuple(scale.tolist()))

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return standardized samples of the same precision."""
        out = np.empty(X.shape, X.dtype)
        for j in range(X.shape[1]):
            out[:, j] = (X[:, j].astype(np.float64) - self.mean[j]) / self.scale[j]
        return out

    def undo(self, centers: NDArray[Any]) -> FloatArray:
        """Return centres in the units of the table."""
        restored: FloatArray = centers.astype(np.float64) * self.scale + np.asarray(self.mean)
        return restored


def _moments(column: FloatArray, weights: FloatArray | None, total: float) -> tuple[float, float]:
    with np.errstate(over="ignore", invalid="ignore"):
        counted = np.ones_like(column) if weights is None else weights
        # Twice, since the first mean of a constant column may be off by a rounding, which would
        # then pass for its deviation.
        mean = float(counted @ column) / total
        mean += float(counted @ (column - mean)) / total
        deviation = float(np.sqrt(counted @ (column - mean) ** 2 / total))
    tiny = 10 * np.finfo(np.float64).eps * abs(mean)
    return mean, deviation if deviation > tiny or not np.isfinite(deviation) else 1.0
