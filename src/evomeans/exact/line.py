"""One-dimensional k-means, solved to proven optimality by a dynamic program.

``D_q[j] = min over i of D_{q-1}[i] + cost(i, j)``, with ``cost(i, j)`` the sum of squares of the
sorted points i..j-1 about their mean. The cost has the Monge property, so that one layer takes
O(n log n) [1]_, and the whole program O(k n log n).

Costs come from prefix sums, which cancel where the data have outliers or distant clumps. So the
sums carry some 30 digits, about the mean of each piece of `forced_starts`.

What is guaranteed
------------------
The inertia of the segments exceeds the optimum by no more than `program_error`. Let u = 2**-53, W
the sum of all weights, and Y the largest |y| of `prefix_sums`. The sums of w, |w y| and w y² are at
most W, W Y and W Y². One addition to a double-double number that stays below P is off by at most
16 u² P, and rounding to the grid and the difference of two prefixes by 64 u² P together, so
the sums over a segment are off by (16 n + 64) u² P. The mean c of a segment is at most Y in
magnitude, so sum w y² - 2 c sum w y + c² sum w is off by 4 (16 n + 64) u² W Y². The operations
of `segment_cost` itself add 4 u of the cost and some hundred u² W Y². Together a cost, and its
addition to D, are off by at most

    e = 5 u U + (n + 8) 2**-99 W Y²,    for costs and D up to the inertia U.

A row is only searched between the minimisers of two others that cost at most U as well. By the
Monge property, a column beyond the minimiser found for another row is better by no more than that
row lost itself: 2 e for each halving of the stride. So a layer loses at most (2 log2(n) + 4) e, and
the program k times that.

References
----------
.. [1] A. Grønlund, K. G. Larsen, A. Mathiasen, J. S. Nielsen, S. Schneider, M. Song: "Fast exact
   k-means, k-medians and Bregman divergence clustering in 1D", arXiv:1701.07204, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.typing import FloatArray, Integers, Labels

LIGHTEST_EXPONENT = -70  # of two: lighter points, relative to the heaviest one, count as much
PROVEN = 1e-6  # labels are proven if the inertia exceeds the optimum by no more than this share
COARSE = 1024  # a coarse problem has about 4 · max(COARSE, k) points
SLACK = 1e-9  # relative; far above the rounding of an inertia
LARGEST_MAGNITUDE = 2.0**400  # of magnitudes: squares do not overflow, and few underflow
LEAST_EXACT_INERTIA = 2.0**-900  # an inertia from here on keeps its digits whatever underflows


@dataclass(frozen=True)
class LineClustering:
    """An optimal clustering of points on a line."""

    centers: FloatArray  # (k,), ascending
    labels: Labels  # index of the nearest centre of each point, the lower one on a tie
    inertia: float  # sum of w (x - centre)², by the direct formula
    cluster_weights: FloatArray
    is_proven: bool  # whether the labels are proven to be optimal, up to the share `PROVEN`
    segments: Integers  # the optimal segment of each point of positive weight, mostly its label
    doubt: float
    """By how much the inertia of the segments may exceed the optimum, besides the rounding of that
    inertia, in units without overflow. Infinite where nothing is guaranteed."""
    unit_exponent: int
    """Inertias of the points are those in these units times ``2**unit_exponent``."""


def cluster_line(
    x: NDArray[Any], n_clusters: int, sample_weight: NDArray[Any] | None = None
) -> LineClustering:
    """Minimise the weighted sum of squared distances to the nearest of ``n_clusters`` centres.

    The result is the global optimum; the module describes the algorithm and what is guaranteed in
    float64.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Finite points, in any order.
    n_clusters : int
        Number of centres, between 1 and n.
    sample_weight : ndarray of shape (n,), optional
        Non-negative and not all zero. Points of weight 0 get labels, but do not pull centres.

    Returns
    -------
    LineClustering
        With fewer distinct values than centres, the surplus centres repeat the largest value,
        and no label points at them.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.exact import cluster_line
    >>> result = cluster_line(np.array([1.0, 9.0, 2.0, 11.0]), 2)
    >>> result.centers.tolist(), result.labels.tolist(), result.inertia
    ([1.5, 10.0], [0, 1, 0, 1], 2.5)
    """
    return cluster_line_path(x, [n_clusters], sample_weight)[0]


def cluster_line_path(
    x: NDArray[Any], k_values: Sequence[int], sample_weight: NDArray[Any] | None = None
) -> list[LineClustering]:
    """Solve for several numbers of clusters, ascending; one dynamic program gives them all.

    Arguments and results are otherwise those of :func:`cluster_line`.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.exact import cluster_line_path
    >>> [one.inertia for one in cluster_line_path(np.array([1.0, 9.0, 2.0, 11.0]), [1, 2, 3])]
    [74.75, 2.5, 0.5]
    """
    x = np.asarray(x, np.float64)
    w = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    scaled_x, x_exponent = scale(x, LARGEST_MAGNITUDE)
    scaled_w, w_exponent = scale(w, 1.0)
    # Underflow may have cost digits.
    is_exact = np.array_equal(np.ldexp(scaled_x, x_exponent), x)
    is_exact = is_exact and np.array_equal(np.ldexp(scaled_w, w_exponent), w)
    values, weights = distinct(scaled_x, scaled_w)

    def clustering(found: Segments, k: int) -> LineClustering:
        centers, _, least = segment_means(values, weights, found.starts)
        last = np.append(values[found.starts[1:] - 1], values[-1])
        labels = nearest(scaled_x, centers)
        segments = np.searchsorted(np.ldexp(last, x_exponent), x)
        inertia = np.sum(scaled_w * (scaled_x - centers[labels]) ** 2)
        doubt = 0.0 if k == 1 else found.doubt if is_exact else math.inf
        # The nearest of the rounded centres may be that of another segment.
        is_segment = np.array_equal(labels[w > 0], segments[w > 0])
        excess = 0.0 if is_segment else max(0.0, float(inertia) - least)
        surplus = np.full(k - centers.size, centers[-1])
        unit_exponent = 2 * x_exponent + w_exponent
        return LineClustering(
            centers=np.ldexp(np.append(centers, surplus), x_exponent),
            labels=labels,
            inertia=float(np.ldexp(inertia, unit_exponent)),
            cluster_weights=np.bincount(labels, w, k).astype(np.float64),
            is_proven=doubt + excess <= PROVEN * least,
            segments=segments,
            doubt=doubt,
            unit_exponent=unit_exponent,
        )

    found = solved(values, weights, k_values)
    return [clustering(one, k) for one, k in zip(found, k_values, strict=True)]


def solved(values: FloatArray, weights: FloatArray, k_values: Sequence[int]) -> list[Segments]:
    """Return optimal segments of ascending points for several numbers of clusters, ascending."""
    # Sums of weights carry some 30 digits; 21 of them below the largest weight are plenty.
    clamped = np.maximum(weights, math.ldexp(float(weights.max()), LIGHTEST_EXPONENT))
    # Labels that are optimal for the raised weights lose at most what these add, anywhere.
    raised = 2 * float(np.sum(clamped - weights)) * float(values[-1] - values[0]) ** 2
    ks = [k for k in k_values if k < values.size]
    best = best_starts(values, clamped, ks) if ks else []
    found = [Segments(starts, doubt + raised) for starts, doubt in best]
    return found + [Segments(np.arange(values.size), 0.0)] * (len(k_values) - len(ks))


def scale(values: FloatArray, largest: float) -> tuple[FloatArray, int]:
    """Multiply by a power of two: magnitudes up to half of a power of two, ``largest``.

    The second value is the exponent of the power that leads back.
    """
    exponent = math.frexp(float(np.abs(values).max()))[1] + 2 - math.frexp(largest)[1]
    return np.ldexp(values, -exponent), exponent


def distinct(x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sorted distinct values of positive weight, and the sums of their weights."""
    x, w = x[w > 0], w[w > 0]
    # Sorted by weight as well, the sums do not depend on the order of the input.
    order = np.argsort(x) if np.ptp(w) == 0.0 else np.lexsort((w, x))
    x, w = x[order], w[order]
    starts = np.flatnonzero(np.append(True, x[1:] > x[:-1]))
    return x[starts], np.add.reduceat(w, starts)


