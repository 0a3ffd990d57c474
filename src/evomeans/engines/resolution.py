"""Whether the sums of the engines resolve all samples; next to 1e50, those of size 1 are lost.

Engines sum up a column in steps of 2⁻ᴿ of its largest value (:mod:`~evomeans.engines.fixed_point`).
R is 82 for a million samples, and larger for fewer. A sample is lost if a step is not small
compared with its largest coordinate. This does no harm as long as the larger samples decide the
objective. It does if there are more centres than distinct larger samples: the other centres then
belong to lost samples, and would be far from the means of their clusters. Such data are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.fixed_point import limb_bits
from evomeans.engines.frame import SMALLEST_SQUARE, Frame, is_sparse

# Means then have errors of at most 2⁻¹⁰ of the size of their samples, and the inertia 2⁻²⁰.
SPARE_BITS = 10
DIGITS = 53
BLOCK = 2**20


@dataclass(frozen=True)
class Judgement:
    """What was found out about some samples.

    Parameters
    ----------
    problem : str
        What is wrong with the first sample that is not resolved; empty if all are.
    distinct : set of bytes
        Different samples that are resolved, as many as were asked for at most.
    """

    problem: str
    distinct: set[bytes]


@dataclass(frozen=True)
class Resolution:
    """What the sums of all samples resolve.

    Parameters
    ----------
    frame : Frame
        In which the samples are summed up.
    extents : (d,) array of float64
        The largest absolute value of every column in the frame.
    heaviest : float
        The largest weight; 1 for equal weights.
    limit : float
        The largest ratio of a step to an extent, with some bits to spare.
    """

    frame: Frame
    extents: NDArray[np.float64]
    heaviest: float
    limit: float

    @classmethod
    def within(
        cls, frame: Frame, low: NDArray[Any], high: NDArray[Any], heaviest: float, n_samples: int
    ) -> Resolution:
        """Build it from the smallest and largest values of the columns, in data units."""
        ends = frame.encode(np.stack([low, high]).astype(np.float64))
        bits = limb_bits(n_samples)
        limit = math.ldexp(1.0, SPARE_BITS - bits - min(bits, DIGITS))
        return cls(frame, np.abs(ends).max(axis=0), heaviest, limit)

    def suffices(self, finest: float, lightest: float) -> bool:
        """Whether all samples are resolved for sure.

        Parameters
        ----------
        finest : float
            The smallest value but zero, in data units.
        lightest : float
            The smallest weight but zero.
        """
        # Values that are shifted differ by a unit in the last place at least.
        shifts = smallest(self.frame.shift) * 2.0**-DIGITS
        size = min(finest, shifts) * self.frame.scale
        weight = lightest / self.heaviest
        return self.limit < weight and self.limit * float(self.extents.max()) < weight * size

    def judge(self, X: Any, sample_weight: NDArray[Any] | None, enough: int) -> Judgement:
        """Look for samples that are not resolved, and for ``enough`` different ones that are."""
        problem, distinct = "", set[bytes]()
        for part in _blocks(X):
            weights = np.ones(1) if sample_weight is None else np.asarray(sample_weight[part])
            # In double precision, in which no sample underflows.
            rows = X[part].astype(np.float64)
            rows = rows * self.frame.scale if is_sparse(X) else self.frame.encode(rows)
            sizes, reach = _sizes(rows, self.extents)
            # Squares of smaller numbers are zero, and so might be the numbers.
            sizes[sizes <= math.sqrt(SMALLEST_SQUARE) * self.frame.scale] = 0.0
            with np.errstate(over="ignore"):
                ratios = np.divide(reach, sizes, out=np.ones_like(reach), where=sizes > 0.0)
                needed = self.limit * np.maximum(ratios, 1.0)
            shares = weights / self.heaviest
            lost = (weights > 0.0) & (needed > shares)
            if not problem and lost.any():
                problem = self._problem(rows, sizes, np.broadcast_to(weights, lost.shape), lost)
            for i in np.flatnonzero((weights > 0.0) & ~lost):
                if len(distinct) >= enough:
                    break
                distinct.add(_key(rows, int(i), self.limit))
        return Judgement(problem, distinct)

    def _problem(self, rows: Any, sizes: Any, weights: Any, lost: NDArray[np.bool_]) -> str:
        i = int(np.flatnonzero(lost)[0])
        if self.limit > weights[i] / self.heaviest:
            return (
                f"sample_weight ranges from {weights[i]:.3g} to {self.heaviest:.3g}. Next to such "
                f"heavy samples, weights below {self.limit * self.heaviest:.1e} are lost when "
                "clusters are summed up. Set them to 0"
            )
        row = rows[[i]].toarray()[0] if is_sparse(rows) else rows[i]
        column = int(np.argmax(np.where(row != 0.0, self.extents, 0.0)))
        largest = self.extents[column] / self.frame.scale
        least = self.limit * largest * (self.heaviest / weights[i])
        return (
            f"Column {column} of X has values up to {largest:.3g}, but there are samples of size "
            f"{sizes[i] / self.frame.scale:.3g}. Next to such outliers, samples smaller than "
            f"{least:.1e} are lost when clusters are summed up. Remove the outliers, transform the "
            "column"
        )


def check_resolution(
    X: Any, sample_weight: NDArray[np.float64] | None, frame: Frame, n_clusters: int
) -> None:
    """Refuse samples in memory of which some centres would not be the means.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        In data units.
    sample_weight : (n,) array, optional
    frame : Frame
        That of the engine.
    n_clusters : int
        How many centres are sought.
    """
    values = X.data if is_sparse(X) else X
    low, high = X.min(axis=0), X.max(axis=0)
    if is_sparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    heaviest = 1.0 if sample_weight is None else float(sample_weight.max())
    resolution = Resolution.within(frame, low, high, heaviest, X.shape[0])
    lightest = 1.0 if sample_weight is None else smallest(sample_weight)
    if not resolution.suffices(smallest(values), lightest):
        refuse_unresolved([resolution.judge(X, sample_weight, n_clusters)], n_clusters)


def refuse_unresolved(judgements: Sequence[Judgement], n_clusters: int) -> None:
    """Raise an error if there are more centres than samples that are resolved."""
    problem = next((found.problem for found in judgements if found.problem), "")
    distinct = set[bytes]().union(*(found.distinct for found in judgements))
    if problem and len(distinct) < n_clusters:
        raise ValueError(f"{problem}, or choose engine='reference', which is exact but slow.")


def smallest(values: NDArray[Any]) -> float:
    """Return the smallest absolute value that is not zero; infinity if there is none."""
    flat = values.reshape(-1)
    least = math.inf
    for begin in range(0, len(flat), BLOCK):
        sizes = np.abs(flat[begin : begin + BLOCK])
        least = min(least, float(np.min(sizes, where=sizes > 0, initial=np.inf)))
    return least


def _blocks(X: Any) -> Iterator[slice]:
    stored = X.nnz // max(1, X.shape[0]) if is_sparse(X) else X.shape[1]
    step = max(1, BLOCK // (stored + 1))
    yield from (slice(begin, begin + step) for begin in range(0, X.shape[0], step))


def _sizes(rows: Any, extents: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest absolute value of every row, and the largest extent of its columns."""
    if not is_sparse(rows):
        return np.abs(rows).max(axis=1), np.where(rows != 0.0, extents, 0.0).max(axis=1)
    owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    sizes, reach = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    np.maximum.at(sizes, owners, np.abs(rows.data))
    np.maximum.at(reach, owners, np.where(rows.data != 0.0, extents[rows.indices], 0.0))
    return sizes, reach


def _key(rows: Any, i: int, step: float) -> bytes:
    """Return what rows have in common that differ by less than a step."""
    stored = slice(rows.indptr[i], rows.indptr[i + 1]) if is_sparse(rows) else slice(None)
    values = np.rint((rows.data[stored] if is_sparse(rows) else rows[i]) / step)
    places = np.flatnonzero(values)
    columns = rows.indices[stored][places] if is_sparse(rows) else places
    return bytes(columns.astype(np.int64).tobytes() + values[places].tobytes())
