"""Rows at quantiles of the cumulated sample weight."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import FloatArray

NONE_TAKEN = np.empty(0, np.intp)


class WeightedDraw:
    """Turns uniform numbers into row numbers, each row having its share of the total weight.

    Parameters
    ----------
    n_samples : int
    weights : (n,) array, optional
        None for equal weights.
    """

    def __init__(self, n_samples: int, weights: FloatArray | None) -> None:
        self.n_samples = n_samples
        self.weights = weights

    def rows(self, quantiles: FloatArray) -> NDArray[np.intp]:
        """Return the rows at these quantiles in [0, 1)."""
        if self.weights is None:
            drawn = (quantiles * self.n_samples).astype(np.intp)
        else:
            cumulated = self._cumulated
            drawn = np.searchsorted(cumulated, quantiles * cumulated[-1], side="right")
        # Rounding must not lead beyond the last row, nor to one without weight.
        rows: NDArray[np.intp] = np.minimum(drawn, self._last)
        return rows

    def row(self, quantile: float) -> int:
        """Return the row at one quantile."""
        if self.weights is None:
            drawn = int(quantile * self.n_samples)
        else:
            cumulated = self._cumulated
            drawn = int(np.searchsorted(cumulated, quantile * cumulated[-1], side="right"))
        return min(drawn, self._last)

    def distinct_rows(
        self, quantiles: FloatArray, taken: NDArray[np.intp] = NONE_TAKEN
    ) -> NDArray[np.intp]:
        """Return the rows at these quantiles; others in place of those drawn twice or ``taken``.

        The others have weight too. Rows repeat only if there are no others.
        """
        rows = self.rows(quantiles)
        is_new = np.zeros(len(rows), np.bool_)
        is_new[np.unique(rows, return_index=True)[1]] = True
        is_new &= ~np.isin(rows, taken)
        if is_new.all():
            return rows
        places = np.flatnonzero(~is_new)
        free = np.setdiff1d(self.counted, np.concatenate([rows, taken]))
        places = places[: len(free)]
        rows[places] = free[np.arange(len(places)) * len(free) // max(1, len(places))]
        return rows

    @cached_property
    def counted(self) -> NDArray[np.intp]:
        """The rows that have weight."""
        if self.weights is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(self.weights)

    @cached_property
    def _cumulated(self) -> FloatArray:
        assert self.weights is not None
        return np.cumsum(self.weights)

    @cached_property
    def _last(self) -> int:
        return self.n_samples - 1 if self.weights is None else int(self.counted[-1])
