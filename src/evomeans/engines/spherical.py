"""The engines of spherical k-means: the CPU engine for dense samples, and one for sparse or few.

The kernels of the latter store centres and sums feature by feature, (d, k), so that one value of a
sample meets all centres at once, and sparse samples touch no more than they have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.engines import nearest
from evomeans.engines.base import ModelEngine, is_hopeless, weighted_sum
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.kernels import calls
from evomeans.engines.cpu.layout import Solution
from evomeans.engines.frame import Frame, is_sparse
from evomeans.engines.protocol import Ability, Engine, Refinement, Way
from evomeans.kernels.blas import one_blas_thread
from evomeans.typing import FloatArray, Integers, Labels

# A gain below this share of the lengths involved is rounding.
LEAST_GAIN = 1e-12
# Cosines this close to one are one but for rounding.
ROUNDING = 2.0**-50


@bundle
class Rows(NamedTuple):
    """Samples of length one, or zero.

    * ``dense`` (n, d): without rows if the samples are sparse.
    * ``data``, ``indices`` and ``indptr``: of sparse samples, as in CSR.
    * ``lengths`` (n,): one, or zero for samples without a direction.
    * ``weights`` (n,)
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

    The ``units`` (d, k) are centres of length one, and the ``costs`` (n,) become one less the
    cosine. Returns how many labels changed.
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
    with the ``sums`` (d, k); ``norms`` (k,) are their squared lengths.
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
        best, most = a, lost + LEAST_GAIN * (before + weight)
        for b in range(sums.shape[1]):
            if b == a:
                continue
            length = math.sqrt(norms[b])
            gain = math.sqrt(max(norms[b] + 2.0 * weight * products[b] + own, 0.0)) - length
            if gain > most + LEAST_GAIN * length:
                best, most = b, gain
        if best != a:
            moved += 1
            labels[i] = best
            add(rows, i, sums, a, -weight)
            add(rows, i, sums, best, weight)
            norms[a] = max(rest, 0.0)
            norms[best] = max(norms[best] + 2.0 * weight * products[best] + own, 0.0)
    return moved


MOST_ROUNDS = 10_000
IMPROVED = 1.0 - 1e-12
# Products of an assignment of dense samples from which on the CPU engine takes over.
LARGE = 2**18
# The same from which on a limit of time may call for quick steps.
MAY_HURRY = 2**20


class CosineFrame(Frame):
    """Coordinates of directions: squared distances of length-one vectors are 2 (1 − cos)."""

    def inertia_in_data_units(self, inertia: float) -> float:
        """Convert a sum of squared distances to one of cosine distances."""
        return 0.5 * super().inertia_in_data_units(inertia)

    def inertia_in_frame(self, inertia: float) -> float:
        """Convert a sum of cosine distances."""
        return 2.0 * super().inertia_in_frame(inertia)


