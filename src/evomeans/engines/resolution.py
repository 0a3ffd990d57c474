"""Whether the sums of the engines resolve all samples; next to 1e50, those of size 1 are lost.

Engines sum up a column in steps of 2⁻ᴿ of its largest value (:mod:`~evomeans.engines.fixed_point`).
R is 82 for a million samples, and larger for fewer. A sample is lost if a step is not small
compared with its largest coordinate. This does no harm as long as the larger samples decide the
objective. It does if there are more centres than distinct larger samples: the other centres then
belong to lost samples, and would be far from the means of their clusters. Such data are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evomeans.engines.fixed_point import limb_bits
from evomeans.engines.frame import SMALLEST_SQUARE, Frame, is_sparse

# Means then have errors of at most 2⁻¹⁰ of the size of their samples, and the inertia 2⁻²⁰.
SPARE_BITS = 10
DIGITS = 53
BLOCK = 2**20

Finding = tuple[str, NDArray[np.float32]]
"""What is wrong with the first lost sample, and a number for each of the distinct other samples."""


def check_resolution(
    X: Any, sample_weight: NDArray[np.float64] | None, frame: Frame, n_clusters: int
) -> None:
    """Refuse samples in memory, in data units, of which some centres would not be the means."""
    n, d = X.shape
    weights = np.ones(1) if sample_weight is None else sample_weight
    finest = smallest(X.data if is_sparse(X) else X)
    low, high = _dense(X.min(axis=0)), _dense(X.max(axis=0))
    look = search_if_needed(frame, low, high, finest, smallest(weights), weights.max(), n)
    if look is not None:
        step = n if is_sparse(X) else max(1, BLOCK // d)
        parts = [slice(begin, begin + step) for begin in range(0, n, step)]
        weights = np.broadcast_to(weights, n)
        refuse_unresolved([look(X[part], weights[part], n_clusters) for part in parts], n_clusters)


def search_if_needed(
    frame: Frame,
    low: NDArray[Any],
    high: NDArray[Any],
    finest: float,
    lightest: float,
    heaviest: float,
    n_samples: int,
) -> Callable[[Any, NDArray[Any] | None, int], Finding] | None:
    """Return a search for lost samples among some of them; None if there are none for sure.

    Parameters
    ----------
    frame : Frame
        That of the engine.
    low, high : (d,) arrays
        The smallest and largest values of the columns, in data units.
    finest : float
        The smallest absolute value but zero.
    lightest, heaviest : float
        The smallest weight but zero, and the largest.
    n_samples : int
    """
    extents = np.abs(frame.encode(np.stack([low, high]).astype(np.float64))).max(axis=0)
    bits = limb_bits(n_samples)
    limit = math.ldexp(1.0, SPARE_BITS - bits - min(bits, DIGITS))
    # Values that are shifted differ by a unit in the last place at least.
    size = min(finest, smallest(frame.shift) * 2.0**-DIGITS) * frame.scale
    if limit * max(float(extents.max()), size) < lightest / heaviest * size:
        return None
    return partial(_lost_and_distinct, frame, extents, heaviest, limit)


def _lost_and_distinct(
    frame: Frame,
    extents: NDArray[np.float64],
    heaviest: float,
    limit: float,
    X: Any,
    sample_weight: NDArray[Any] | None,
    enough: int,
) -> Finding:
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    # In double precision, in which no sample underflows.
    X = X.astype(np.float64)
    Z: Any = csr_array(X) * frame.scale if is_sparse(X) else frame.encode(X)
    # Of every row the largest absolute value, and the largest extent of the columns that it needs.
    sizes, reach = _dense(abs(Z).max(axis=1)), _dense(((Z != 0.0) * extents).max(axis=1))
    # Squares of smaller numbers are zero, and so might be the numbers.
    sizes[sizes <= math.sqrt(SMALLEST_SQUARE) * frame.scale] = 0.0
    with np.errstate(over="ignore"):
        ratios = np.divide(reach, sizes, out=np.ones_like(reach), where=sizes > 0.0)
        lost = (weights > 0.0) & (limit * np.maximum(ratios, 1.0) > weights / heaviest)
    # Rows of which the projections differ are distinct, even next to an outlier that they share.
    projections = Z @ np.random.default_rng(0).random(len(extents))
    distinct = np.unique(projections[~lost & (weights > 0.0)].astype(np.float32))[:enough]
    if not lost.any():
        return "", distinct
    i = int(np.argmax(lost))
    if limit > weights[i] / heaviest:
        problem = (
            f"sample_weight ranges from {weights[i]:.3g} to {heaviest:.3g}. Next to such heavy "
            f"samples, weights below {limit * heaviest:.1e} are lost when clusters are summed up. "
            "Set them to 0"
        )
        return problem, distinct
    largest = reach[i] / frame.scale
    problem = (
        f"Column {np.argmax(extents == reach[i])} of X has values up to {largest:.3g}, but there "
        f"are samples of size {sizes[i] / frame.scale:.3g}. Next to such outliers, samples smaller "
        f"than {limit * largest * (heaviest / weights[i]):.1e} are lost when clusters are summed "
        "up. Remove the outliers, transform the column"
    )
    return problem, distinct


def refuse_unresolved(findings: Sequence[Finding], n_clusters: int) -> None:
    """Raise an error if there are more centres than samples that are resolved."""
    problems = [problem for problem, _ in findings if problem]
    distinct = np.unique(np.concatenate([values for _, values in findings]))
    if problems and len(distinct) < n_clusters:
        raise ValueError(f"{problems[0]}, or choose engine='reference', which is exact but slow.")


def smallest(values: NDArray[Any]) -> float:
    """Return the smallest absolute value that is not zero; infinity if there is none."""
    flat, least = values.reshape(-1), math.inf
    for begin in range(0, len(flat), BLOCK):
        sizes = np.abs(flat[begin : begin + BLOCK])
        least = min(least, float(np.min(sizes, where=sizes > 0, initial=np.inf)))
    return least


def _dense(values: Any) -> NDArray[Any]:
    """Return what a reduction of dense or sparse samples gives as an array of one dimension."""
    return np.ravel(values.toarray() if is_sparse(values) else values)
