"""The CPU engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import State, count_tiles
from evomeans.engines.cpu.memory import Memory, Recollection
from evomeans.engines.cpu.reassign import PAIRS
from evomeans.engines.cpu.reductions import Attraction
from evomeans.engines.cpu.room import Room, Solution
from evomeans.engines.cpu.samples import dense_rows, encode_samples, frame_for, squared_norms
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Flags, FloatArray, Handle, Refinement, Start
from evomeans.engines.rules import (
    CERTAINLY_NO_ROUNDING,
    MAX_ITERATIONS,
    MAX_REPAIRS,
    repair_draw,
    sits_on_centers,
    split_mixture,
    sum_by_center,
)

# Below this much work per assignment a second thread brings little, or costs more than it brings.
# Most of the n·k·d products are avoided; what every sample takes in any case is like 64 of them.
WORTH_A_THREAD = 2_500_000
WORK_PER_SAMPLE = 64


class CpuEngine:
    """K-means in Numba, with bounds inherited from a parent.

    Parameters
    ----------
    X : (n, d) array or CSR matrix of float32 or float64
        Samples in data units. A shifted and scaled copy is kept. Sparse samples stay sparse.
    sample_weight : (n,) array of float64, optional
        None for equal weights.
    n_jobs : int
        Threads at most; results do not depend on it.
    frame : Frame, optional
        The frame to work in, by default the one around ``X``. Sparse samples take its scale only.
    searching : bool
        Whether there will be refinements: then neighbouring samples are put together first, which
        takes as long as a few assignments.
    memory_budget : int
        Bytes for what is kept of refined solutions: least recently used ones are forgotten, which
        costs time but changes nothing else. By default 2 GiB.
    """

    batch = 1
    is_plain = False

    def __init__(
        self,
        X: Any,
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int = 1,
        frame: Frame | None = None,
        searching: bool = True,
        memory_budget: int = 2**31,
    ) -> None:
        self.frame = frame_for(X, frame)
        self.samples = encode_samples(X, sample_weight, self.frame, in_order=searching)
        self.n_samples, self.n_features = X.shape
        self.dtype = X.dtype
        self.weights = sample_weight
        self.total_weight = self.n_samples if sample_weight is None else float(sample_weight.sum())
        self.n_jobs = n_jobs
        self.memory = Memory(memory_budget)
        self._room_in_use: Room | None = None
        self._attractions: dict[int, Attraction] = {}

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        return dense_rows(self.samples, self._draw(quantiles), self.n_features)

    def _draw(self, quantiles: FloatArray) -> NDArray[np.intp]:
        if self.weights is not None:
            cumulated = self._cumulated_weights
            drawn = np.searchsorted(cumulated, quantiles * cumulated[-1], side="right")
        else:
            drawn = (quantiles * self.n_samples).astype(np.intp)
        rows: NDArray[np.intp] = np.minimum(drawn, self._last_drawable)
        return rows

    @cached_property
    def _cumulated_weights(self) -> FloatArray:
        assert self.weights is not None
        return np.cumsum(self.weights)

    @cached_property
    def _last_drawable(self) -> int:
        return self.n_samples - 1 if self.weights is None else int(np.flatnonzero(self.weights)[-1])

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """K-means from every start, one after the other."""
        return [self._refine(start) for start in starts]

    def _refine(self, start: Start) -> Refinement:
        room = self._room(len(start.centers))
        known = self.memory.recall(start.parent, room.k)
        state = self.memory.new_state(self.n_samples, room.k)
        n_iter = self._begin(room, known, state, start)
        before = room.inertia
        if start.max_iter is None and room.swap(state, start.swaps, start.quantile):
            # On all samples, for swaps look around themselves only.
            swapped = replace(start, centers=room.swapped.centers, removed=-1)
            n_iter += self._descend(room, state, state, swapped)
            if room.inertia > before:
                # Rounding, with weights or distances that have no more digits in common.
                n_iter += self._begin(room, known, state, start)
        if self._sits_on_samples(room):
            self._snap(room, state)
        handle = self.memory.keep(Recollection(state, room.positions, room.sums))
        return Refinement(
            handle.centers,
            self.frame.inertia_in_data_units(room.inertia),
            room.centers.weights.copy(),
            n_iter,
            handle,
        )

    def _begin(self, room: Room, known: Recollection | None, state: State, start: Start) -> int:
        """Run K-means and single moves from a start, from where its parent stands if known."""
        if known is None:
            return self._descend(room, None, state, start)
        room.take_over(known)
        return self._descend(room, known.state, state, start)

    def _descend(self, room: Room, inherited: State | None, state: State, start: Start) -> int:
        """Run K-means and single moves to where the start wants them, and fill empty clusters.

        Parameters
        ----------
        inherited : State or None
            Of the solution at which the room stands; None if nothing is known.
        state : State, out
            May be ``inherited`` itself.

        Returns
        -------
        n_iter : int
        """
        target, removed, quantile = self._relocate(
            start.centers, start.removed, start.alpha, start.quantile
        )
        steps = MAX_ITERATIONS if start.max_iter is None else start.max_iter
        room.run(
            state if inherited is None else inherited,
            state,
            target,
            inherited is not None,
            removed,
            quantile,
            start.power,
            steps,
            start.single_moves,
        )
        n_iter = room.iterations
        repairs = 0
        while (
            (empty := room.empty_clusters())
            and not self._sits_on_samples(room)
            and repairs < MAX_REPAIRS * room.k
        ):
            # Clusters are refilled one at a time: each draw sees where the last one went.
            for j in empty:
                repairs += 1
                alpha, quantile = repair_draw(start.alpha, start.quantile, repairs)
                target, removed, quantile = self._relocate(room.positions, j, alpha, quantile)
                due = steps if j == empty[-1] else 0
                moves = start.single_moves and due > 0
                room.run(state, state, target, True, removed, quantile, start.power, due, moves)
                n_iter += room.iterations
        return n_iter

    def _sits_on_samples(self, room: Room) -> bool:
        if room.inertia > CERTAINLY_NO_ROUNDING * self.total_weight:
            return False
        squares, norms = room.scratch.nearby, squared_norms(self.samples)
        weights = self.samples.weights
        if len(weights):
            counted = np.flatnonzero(weights)
            squares, norms = squares[counted] / weights[counted], norms[counted]
        return sits_on_centers(squares, norms)

    def _snap(self, room: Room, state: State) -> None:
        """Put every centre onto one of its samples, where all of them are up to rounding."""
        target = room.positions
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        counted = np.flatnonzero(weights)
        labels, members = np.unique(self._labels(state)[counted], return_index=True)
        target[labels] = dense_rows(self.samples, counted[members], self.n_features)
        room.run(state, state, target, False, -1, 0.0, 1, steps=0)

    def _relocate(
        self, centers: FloatArray, removed: int, alpha: float, quantile: float
    ) -> tuple[FloatArray, int, float]:
        """Apply a relocation that needs no distances at once; leave the others to the kernel."""
        if removed < 0:
            return centers, -1, 0.0
        by_distance, quantile = split_mixture(alpha, quantile)
        if by_distance and len(centers) > 1:
            return centers, removed, quantile
        centers = centers.copy()
        centers[removed] = self.samples_at(np.array([quantile]))[0]
        return centers, -1, 0.0

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres, and the inertia."""
        state = self._assigned(centers)
        labels = self._labels(state)
        self.memory.give_back(state)
        return labels, self.frame.inertia_in_data_units(self._room(len(centers)).inertia)

    def _assigned(self, centers: FloatArray) -> State:
        """Return the state of samples that are assigned to their closest centres, and no more."""
        room = self._room(len(centers))
        state = self.memory.new_state(self.n_samples, room.k)
        room.run(state, state, centers, False, -1, 0.0, 1, steps=0)
        return state

    def _labels(self, state: State) -> NDArray[np.int32]:
        """Labels in the user's order."""
        return state.labels.ravel()[self.samples.places].astype(np.int32)

    @property
    def comparisons(self) -> int:
        """Distances between samples and centres computed since the number of clusters changed."""
        if self._room_in_use is None:
            return 0
        return int(self._room_in_use.scratch.counts[:, PAIRS].sum())

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres."""
        result = self._room(len(centers)).distances(centers)
        return np.ldexp(result, -self.frame.exponent, out=result)

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Centres drawn by D² seeding."""
        trials = np.ascontiguousarray(quantiles.reshape(len(quantiles), -1))
        return self._room(len(trials)).seed(trials)

    def errors_and_utilities(
        self, centers: FloatArray, power: int = 2
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the samples of each centre cost, and what more without it."""
        labels, first, second = self._room(len(centers)).two_closest(centers)
        weights = None if self.weights is None else self.samples.weights
        sums = sum_by_center(labels, first, second, weights, len(centers), power)
        errors, utilities = np.ldexp(sums, -power * self.frame.exponent)
        return errors, utilities

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        """Put the better versions of all parts together in which two solutions differ."""
        solutions = self._solution(first, first_handle), self._solution(second, second_handle)
        return self._room(len(first)).better_parts(*solutions)

    def _solution(self, centers: FloatArray, handle: Handle | None) -> Solution:
        """Return labels with centres, from the handle if it still has them."""
        if (labels := self.memory.labels(handle, len(centers))) is None:
            state = self._assigned(centers)
            labels = state.labels.copy()
            self.memory.give_back(state)
        return Solution(labels, centers)

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples as rows of a dense array."""
        return dense_rows(self.samples, chosen, self.n_features)

    def nearest_squares(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres; zero for samples without weight."""
        self.assign(centers)
        squares = self._room(len(centers)).scratch.nearby
        weights = self.samples.weights
        if len(weights):
            squares = np.divide(squares, weights, out=np.zeros_like(squares), where=weights > 0.0)
        return squares[self.samples.places]

    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """How much lower the objective is with one more centre, at each of the points."""
        gains = self._attraction(len(points)).reductions(points, squares)
        return np.ldexp(gains, -2 * self.frame.exponent)

    def attracted_means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Means of the samples that a centre at each of the points would attract."""
        return self._attraction(len(points)).means(points, squares)

    def _attraction(self, n_points: int) -> Attraction:
        worth = n_points * self.n_samples * self.n_features >= WORTH_A_THREAD
        n_threads = self.n_jobs if worth else 1
        if n_threads not in self._attractions:
            self._attractions[n_threads] = Attraction(self.samples, self.n_features, n_threads)
        return self._attractions[n_threads]

    def _room(self, n_clusters: int) -> Room:
        room = self._room_in_use
        if room is None or room.k != n_clusters:
            work = self.n_samples * (WORK_PER_SAMPLE + self.n_features * n_clusters)
            n_threads = min(self.n_jobs, count_tiles(self.n_samples))
            if work < WORTH_A_THREAD:
                n_threads = 1
            room = self._room_in_use = Room(self.samples, n_clusters, self.n_features, n_threads)
        return room
