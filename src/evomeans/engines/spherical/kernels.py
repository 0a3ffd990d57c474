"""The steps of spherical k-means, compiled, for dense and sparse samples.

Centres and sums are stored feature by feature, (d, k), so that one value of a sample meets all
centres at once, and sparse samples touch no more than they have.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]
# A gain below this share of the lengths involved is rounding.
WORTHWHILE = 1e-12
# Cosines this close to one are one but for rounding.
ROUNDING = 2.0**-50


@bundle
class Rows(NamedTuple):
    """Samples of length one, or zero.

    Parameters
    ----------
    dense : (n, d) array
        Without rows if the samples are sparse.
    data, indices, indptr : arrays
        Of sparse samples, as in CSR.
    lengths : (n,) array
        One, or zero for samples without a direction.
    weights : (n,) array
    """

    dense: FloatArray
    data: FloatArray
    indices: NDArray[Any]
    indptr: NDArray[Any]
    lengths: FloatArray
    weights: FloatArray


@jit(fastmath=REORDER)
def multiply(rows: Rows, i: int, matrix: FloatArray, products: FloatArray) -> None:
    """Fill in the products of a sample with all columns of a (d, k) matrix."""
    k = matrix.shape[1]
    for j in range(k):
        products[j] = 0.0
    if rows.dense.shape[0] > 0:
        for t in range(matrix.shape[0]):
            x = rows.dense[i, t]
            if x != 0.0:
                for j in range(k):
                    products[j] += x * matrix[t, j]
    else:
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            x, t = rows.data[e], rows.indices[e]
            for j in range(k):
                products[j] += x * matrix[t, j]


@jit
def add(rows: Rows, i: int, matrix: FloatArray, j: int, factor: float) -> None:
    """Add a multiple of a sample to one column of a (d, k) matrix."""
    if rows.dense.shape[0] > 0:
        for t in range(matrix.shape[0]):
            matrix[t, j] += factor * rows.dense[i, t]
    else:
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            matrix[rows.indices[e], j] += factor * rows.data[e]


@jit(inline=False)
def find_closest(
    rows: Rows,
    units: FloatArray,
    labels: Integers,
    costs: FloatArray,
    products: FloatArray,
    first: int,
    last: int,
) -> int:
    """Label some samples by the centre with the largest cosine; the lowest index on ties.

    Parameters
    ----------
    rows : Rows
    units : (d, k) array
        Centres of length one.
    labels : (n,) array, in and out
    costs : (n,) array, out
        One less the cosine.
    products : (k,) array
        Working memory.
    first, last : int
        The samples to label.

    Returns
    -------
    changed : int
        How many labels changed.
    """
    changed = 0
    for i in range(first, last):
        multiply(rows, i, units, products)
        best = 0
        for j in range(1, units.shape[1]):
            if products[j] > products[best]:
                best = j
        # A search that compares remainders of rounding would never agree.
        cost = 1.0 - products[best]
        costs[i] = cost if cost > ROUNDING else 0.0
        if labels[i] != best:
            labels[i] = best
            changed += 1
    return changed


@jit(inline=False)
def add_up(rows: Rows, labels: Integers, sums: FloatArray, norms: FloatArray) -> None:
    """Sum up the samples of clusters, times their weights, and measure the squared lengths."""
    for t in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            sums[t, j] = 0.0
    for i in range(labels.shape[0]):
        add(rows, i, sums, labels[i], rows.weights[i])
    for j in range(sums.shape[1]):
        norms[j] = 0.0
    for t in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            norms[j] += sums[t, j] * sums[t, j]


@jit(inline=False)
def move_singles(
    rows: Rows,
    labels: Integers,
    sums: FloatArray,
    norms: FloatArray,
    products: FloatArray,
    first: int,
    last: int,
) -> int:
    """Move samples whose change of cluster makes the sums longer in total; return how many.

    The objective is Σw − Σ‖s_j‖ with the sums s_j of clusters. If a sample moves from a to b, it
    falls by ‖s_a − wx‖ + ‖s_b + wx‖ − ‖s_a‖ − ‖s_b‖, which follows from the products of the sample
    with the sums.

    Parameters
    ----------
    rows : Rows
    labels : (n,) array, in and out
    sums : (d, k) array, in and out
    norms : (k,) array, in and out
        Their squared lengths.
    products : (k,) array
        Working memory.
    first, last : int
        The samples to visit.
    """
    moved = 0
    for i in range(first, last):
        weight, a = rows.weights[i], labels[i]
        own = weight * weight * rows.lengths[i]
        if own == 0.0:
            continue
        multiply(rows, i, sums, products)
        rest = norms[a] - 2.0 * weight * products[a] + own
        before = math.sqrt(norms[a])
        lost = before - math.sqrt(max(rest, 0.0))
        best, most = a, lost + WORTHWHILE * (before + weight)
        for b in range(sums.shape[1]):
            if b == a:
                continue
            length = math.sqrt(norms[b])
            gain = math.sqrt(max(norms[b] + 2.0 * weight * products[b] + own, 0.0)) - length
            if gain > most + WORTHWHILE * length:
                best, most = b, gain
        if best != a:
            moved += 1
            labels[i] = best
            add(rows, i, sums, a, -weight)
            add(rows, i, sums, best, weight)
            norms[a] = max(rest, 0.0)
            norms[best] = max(norms[best] + 2.0 * weight * products[best] + own, 0.0)
    return moved
