"""The engine of spherical k-means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.ready import Call
from evomeans.engines.frame import Frame, is_sparse
from evomeans.engines.modelling import Descent, ModelEngine, is_hopeless, weighted_sum
from evomeans.engines.nearest import one_blas_thread
from evomeans.engines.protocol import FloatArray, Labels
from evomeans.engines.spherical.kernels import Rows, add_up, find_closest, move_singles

MOST_ROUNDS = 10_000
BETTER = 1.0 - 1e-12


class SphericalEngine(ModelEngine):
    """Samples as directions; centres are directions too, those of the sums of their samples.

    The objective is Σ w(1 − cos) over the samples and the centres of their clusters.

    Parameters
    ----------
    X : (n, d) array or CSR matrix of float32 or float64
        Samples, of any length. Sparse ones are never made dense.
    sample_weight : (n,) array, optional
    n_jobs : int
        Refinements at a time.
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
                # Rounding must not make it negative.
                costs[block] = np.maximum(0.0, 1.0 - cosines[np.arange(len(closest)), closest])
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

    def descend(self, centers: FloatArray, single_moves: bool, goal: float = math.inf) -> Descent:
        """Alternate assignments, sums and single moves until nothing changes."""
        units = unit_columns(centers)
        k = units.shape[1]
        sums, norms, products = np.empty_like(units), np.empty(k), np.empty(k)
        labels = np.full(self.n_samples, -1, np.int64)
        best, kept = np.inf, units
        n_iter = 0
        for _ in range(MOST_ROUNDS):
            self.reach(units.T)
            labels, costs, changed = self._closest(units, labels)
            n_iter += 1
            objective = weighted_sum(self.weights, costs)
            if objective >= best * BETTER and not changed:
                break
            is_lower = objective < best * BETTER
            if is_lower and is_hopeless(best, objective, goal):
                break
            best, kept = min(objective, best), units
            add_up(self.data, labels, sums, norms)
            # Only moves fill clusters that are empty.
            if (single_moves or not norms.all()) and (not is_lower or not changed):
                if not self._move(labels, sums, norms, products):
                    break
                # What is added up move by move drifts by rounding.
                add_up(self.data, labels, sums, norms)
            elif not is_lower:
                break
            units = normalized(sums, norms, units)
        labels, costs, _ = self._closest(kept, labels)
        totals = np.bincount(labels, self.weights, k).astype(np.float64)
        found = np.ascontiguousarray(kept.T)
        objective = weighted_sum(self.weights, costs)
        return Descent(found, labels.astype(np.int32), objective, totals, n_iter)


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


def normalized(sums: FloatArray, norms: FloatArray, units: FloatArray) -> FloatArray:
    """Return the directions of sums; where there is none, centres stay where they are."""
    lengths = np.sqrt(norms)
    return np.where(lengths > 0.0, sums / np.where(lengths > 0.0, lengths, 1.0), units)


def kernel_calls_for(X: Any) -> list[Call]:
    """Return what a search calls, see :func:`~evomeans.compiled.ready.ready`."""
    rows = rows_of(unit_rows(X[:1]), np.ones(1))
    labels, one, grid = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 1))
    return [
        Call(find_closest, (rows, grid, labels, one, one, 0, 1), 0.5),
        Call(add_up, (rows, labels, grid, one), 0.4),
        Call(move_singles, (rows, labels, grid, one, one, 0, 1), 0.7),
    ]