def nearest(x: FloatArray, centers: FloatArray) -> Labels:
    """Index of the nearest of the ascending centres, the lower one on a tie."""
    left = (np.searchsorted(centers, x) - 1).clip(0, max(0, centers.size - 2))
    right = np.minimum(left + 1, centers.size - 1)
    return np.where(x - centers[left] <= centers[right] - x, left, right).astype(np.int32)


# ---- the program ---------------------------------------------------------------------------------


Packed = tuple[int, NDArray[np.uint8]]


class Segments(NamedTuple):
    """Where segments start, and how much more they may cost, see `LineClustering.doubt`."""

    starts: Integers
    doubt: float


def best_starts(x: FloatArray, w: FloatArray, ks: Sequence[int]) -> list[Segments]:
    """Return the indices at which the optimal segments start, for several k from one program.

    Layer q of the program is the same for every k. What prunes it is the bound for the smallest k:
    no other optimum is higher. Points x are ascending and distinct, of magnitude at most
    `LARGEST_MAGNITUDE`; weights are positive and at most 1; ks are ascending and below n.
    """
    if ks[0] == 1:
        others = best_starts(x, w, ks[1:]) if len(ks) > 1 else []
        return [Segments(np.zeros(1, np.int64), 0.0), *others]
    starts = good_starts(x, w, ks[0])
    inertia = segment_means(x, w, starts)[2]
    if inertia < LEAST_EXACT_INERTIA:
        others = [one for k in ks[1:] for one in best_starts(x, w, [k])]
        return [Segments(starts, math.inf), *others]
    first = forced_starts(x, w, starts, inertia)
    sums, reach = segment_sums(x, w, first)
    n, k = first.size, ks[-1]
    bound = inertia * (1.0 + SLACK) + program_error(inertia, reach, n, k)
    layers = run_layers(sums, first, ks, bound)
    # Up to the bound, costs are the same for all k, and so are their errors.
    highest = inertia if len(ks) == 1 else bound
    return [Segments(walk_back(layers[:k], n), program_error(highest, reach, n, k)) for k in ks]


