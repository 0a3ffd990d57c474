"""The engine of spherical k-means, and its kernels for dense and sparse samples.

Centres and sums are stored feature by feature, (d, k), so that one value of a sample meets all
centres at once, and sparse samples touch no more than they have.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.engines.base import ModelEngine, is_hopeless, weighted_sum
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.kernels import calls, other_calls
from evomeans.engines.frame import Frame, is_sparse, means_of
from evomeans.engines.protocol import KMEANS, Order, Refinement
from evomeans.engines.sampling import Drawing
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
# Products of an assignment from which on the CPU engine leads the way: a little higher, but faster.
LARGE = 2**18
# They end where single precision sees no improvement.
NEARLY_IMPROVED = 1.0 - 1e-6


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
        self._plain: CpuEngine | None = None

    def _is_large(self, n_clusters: int) -> bool:
        """Whether the CPU engine seeds, moves and swaps, and descents begin where it ends."""
        n_products = self.n_samples * n_clusters * len(self.frame.shift)
        return not is_sparse(self.samples) and n_products >= LARGE

    @property
    def plain(self) -> CpuEngine:
        """The engine of plain k-means over the same directions, in single precision.

        Squared distances are 2 (1 − cos), so closest centres and k-means++ are the same.
        """
        if self._plain is None:
            chances = None if (self.chances == 1.0).all() else self.chances
            rows = self.samples.astype(np.float32)
            self._plain = CpuEngine(rows, chances, n_jobs=self.n_jobs, frame=self.frame)
            self._plain.abandon(self.is_abandoned)
        return self._plain

    def workers(self, n_clusters: int, most: int) -> list[Self]:
        """Return engines over the same samples, one for each thread."""
        if self._is_large(n_clusters):
            # Made here, so that they share it.
            _ = self.plain
        return super().workers(n_clusters, most)

    def twin(self) -> Self:
        """Return an engine that shares the samples, and nothing that is written to."""
        twin = super().twin()
        twin._plain = None if self._plain is None else self._plain.twin(n_jobs=1)
        return twin

    def abandon(self, is_abandoned: bool) -> None:
        """End what another thread is doing soon."""
        super().abandon(is_abandoned)
        if self._plain is not None:
            self._plain.abandon(is_abandoned)

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Draw centres by k-means++."""
        is_large = self._is_large(len(quantiles))
        return self.plain.seed(quantiles) if is_large else super().seed(quantiles)

    def _refine(self, start: Order) -> Refinement:
        """Refine a start; of large data, swaps and moves are those of plain k-means."""
        is_descent = start.local_search == KMEANS and start.removed < 0
        if is_descent or not self._is_large(len(start.centers)):
            return super()._refine(start)
        (led,) = self.plain.refine([replace(start, parent=None)])
        if not led.is_complete:
            return Refinement.stopped(start, led.centers)
        found = super()._refine(Order(led.centers))
        return replace(found, n_iter=found.n_iter + led.n_iter)

    @property
    def most_sampled(self) -> int:  # type: ignore[override]
        """How many samples an engine over some of them may have."""
        return 0 if is_sparse(self.samples) else sys.maxsize

    def subsample(self, drawing: Drawing) -> CpuEngine:
        """Make an engine of plain k-means over some of the directions."""
        return self.plain.subsample(drawing)

    @property
    def n_directions(self) -> tuple[int, ...]:  # type: ignore[override]
        """Numbers of leading directions that are worth a projection."""
        return () if is_sparse(self.samples) else self.plain.n_directions

    def projected(self, n_directions: int) -> CpuEngine:
        """Make an engine of plain k-means over projected directions."""
        return self.plain.projected(n_directions)

    def means(self, labels: Labels, others: FloatArray) -> FloatArray:
        """Means of clusters, which are not of length one."""
        return self.plain.means(labels, others)

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
        units = unit_columns(centers)
        return np.maximum(1.0 - np.asarray(self.samples @ units), 0.0)

    def _closest(
        self, units: FloatArray, labels: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], FloatArray, int]:
        if labels is None:
            labels = np.full(self.n_samples, -1, np.int64)
        k = units.shape[1]
        costs, products, changed = np.empty(self.n_samples), np.empty(k), 0
        if not is_sparse(self.samples) and self.takes_long(k):
            return labels, costs, self._find_closest(units, labels, costs)
        for block in self.blocks(k):
            bounds = block.start, block.stop
            changed += int(find_closest(self.data, units, labels, costs, products, *bounds))
        return labels, costs, changed

    def _find_closest(self, units: FloatArray, labels: NDArray[np.int64], costs: FloatArray) -> int:
        """Do what the kernel does by matrix products, which are faster if they are large."""
        changed = 0
        with one_blas_thread:
            for block in self.blocks(units.shape[1]):
                cosines = self.samples[block] @ units
                closest = cosines.argmax(axis=1)
                cost = 1.0 - cosines[np.arange(len(closest)), closest]
                costs[block] = np.where(cost > ROUNDING, cost, 0.0)
                changed += int(np.count_nonzero(labels[block] != closest))
                labels[block] = closest
        return changed

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

    def _approach(self, units: FloatArray, goal: float) -> FloatArray:
        """Return where assignments and sums come to, in single precision, with bounds.

        The objective is Σw less the products of centres and sums.
        """
        plain, best = self.plain, np.inf
        workspace, found = plain._workspace(len(units)), plain._new_solution(len(units))
        scales, limb = workspace.samples.scales, workspace.samples.limb
        for nth in range(MOST_ROUNDS):
            self.reach(units)
            workspace.step(found.state, units, fresh=nth == 0)
            means, weights = means_of(workspace.sums, workspace.positions, scales, limb)
            sums = means * weights[:, None]
            objective = self.total_weight - float((units * sums).sum())
            if objective >= best * NEARLY_IMPROVED or is_hopeless(best, objective, goal):
                break
            best = objective
            units = normalized(sums, np.linalg.norm(sums, axis=1, keepdims=True), units)
        plain.memory.give_back(found)
        return units

    def descend(
        self, centers: FloatArray, single_moves: bool, goal: float = math.inf
    ) -> Refinement:
        """Alternate assignments, sums and single moves until nothing changes."""
        if self._is_large(len(centers)):
            centers = self._approach(unit_rows(centers), goal)
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


def kernel_calls_for(X: Any, n_clusters: int = 1) -> list[Call]:
    """Return what a search calls, see :func:`~evomeans.compiled.ready.ready`."""
    rows = rows_of(unit_rows(X[:1]), np.ones(1))
    labels, one, grid = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 1))
    found = [
        Call(find_closest, (rows, grid, labels, one, one, 0, 1), 0.5),
        Call(add_up, (rows, labels, grid, one), 0.4),
        Call(move_singles, (rows, labels, grid, one, one, 0, 1), 0.7),
    ]
    if is_sparse(X) or n_clusters * X.size < LARGE:
        return found
    single = np.broadcast_to(np.float32(0.0), X.shape)
    abilities = SphericalEngine.abilities
    plain = calls(single, n_clusters, abilities, breeding=False, momentum=False)
    return [*found, *plain, *other_calls(single)]
