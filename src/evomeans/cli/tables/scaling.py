"""Columns brought to equal weight, and centres brought back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError
from evomeans.engines.protocol import FloatArray
from evomeans.wording import listed, quoted


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