def program_error(inertia: float, reach: float, n: int, k: int) -> float:
    """Return by how much the segments of the program may exceed the optimum, see above.

    ``reach`` is W Y². What is returned is twice as much, for terms of second order.
    """
    cost = 5 * 2.0**-53 * inertia + (n + 8) * 2.0**-99 * reach
    return 2 * k * (2 * math.log2(n) + 4) * cost


def run_layers(
    sums: FloatArray, first: Labels, ks: Sequence[int], bound: float
) -> list[tuple[int, Packed]]:
    """Compute the layers D_1, D_2, ... up to the largest k; return their minimisers."""
    n, last, layers = first.size, 0, []
    previous, current = np.zeros(n + 1), np.empty(n + 1)
    argmin = np.empty(n + 1, np.int32)
    for q in range(1, ks[-1] + 1):
        # Before the smallest k, no row is needed that leaves too few points for the others; of the
        # last layer, only the last row.
        low, high = (q, n - max(0, ks[0] - q)) if q < ks[-1] else (n, n)
        last = row_minima(sums, first, previous, current, argmin, low, high, q - 1, last, bound)
        layers.append((low, pack(argmin[: last - low + 1])))
        previous, current = current, previous
    return layers


def walk_back(layers: Sequence[tuple[int, Packed]], n: int) -> Integers:
    """Return the starts of the segments that layers of minimisers lead to."""
    starts = np.empty(len(layers), np.int64)
    end = n
    for q in range(len(layers) - 1, -1, -1):
        low, packed = layers[q]
        end = starts[q] = unpack(packed, end - low)
    return starts


def pack(argmin: Labels) -> Packed:
    """Store a non-decreasing sequence in two bits per entry instead of 32: bit a[r] + r is set."""
    base = int(argmin[0])
    bits = np.zeros(int(argmin[-1]) - base + argmin.size, np.bool_)
    bits[argmin - base + np.arange(argmin.size)] = True
    return base, np.packbits(bits)


