"""The CPU engine."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import nearest
from evomeans.engines.cpu.assignment import PAIRS
from evomeans.engines.cpu.course import Refining, choose_place, is_common_end
from evomeans.engines.cpu.kernels import Move
from evomeans.engines.cpu.layout import Samples, Solution, State, count_tiles
from evomeans.engines.cpu.memory import Memory
from evomeans.engines.cpu.offspring import NO_CHILD
from evomeans.engines.cpu.order import MANY_COLUMNS
from evomeans.engines.cpu.rounds import (
    PER_CLUSTER,
    Seeds,
    most_missed,
    project,
    quick_looks,
    sum_up,
)
from evomeans.engines.cpu.samples import (
    DeferredSamples,
    can_move_singles,
    dense_rows,
    encode_samples,
    frame_for,
    scale_sparse,
)
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.steps import GivenRows, cluster_means, quick_steps
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.frame import Frame, is_sparse
from evomeans.engines.free_memory import bytes_of_samples, free_memory
from evomeans.engines.protocol import (
    Abandoned,
    Ability,
    Engine,
    Handle,
    Order,
    Refinement,
    Way,
    require_abilities,
)
from evomeans.engines.rules import MANY_ROWS
from evomeans.engines.sampling import Drawing, WeightedDraw
from evomeans.kernels import MOST_COSTS
from evomeans.typing import Flags, FloatArray, Labels

# Minimum work per thread, in multiply-adds, for which another thread is worthwhile. Threads meet
# after every step, and on a busy machine each meeting takes milliseconds. Most of the n·k·d
# products are avoided; what every sample takes in any case is like 64 of them.
WORTH_A_THREAD = 50_000_000
WORK_PER_SAMPLE = 64
# The same for kernels whose threads meet at the end only.
WORTH_A_CALL = 2_500_000
# Below this much, an offspring takes less time than handing it to another thread and back.
WORTH_A_WORKER = 50_000
# From this much on for each of them, several threads make one solution: the first offspring come
# sooner, for they have to wait for whole founders. More threads than this are better off alone.
WORTH_A_TEAM, MOST_IN_A_TEAM = 2**32, 8

# Bytes of the bounds of a solution from which on they are compared with the memory that is free.
WORTH_ASKING = 2**27

# From this many values on, samples are put into order when they are first needed, and other threads
# can end that.
VALUES_WORTH_DEFERRING = 2**20
# Products of a look at a few samples, to learn how long one at all of them would take, fewer if
# they are sparse; how many samples these are at least, and how many values if they are wide.
FEW_PRODUCTS, FEW_SPARSE_PRODUCTS, FEW_ROWS, FEW_VALUES = 2**26, 2**24, 256, 2**21

# Four threads label samples about three times as fast as one, and sixteen five to seven times.
GAIN_OF_THREADS = 0.7

# How many leading directions the samples may be projected onto for a quick start.
DIRECTIONS = (32, 64, 128)

# Greedy k-means++ that takes more products than this gives way to one among points that stand for
# all samples, if there are at least so many samples for each of these points.
MANY_PRODUCTS, ROWS_PER_POINT = 2**35, 4

# Indexed by value; calling the class is slower.
WAYS = tuple(Way)


class CpuEngine(Engine):
    """K-means in Numba, with bounds inherited from a parent.

    * ``X`` (n, d) or CSR matrix of float32 or float64: samples in data units.
    * ``sample_weight`` (n,) of float64: None for equal weights.
    * ``n_jobs``: threads at most; results do not depend on it.
    * ``frame``: by default the one around ``X``. Sparse samples take its scale only.
    * ``searching``: whether there will be refinements: then neighbouring samples are put together
      first, which takes as long as a few assignments.
    * ``in_order``: whether that is done; not worth it for one short run of K-means.
    * ``memory_budget``: bytes for refined solutions that are kept. It limits how many are made at a
      time, and changes nothing else but time. By default 2 GiB.
    """

    batch = 1
    most_sampled = sys.maxsize

    def __init__(
        self,
        X: Any,
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int = 1,
        frame: Frame | None = None,
        searching: bool = True,
        in_order: bool = True,
        memory_budget: int = 2**31,
    ) -> None:
        self.frame = frame_for(X, frame, n_jobs)
        self.n_samples, self.n_features = X.shape
        self._has_many_rows = searching and not is_sparse(X) and self.n_samples >= MANY_ROWS
        self._deferred = DeferredSamples(
            partial(
                encode_samples,
                X,
                sample_weight,
                self.frame,
                n_jobs=n_jobs,
                on_sphere=self.on_sphere,
            ),
            in_order=searching and in_order,
            insists=self._has_many_rows,
        )
        self.dtype = X.dtype
        self.weights = sample_weight
        self.total_weight = self.n_samples if sample_weight is None else float(sample_weight.sum())
        self.n_jobs = n_jobs
        self._source = X
        self.abilities = frozenset(Ability)
        if not can_move_singles(X):
            self.abilities -= {Ability.SINGLE_MOVES}
        if is_sparse(X):
            # Centres have many features, all of which would move in every iteration.
            self.abilities -= {Ability.MOMENTUM}
        self.memory = Memory(memory_budget)
        self._draw = WeightedDraw(self.n_samples, sample_weight)
        self._workspace_in_use: Workspace | None = None
        self._points: CpuEngine | None = None
        self._seconds: dict[int, float] = {}
        n_values = X.nnz if is_sparse(X) else X.size
        is_deferred = self._has_many_rows or n_values >= VALUES_WORTH_DEFERRING
        # On the sphere, engines make predictions as well, which need no tiles.
        if not (self.on_sphere or (searching and is_deferred)):
            self._deferred.get(self.check_abandoned)

    @property
    def is_prepared(self) -> bool:  # type: ignore[override]
        """Whether the samples have been put into order."""
        return self._deferred.samples is not None

    @property
    def samples(self) -> Samples:
        """The samples as kernels read them. Many are put into order when first asked for."""
        samples = self._deferred.samples
        return self._deferred.get(self.check_abandoned) if samples is None else samples

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        return self.rows(self._draw.rows(quantiles))

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """Refine every start, one after the other."""
        require_abilities(starts, self.abilities, "CPU")
        return list(map(self._refine, starts))

    def _refine(self, start: Order) -> Refinement:
        k = len(start.centers)
        try:
            workspace = self._workspace(k)
        except Abandoned:
            return Refinement.stopped(start)
        found, known = self._new_solution(k), self.memory.lend(start.parent, k)
        workspace.scratch.outcome["swaps_kept"] = -1  # in case the kernel does not begin
        move = Move.of(start, k, inherit=known is not None)
        try:
            if start.removed >= 0:
                placed, uniform = choose_place(workspace, self._draw, start.alpha, start.quantile)
                move = move._replace(gone=start.removed, placed=placed, uniform=uniform)
            workspace.run(known or found, found, start.centers, move, start)
            outcome = workspace.outcome
            inertia, n_iter = outcome.inertia, int(outcome.iterations)
            if not is_common_end(outcome, self.total_weight):
                refining = Refining(workspace, start, self._draw, known, found)
                inertia = refining.follow(self.total_weight).inertia
                n_iter = refining.n_iter
        except Abandoned:
            if workspace.outcome.swaps_kept > 0:
                most = self.frame.inertia_in_data_units(workspace.outcome.unswapped)
                return Refinement.stopped(start, workspace.swapped.centers.copy(), most)
            # A workspace that no kernel has entered yet is blank.
            reached = workspace.positions
            return Refinement.stopped(start, reached if reached.any() else None)
        finally:
            self.memory.take_back(start.parent, known)
        return self._remembered(found, inertia, n_iter)

    def offspring(self, order: Order, ways: Sequence[Way]) -> Refinement | None:
        """Cross two solutions and refine the child, in a single call of a kernel."""
        if order.parents is None:
            raise ValueError("An offspring needs the parents of its order, and there are none.")
        memory, (first, second) = self.memory, [one.handle for one in order.parents]
        n_clusters = len(order.numbers)
        workspace = self._workspace(n_clusters)
        merges_many = ways[-1] is Way.MERGING and 2 * n_clusters > MOST_COSTS
        if workspace.team.n_threads > 1 or merges_many:
            return None
        one, other = memory.lend(first, n_clusters), memory.lend(second, n_clusters)
        try:
            if one is None or other is None:
                return None
            found = self._new_solution(n_clusters)
            placed, uniform = choose_place(workspace, self._draw, order.alpha, order.quantile)
            move = Move.of(
                order,
                n_clusters,
                inherit=True,
                gone=order.removed,
                placed=placed,
                uniform=uniform,
                tries_parts=Way.PARTS in ways,
                way=ways[-1],
            )
            workspace.breed(one, other, found, move, order)
        finally:
            memory.take_back(first, one)
            memory.take_back(second, other)
        outcome = workspace.outcome
        if outcome.made_by == NO_CHILD or not is_common_end(outcome, self.total_weight):
            memory.give_back(found)
            return None
        way = WAYS[outcome.made_by]
        return self._remembered(found, outcome.inertia, int(outcome.iterations), way)

    def _remembered(
        self, found: Solution, inertia: float, n_iter: int, way: Way | None = None
    ) -> Refinement:
        """Keep a solution; its memory may be used again while what is returned lives on."""
        return Refinement(
            found.centers.copy(),
            self.frame.inertia_in_data_units(inertia),
            found.weights.copy(),
            n_iter,
            self.memory.keep(found),
            way=way,
        )

    def _new_solution(self, n_clusters: int) -> Solution:
        return self.memory.new_solution(self.n_samples, n_clusters, self.n_features)

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres, those of ``predict``, and the inertia."""
        found = nearest.labels_and_squares(self._source, centers, self.frame, self.n_jobs)
        labels, squares = found
        total = squares.sum() if self.weights is None else self.weights @ squares
        return labels, self.frame.inertia_in_data_units(float(total))

    def labels(self, centers: FloatArray) -> NDArray[np.int32]:
        """Labels of the closest centres, without the inertia."""
        return nearest.labels(self._source, centers, self.frame, self.n_jobs)

    def _assigned(self, centers: FloatArray) -> Solution:
        """Return samples that are assigned to their closest centres, and no more."""
        workspace = self._workspace(len(centers))
        found = self._new_solution(workspace.k)
        workspace.run(found, found, centers, Move(steps=0))
        return found

    @property
    def comparisons(self) -> int:
        """Distances between samples and centres computed since the number of clusters changed."""
        if self._workspace_in_use is None:
            return 0
        return int(self._workspace_in_use.scratch.counts[:, PAIRS].sum())

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres."""
        result = self._workspace(len(centers)).distances(centers)
        return np.ldexp(result, -self.frame.exponent, out=result)

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Centres drawn by D² seeding; drawn by weight as soon as the engine is abandoned.

        If greedy seeding would take long, K-means among points that stand for all samples follows
        it, and none of the samples is a centre.
        """
        trials = np.ascontiguousarray(quantiles.reshape(len(quantiles), -1))
        chosen = np.full(len(trials), -1, np.int64)
        try:
            if self._seeds_in_rounds(*trials.shape):
                return self._seed_in_rounds(trials)[0]
            workspace = self._workspace(len(trials))
            workspace.seed(trials, chosen)
        except Abandoned:
            if (chosen >= 0).all():
                return workspace.positions
            return self._seed_soon(trials[:, 0], chosen)
        return workspace.positions

    def quick_looks(self, n_clusters: int, n_trials: int, n_directions: int = 0) -> float:
        """Estimate the time of :meth:`quick_seed` in looks; infinite for small problems."""
        if not self._seeds_in_rounds(n_clusters, n_trials):
            return math.inf
        return quick_looks(self.n_samples, self.n_features, n_clusters, n_directions)

    def quick_seed(self, quantiles: FloatArray, n_directions: int = 0) -> FloatArray:
        """Centres from a seeding in rounds, in leading directions if there are any, and steps."""
        try:
            space = self.projected(n_directions) if n_directions else self
            with self._lent(space):
                centers, seeds = space._seed_in_rounds(quantiles, is_quick=True)
                points = space.frame.decode(seeds.points).astype(self.dtype)
                labels = nearest.labels(points, centers, space.frame, self.n_jobs)[seeds.labels]
            others = self.rows(self._draw.distinct_rows(quantiles[:, 0]))
        except Abandoned:
            # Samples are far worse centres than the means of their clusters.
            drawn = self._seed_soon(quantiles[:, 0], np.full(len(quantiles), -1, np.int64))
            return self.quick_steps(drawn)
        return self.quick_steps(self.means(labels, others), labels)

    def quick_steps(self, centers: FloatArray, labels: Labels | None = None) -> FloatArray:
        """Compare samples with all centres, and more often with those near their own."""
        if is_sparse(self._source):
            return super().quick_steps(centers, labels)
        return quick_steps(self._shared, centers, labels, lambda: self.is_abandoned)

    @property
    def _shared(self) -> GivenRows:
        """The samples in data units."""
        return GivenRows(self._source, self.weights, self.frame, self.n_jobs)

    def _seeds_in_rounds(self, n_clusters: int, n_trials: int) -> bool:
        is_greedy = n_trials > 1 and not is_sparse(self._source)
        n_products = self.n_samples * self.n_features * n_clusters * n_trials
        n_points = PER_CLUSTER * n_clusters
        is_long = n_products >= MANY_PRODUCTS and self.n_samples >= ROWS_PER_POINT * n_points
        return is_greedy and is_long and len(self._draw.counted) >= ROWS_PER_POINT * n_points

    def _seed_in_rounds(
        self, trials: FloatArray, *, is_quick: bool = False
    ) -> tuple[FloatArray, Seeds]:
        """Seed and refine among points that stand for all samples; return these as well."""
        k, rng = len(trials), np.random.default_rng(int(trials[0, 0] * 2.0**53))
        seeds = sum_up(self._shared, k, rng, self.check_abandoned)
        if (n_points := len(seeds.points)) < k:
            # The samples have hardly more different rows than there are clusters.
            others = self.rows(self._draw.distinct_rows(trials[n_points:, 0]))
            return np.concatenate([seeds.points, others]), seeds
        points = self.frame.decode(seeds.points).astype(self.dtype)
        shared: dict[str, Any] = {"n_jobs": self.n_jobs, "frame": self.frame}
        engine = CpuEngine(points, seeds.weights, in_order=False, **shared)
        with self._lent(engine):
            start = most_missed(seeds, k, self.n_jobs) if is_quick else engine.seed(trials)
            return engine.refine([Order(start)])[0].centers, seeds

    @contextmanager
    def _lent(self, engine: CpuEngine) -> Iterator[None]:
        """Let another engine do the work meanwhile: it is abandoned with this one."""
        if engine is self:
            yield
            return
        self._points = engine
        try:
            # It may have been abandoned meanwhile.
            engine.abandon(self.is_abandoned)
            yield
        finally:
            self._points = None

    def _seed_soon(self, quantiles: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
        """Complete the places of samples that became centres by samples drawn by weight."""
        is_left = chosen < 0
        rows = np.empty(len(chosen), np.intp)
        if not is_left.all():
            rows[~is_left] = self.samples.order[chosen[~is_left]]
        rows[is_left] = self._draw.distinct_rows(quantiles[is_left], rows[~is_left])
        centers = self.rows(rows)
        if self._workspace_in_use is not None and self._workspace_in_use.k == len(rows):
            # A refinement that is abandoned before it begins has come as far as this.
            self._workspace_in_use.centers.exact[:] = centers
        return centers

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        """Put the better versions of all parts together in which two solutions differ."""
        k, memory = len(first), self.memory
        known, other = memory.lend(first_handle, k), memory.lend(second_handle, k)
        try:
            return self._workspace(k).better_parts(
                self._labelled(first, first_handle, known),
                self._labelled(second, second_handle, other),
            )
        finally:
            memory.take_back(first_handle, known)
            memory.take_back(second_handle, other)

    def _labelled(
        self, centers: FloatArray, handle: Handle | None, known: Solution | None
    ) -> tuple[NDArray[Any], FloatArray]:
        """Return labels with centres, from what is known of them if anything is."""
        if known is not None:
            return known.state.labels, centers
        if (labels := self.memory.labels(handle, len(centers))) is None:
            found = self._assigned(centers)
            labels = found.state.labels.copy()
            self.memory.give_back(found)
        return labels, centers

    def subsample(self, drawing: Drawing) -> CpuEngine:
        """Make an engine over rows that are drawn by their weights and distances."""
        costs = None if drawing.centers is None else self._costs(drawing.centers)
        rows, own = drawing.choose(costs, self.weights, self.total_weight, self.n_samples)
        shared: dict[str, Any] = {"n_jobs": self.n_jobs, "frame": self.frame}
        return CpuEngine(self._source[rows], own, in_order=drawing.in_order, **shared)

    @property
    def n_directions(self) -> tuple[int, ...]:  # type: ignore[override]
        """Numbers of leading directions that are worth a projection; none with few features."""
        is_wide = not is_sparse(self._source) and self.n_features >= MANY_COLUMNS
        return tuple(n for n in DIRECTIONS if 2 * n <= self.n_features) if is_wide else ()

    def projected(self, n_directions: int) -> CpuEngine:
        """Make an engine over the samples on their leading directions."""
        rows = project(self._shared, n_directions, self.check_abandoned)
        return CpuEngine(rows, self.weights, n_jobs=self.n_jobs)

    def means(self, labels: Labels, others: FloatArray) -> FloatArray:
        """Means of clusters; ``others`` are the centres of those without weight."""
        return cluster_means(self._shared, labels, others)

    def workers(self, n_clusters: int, most: int) -> list[Self]:
        """Engines that share the samples and the memory, each with its own work space."""
        most = min(most, self._most_at_a_time(n_clusters))
        n_workers, n_threads = share_threads(self.n_jobs, most, self._work(n_clusters))
        if n_workers == 1 and not self.takes_long(n_clusters):
            return [self]
        return [self.twin(n_threads) for _ in range(n_workers)]

    def _most_at_a_time(self, n_clusters: int) -> int:
        """Return how many solutions in the making fit into memory; refuse to make none."""
        size, room = State.size(self.n_samples, n_clusters), self.memory.budget
        if size < WORTH_ASKING:
            return max(1, room // size)
        reusable = self.memory.reusable(self.n_samples, n_clusters)
        if (free := free_memory()) is None:
            return max(1, room // size)
        free, own = free + reusable, 0
        if not (self.is_prepared or is_sparse(self._source)):
            own = bytes_of_samples(self.n_samples, self.n_features, self.dtype.itemsize)
        if own + size > free:
            raise MemoryError(
                f"{self.n_samples:,} samples of {self.n_features:,} features and {n_clusters:,} "
                f"clusters take {(own + size) / 2**30:.1f} GiB, {size / 2**30:.1f} of them for "
                f"bounds, and {free / 2**30:.1f} GiB are free. Fit fewer samples or clusters."
            )
        return max(1, min(room, free - own) // size)

    def twin(self, n_jobs: int) -> Self:
        """Return an engine that shares the samples and the memory, but not the work space."""
        twin = copy(self)
        twin.n_jobs, twin._workspace_in_use, twin._points = n_jobs, None, None
        return twin

    def takes_long(self, n_clusters: int) -> bool:
        """Whether a refinement takes milliseconds."""
        return self._work(n_clusters) >= WORTH_A_CALL

    def abandon(self, is_abandoned: bool) -> None:
        """Abandon the team at work, and the next one."""
        super().abandon(is_abandoned)
        if self._workspace_in_use is not None:
            self._workspace_in_use.team.abandon(is_abandoned)
        if (points := self._points) is not None:
            points.abandon(is_abandoned)

    def labelling_seconds(self, n_clusters: int) -> float:
        """Estimate how long labels take: as long for all samples as for a few of them."""
        if not self.takes_long(n_clusters):
            return 0.0
        if n_clusters not in self._seconds:
            # What is known of more centres tells of fewer, and a path asks for many numbers.
            more = min((k for k in self._seconds if k > n_clusters), default=0)
            if more:
                share = self._work(n_clusters) / self._work(more)
                self._seconds[n_clusters] = self._seconds[more] * share
            else:
                self._seconds[n_clusters] = self._time_few(n_clusters)
        return self._seconds[n_clusters]

    def _time_few(self, n_clusters: int) -> float:
        """Estimate the seconds to label all samples."""
        if is_sparse(self._source):
            values, products, fewest = self._source.nnz, FEW_SPARSE_PRODUCTS, FEW_ROWS
        else:
            values, products = self._source.size, FEW_PRODUCTS
            fewest = min(FEW_ROWS, max(WIDTH, FEW_VALUES // self.n_features))
        n_few = min(self.n_samples // 16, products * self.n_samples // (values * n_clusters + 1))
        n_few = min(self.n_samples, max(fewest, n_few))
        centers = self.rows(np.linspace(0, self.n_samples - 1, n_clusters).astype(np.intp))
        some = self._source[np.linspace(0, self.n_samples - 1, n_few).astype(np.intp)]
        fixed, few = nearest.seconds_to_label(some, centers, self.frame, self.n_samples)
        return (
            fixed + few * (self.n_samples / n_few) / self._n_threads(n_clusters) ** GAIN_OF_THREADS
        )

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples as rows of a dense array."""
        if self._deferred.samples is None:
            found = self._source[chosen]
            found = scale_sparse(found, self.frame).toarray() if is_sparse(found) else found
            is_scaled = is_sparse(self._source)
            return np.asarray(found if is_scaled else self.frame.encode(found), dtype=np.float64)
        return dense_rows(self.samples, chosen, self.n_features)

    def _costs(self, centers: FloatArray) -> FloatArray:
        """Weighted squared distances to the closest centres, in the frame."""
        if self._has_many_rows:
            # In the same bits whether they are in order or not.
            labels = nearest.labels(self._source, centers, self.frame, self.n_jobs)
            squares = nearest.squares(self._source, labels, centers, self.frame, self.n_jobs)
            return squares if self.weights is None else squares * self.weights
        workspace = self._workspace(len(centers))
        self.memory.give_back(self._assigned(centers))
        costs: FloatArray = workspace.scratch.nearby[self.samples.places]
        return costs

    def _workspace(self, n_clusters: int) -> Workspace:
        workspace = self._workspace_in_use
        if workspace is None or workspace.k != n_clusters:
            n_threads = self._n_threads(n_clusters)
            workspace = self._workspace_in_use = Workspace(
                self.samples, n_clusters, self.n_features, n_threads
            )
            workspace.team.abandon(self.is_abandoned)
        return workspace

    def _n_threads(self, n_clusters: int) -> int:
        """Return how many threads an assignment is worth."""
        most = self._work(n_clusters) // max(WORTH_A_THREAD, 1)
        return max(1, min(self.n_jobs, most, count_tiles(self.n_samples)))

    def _work(self, n_clusters: int) -> int:
        """Return how much work an assignment is, in products."""
        return self.n_samples * (WORK_PER_SAMPLE + self.n_features * n_clusters)


def share_threads(n_jobs: int, most: int, work: int) -> tuple[int, int]:
    """Return how many workers there should be, ``most`` at most, and threads for each.

    ``n_jobs`` is the number of threads in all, ``work`` that of products of one assignment.
    """
    if work < WORTH_A_WORKER:
        return 1, n_jobs
    n_threads = min(n_jobs, MOST_IN_A_TEAM, max(1, work // WORTH_A_TEAM))
    n_workers = min(n_jobs // n_threads, most)
    return n_workers, n_jobs // n_workers