class DirectionsEngine(CpuEngine):
    """The CPU engine for dense samples as directions: its centres are of length one.

    The objective is Σ w(1 − cos). With centres of length one, the closest has the largest cosine,
    so all bounds hold. Swaps are those of plain k-means.
    """

    on_sphere = True

    def __init__(
        self,
        X: NDArray[Any],
        sample_weight: FloatArray | None,
        *,
        n_jobs: int = 1,
    ) -> None:
        units = unit_rows(X)
        weights, self._constant = sample_weight, 0.0
        self._undirected = np.flatnonzero(~units.any(axis=1))
        if len(self._undirected):
            # They have no direction to be a centre with, and cost the same anywhere.
            weights = np.ones(len(units)) if sample_weight is None else sample_weight.copy()
            self._constant = float(weights[self._undirected].sum())
            weights[self._undirected] = 0.0
        frame = CosineFrame(np.zeros(units.shape[1]), 0)
        super().__init__(units, weights, n_jobs=n_jobs, frame=frame)
        self.abilities -= {Ability.MOMENTUM}

    def _remembered(
        self, found: Solution, inertia: float, n_iter: int, way: Way | None = None
    ) -> Refinement:
        if inertia <= ROUNDING * self.total_weight:
            # A search that compares remainders of rounding would never agree.
            squares = self._workspace(len(found.centers)).scratch.nearby
            own = 1.0 if self.weights is None else self.samples.weights
            counted = squares > 2.0 * ROUNDING * own
            inertia = float(squares[counted].sum())
        refined = super()._remembered(found, inertia, n_iter, way)
        return replace(refined, inertia=refined.inertia + self._constant)

    def labels(self, centers: FloatArray) -> NDArray[np.int32]:
        """Labels of the largest cosines; zero for samples without a direction."""
        found = super().labels(unit_rows(centers))
        found[self._undirected] = 0
        return found

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the largest cosines, and the objective."""
        given = self._source, unit_rows(centers), self.frame, self.n_jobs
        labels, squares = nearest.labels_and_squares(*given)
        labels[self._undirected] = 0
        costs = np.where(squares > 2.0 * ROUNDING, 0.5 * squares, 0.0)
        total = costs.sum() if self.weights is None else self.weights @ costs
        return labels, float(total) + self._constant

    def distances(self, centers: FloatArray) -> FloatArray:
        """Cosine distances, one less the cosine."""
        return cosine_distances(self._source, centers)


class SphericalEngine(ModelEngine):
    """Samples as directions; centres are directions too, those of the sums of their samples.

    The objective is Σ w(1 − cos). Sparse samples are never made dense.
    """

    def __init__(self, X: Any, sample_weight: FloatArray | None, *, n_jobs: int = 1) -> None:
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        super().__init__(weights, Frame(np.zeros(X.shape[1]), 0), n_jobs)
        self.samples = unit_rows(X)
        self.data = rows_of(self.samples, weights)
        # A sample of zeros has no direction to be a centre with, and costs the same anywhere.
        directed = weights * self.data.lengths
        self.chances = directed if directed.any() else weights

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples, dense."""
        found = self.samples[chosen]
        return np.asarray(found.toarray() if is_sparse(found) else found)

    def nearest(self, centers: FloatArray) -> FloatArray:
        """One less the largest cosine."""
        return self._closest(unit_columns(centers))[1]

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label the samples by the largest cosine, and return the objective."""
        labels, costs, _ = self._closest(unit_columns(centers))
        return labels.astype(np.int32), weighted_sum(self.weights, costs)

    def distances(self, centers: FloatArray) -> FloatArray:
        """Cosine distances, one less the cosine."""
        return cosine_distances(self.samples, centers)

    def _closest(
        self, units: FloatArray, labels: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], FloatArray, int]:
        if labels is None:
            labels = np.full(self.n_samples, -1, np.int64)
        k = units.shape[1]
        costs, products, changed = np.empty(self.n_samples), np.empty(k), 0
        for block in self.blocks(k):
            bounds = block.start, block.stop
            changed += int(find_closest(self.data, units, labels, costs, products, *bounds))
        return labels, costs, changed

    def nearest_each(self, chosen: NDArray[np.intp]) -> Sequence[FloatArray]:
        """One less the cosines with some samples: all of them in one look at many data."""
        if not self.takes_long(1):
            return super().nearest_each(chosen)
        units = unit_columns(self.rows(chosen))
        costs = np.empty((len(chosen), self.n_samples))
        with one_blas_thread:
            for block in self.blocks(len(chosen)):
                costs[:, block] = np.maximum(0.0, 1.0 - np.asarray(self.samples[block] @ units)).T
        return list(costs)

    def _move(
        self, labels: NDArray[np.int64], sums: FloatArray, norms: FloatArray, products: FloatArray
    ) -> int:
        """Visit all samples, and move those that gain by it; return how many did."""
        moved = 0
        for block in self.blocks(len(norms)):
            bounds = block.start, block.stop
            moved += int(move_singles(self.data, labels, sums, norms, products, *bounds))
        return moved

    def descend(
        self, centers: FloatArray, single_moves: bool, goal: float = math.inf
    ) -> Refinement:
        """Alternate assignments, sums and single moves until nothing changes."""
        units = unit_columns(centers)
        k = units.shape[1]
        sums, norms, products = np.empty_like(units), np.empty(k), np.empty(k)
        labels = np.full(self.n_samples, -1, np.int64)
        best, n_iter, moved = np.inf, 0, 0
        for _ in range(MOST_ROUNDS):
            self.reach(units.T)
            labels, costs, changed = self._closest(units, labels)
            n_iter += 1
            objective = weighted_sum(self.weights, costs)
            if objective >= best * IMPROVED and not changed:
                break
            is_lower = objective < best * IMPROVED
            # What moves have gained is rounding, or what is gained is too little.
            if is_hopeless(best, objective, goal) if is_lower else moved:
                break
            moved = 0
            best, kept = min(objective, best), (units, labels.astype(np.int32), objective)
            add_up(self.data, labels, sums, norms)
            # Only moves fill clusters that are empty.
            if (single_moves or not norms.all()) and (not is_lower or not changed):
                moved = self._move(labels, sums, norms, products)
                if not moved:
                    break
                # What is added up move by move drifts by rounding.
                add_up(self.data, labels, sums, norms)
            elif not is_lower:
                break
            units = normalized(sums, np.sqrt(norms), units)
        units, found, objective = kept
        totals = np.bincount(found, self.weights, k).astype(np.float64)
        centers = np.ascontiguousarray(units.T)
        return Refinement(centers, objective, totals, n_iter, labels=found)


def spherical_engine(
    X: Any, sample_weight: FloatArray | None, n_clusters: int, *, n_jobs: int = 1
) -> Engine:
    """Return the engine for these samples and so many clusters."""
    takes_over = is_large(X, sample_weight, n_clusters)
    return (DirectionsEngine if takes_over else SphericalEngine)(X, sample_weight, n_jobs=n_jobs)


def is_large(X: Any, sample_weight: FloatArray | None, n_clusters: int) -> bool:
    """Whether the CPU engine takes over: samples are dense, many, and some have a direction."""
    if is_sparse(X) or X.size * n_clusters < LARGE:
        return False
    return bool((X if sample_weight is None else X[sample_weight > 0.0]).any())


def cosine_distances(samples: Any, centers: FloatArray) -> FloatArray:
    """Return one less the cosines of unit samples and centres."""
    return np.maximum(1.0 - np.asarray(samples @ unit_columns(centers)), 0.0)


def unit_rows(X: Any) -> Any:
    """Return samples of length one in float64; those of zeros stay as they are."""
    if is_sparse(X):
        rows = X.astype(np.float64, copy=True)
        starts, ends = rows.indptr[:-1], rows.indptr[1:]
        sample = np.repeat(np.arange(X.shape[0]), ends - starts)
        largest = np.zeros(X.shape[0])
        np.maximum.at(largest, sample, np.abs(rows.data))
        rows.data /= np.where(largest > 0.0, largest, 1.0)[sample]
        lengths = np.sqrt(np.bincount(sample, rows.data**2, X.shape[0]))
        rows.data /= np.where(lengths > 0.0, lengths, 1.0)[sample]
        return rows
    # Divided by the largest value first, so that no square overflows.
    largest = np.abs(X).max(axis=1, keepdims=True).astype(np.float64)
    scaled = X.astype(np.float64) / np.where(largest > 0.0, largest, 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return np.ascontiguousarray(scaled / np.where(lengths > 0.0, lengths, 1.0))


def rows_of(samples: Any, weights: FloatArray) -> Rows:
    """Return unit samples as the kernels take them."""
    if is_sparse(samples):
        lengths = np.asarray(np.diff(samples.indptr) > 0, dtype=np.float64)
        none = np.empty((0, samples.shape[1]))
        return Rows(none, samples.data, samples.indices, samples.indptr, lengths, weights)
    lengths = np.asarray(samples.any(axis=1), dtype=np.float64)
    index = np.zeros(1, np.int32)
    return Rows(samples, np.empty(0), index, index, lengths, weights)


def unit_columns(centers: FloatArray) -> FloatArray:
    """Return centres of length one, feature by feature; those of zeros stay as they are."""
    return np.ascontiguousarray(unit_rows(centers).T)


def normalized(sums: FloatArray, lengths: FloatArray, units: FloatArray) -> FloatArray:
    """Return the directions of sums; where there is none, centres stay where they are."""
    return np.where(lengths > 0.0, sums / np.where(lengths > 0.0, lengths, 1.0), units)


def kernel_calls_for(
    X: Any, sample_weight: FloatArray | None = None, n_clusters: int = 1
) -> list[Call]:
    """Return what a search calls, see :func:`~evomeans.compiled.ready.ready`."""
    if is_large(X, sample_weight, n_clusters):
        units = np.broadcast_to(0.0, X.shape)
        hurries = units.size * n_clusters >= MAY_HURRY
        abilities = frozenset(Ability)
        return calls(units, n_clusters, abilities, breeding=True, momentum=False, hurries=hurries)
    rows = rows_of(unit_rows(X[:1]), np.ones(1))
    labels, one, grid = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 1))
    return [
        Call(find_closest, (rows, grid, labels, one, one, 0, 1), 0.5),
        Call(add_up, (rows, labels, grid, one), 0.4),
        Call(move_singles, (rows, labels, grid, one, one, 0, 1), 0.7),
    ]