def unpack(packed: Packed, row: int) -> int:
    """Read entry ``row`` of a packed sequence."""
    base, bits = packed
    return base + int(np.flatnonzero(np.unpackbits(bits))[row]) - row


def good_starts(x: FloatArray, w: FloatArray, k: int) -> Integers:
    """Return a good clustering; its inertia is the upper bound U that prunes the program.

    Cuts at the k - 1 costliest gaps; for many points, the optimum over a coarse choice of cuts.
    """
    n = x.size
    size = 2 * max(COARSE, k)
    coarse = n > 8 * size
    n_cuts = size if coarse else k - 1
    widest = np.argpartition(gap_costs(x, w), n - 1 - n_cuts)[n - 1 - n_cuts :] + 1
    starts: Integers = np.sort(np.append(widest, 0))
    if not coarse:
        return starts
    starts = np.union1d(starts, np.linspace(0, n, size, endpoint=False).astype(np.int64))
    means, weights, _ = segment_means(x, w, starts)
    return starts[best_starts(means, weights, [k])[0].starts]


def gap_costs(x: FloatArray, w: FloatArray) -> FloatArray:
    """Sum of squares of each pair of neighbours: any cluster that holds both costs as much."""
    return np.diff(x) ** 2 * (w[:-1] / (w[:-1] + w[1:]) * w[1:])


def forced_starts(x: FloatArray, w: FloatArray, starts: Integers, inertia: float) -> Labels:
    """For each point, the start of its piece: cut where a pair costs more than a whole clustering.

    No optimal segment contains such a pair. The given clustering cuts all of them as well.
    """
    cuts = starts[1:]
    cuts = cuts[gap_costs(x, w)[cuts - 1] > inertia * (1.0 + SLACK)]
    pieces = np.append(0, cuts).astype(np.int32)
    return np.repeat(pieces, np.diff(pieces, append=x.size))


def segment_means(
    x: FloatArray, w: FloatArray, starts: Integers
) -> tuple[FloatArray, FloatArray, float]:
    """Means and weights of the segments and the inertia, all by the direct formulas."""
    lengths = np.diff(starts, append=x.size)
    weights = np.add.reduceat(w, starts)
    offset = x - np.repeat(x[starts], lengths)
    shift = np.add.reduceat(w * offset, starts) / weights
    offset -= np.repeat(shift, lengths)
    last = np.append(x[starts[1:] - 1], x[-1])
    means = np.clip(x[starts] + shift, x[starts], last)
    return means, weights, float(np.sum(w * offset**2))


def segment_sums(x: FloatArray, w: FloatArray, first: Labels) -> tuple[FloatArray, float]:
    """Prefix sums about the mean of each piece, their leading parts rounded to a common grid.

    The second value is the sum of all weights times the square of the largest distance to a mean.
    """
    pieces = np.unique(first).astype(np.int64)
    centre = np.repeat(segment_means(x, w, pieces)[0], np.diff(pieces, append=x.size))
    sums = np.empty((x.size + 1, 6))
    prefix_sums(x, w, centre, sums)
    for leading, trailing in zip(sums.T[:3], sums.T[3:], strict=True):
        # Adding 6·2**e to numbers below 2**e rounds all of them to multiples of 2**(e - 50).
        anchor = math.ldexp(6.0, math.frexp(float(np.abs(leading).max()))[1])
        grid = (leading + anchor) - anchor
        trailing += leading - grid
        leading[:] = grid
    reach = float(np.sum(w)) * float(np.abs(x - centre).max()) ** 2
    return sums, reach


# ---- kernels -------------------------------------------------------------------------------------


def _fma(_context: Any, _a: Any, _b: Any, _c: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    double = types.float64
    return double(double, double, double), generate


# a·b + c with one rounding. fma(a, b, -(a * b)) is the rounding error of a product, exactly.
fma = cast("Callable[[float, float, float], float]", intrinsic(_fma))


@jit
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return ``a + b`` and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def add(high: float, low: float, term: float, term_low: float) -> tuple[float, float]:
    """Add a term to the double-double number ``high + low``."""
    total, error = two_sum(high, term)
    error += low + term_low
    high = total + error
    return high, error - (high - total)


@jit
def prefix_sums(x: FloatArray, w: FloatArray, centre: FloatArray, sums: FloatArray) -> None:
    """Sum w, w·y and w·y² with y = x - centre over the first j points, to some 30 digits.

    Shapes: x, w, centre (n,); sums (n + 1, 6), columns 0-2 the leading and 3-5 the trailing parts.
    """
    w_high = w_low = wy_high = wy_low = wyy_high = wyy_low = 0.0
    sums[0] = 0.0
    for t in range(x.size):
        y, y_low = two_sum(x[t], -centre[t])
        wy = w[t] * y
        wy_error = fma(w[t], y, -wy) + w[t] * y_low
        wyy = wy * y
        wyy_error = fma(wy, y, -wyy) + (wy * y_low + wy_error * y)
        w_high, w_low = add(w_high, w_low, w[t], 0.0)
        wy_high, wy_low = add(wy_high, wy_low, wy, wy_error)
        wyy_high, wyy_low = add(wyy_high, wyy_low, wyy, wyy_error)
        row = sums[t + 1]
        row[0], row[1], row[2] = w_high, wy_high, wyy_high
        row[3], row[4], row[5] = w_low, wy_low, wyy_low


@jit
def segment_cost(sums: FloatArray, i: int, j: int) -> float:
    """Σ w·y² - (Σ w·y)² / Σ w over the points i..j-1.

    Differences of the leading parts are exact, because these lie on a common grid. With the
    rounded mean c and r = Σ w·y - c·Σ w, the quotient is c·Σ w·y + c·r + r² / Σ w; the last term
    is below the precision of the sums and left out.
    """
    w = sums[j, 0] - sums[i, 0]
    wy = sums[j, 1] - sums[i, 1]
    wyy = sums[j, 2] - sums[i, 2]
    w_low = sums[j, 3] - sums[i, 3]
    wy_low = sums[j, 4] - sums[i, 4]
    wyy_low = sums[j, 5] - sums[i, 5]
    c = (wy + wy_low) / (w + w_low)
    product = c * wy
    product_error = fma(c, wy, -product)
    r = fma(-c, w, wy) + (wy_low - c * w_low)
    return (wyy - product) + (wyy_low - product_error - c * (wy_low + r))


@jit
def row_minima(
    sums: FloatArray,
    first: Labels,
    previous: FloatArray,
    current: FloatArray,
    argmin: Labels,
    low_row: int,
    high_row: int,
    low_column: int,
    high_column: int,
    bound: float,
) -> int:
    """current[j] = min over i of previous[i] + cost of points i..j-1, for low_row <= j <= high_row.

    The leftmost minimiser does not decrease with j: the rows are visited at halving strides, each
    between the minimisers of its neighbours, in O(rows · log rows). Columns run from low_column
    to high_column and from first[j - 1], where the segment that ends at j may start at the
    earliest. The minima increase with j; rows from the first one above ``bound`` are dropped.

    Shapes: sums (n + 1, 6); first (n,); previous, current (n + 1,); argmin (rows,) by j - low_row.
    Returns the last row kept.
    """
    n_rows = high_row - low_row + 1
    end = n_rows
    stride = 1
    while 2 * stride <= n_rows:
        stride *= 2
    while stride > 0:
        row = stride - 1
        while row < end:
            j = low_row + row
            start = max(first[j - 1], argmin[row - stride] if row >= stride else low_column)
            stop = min(j - 1, high_column)
            # The minimiser of a row above the bound may be off by more than matters here.
            if row + stride < end:
                stop = min(stop, argmin[row + stride])
            best, best_cost = start, np.inf
            for i in range(start, stop + 1):
                cost = previous[i] + segment_cost(sums, i, j)
                if cost < best_cost:
                    best, best_cost = i, cost
            argmin[row] = best
            current[j] = best_cost
            if best_cost > bound:
                end = row
            row += 2 * stride
        stride //= 2
    return low_row + end - 1
