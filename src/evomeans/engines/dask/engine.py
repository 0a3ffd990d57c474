"""The Dask engine."""

from __future__ import annotations

import itertools
import logging
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.base import PlainKMeans
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.dask.blocks import (
    LARGE_CHUNK,
    Survey,
    check_counts,
    combine,
    lazy_distances,
    lazy_labels,
    row_chunks,
    summarize,
)
from evomeans.engines.dask.course import BlockCourse, in_order, positions
from evomeans.engines.dask.runners import ANYWHERE, Runner, current_runner
from evomeans.engines.dask.steps import (
    BlockSampling,
    Ground,
    Question,
    Reply,
    Request,
    merge_replies,
    visit_block,
)
from evomeans.engines.frame import Frame, column_scales, limb_bits
from evomeans.engines.precision import Extremes, may_lose_samples
from evomeans.engines.protocol import Abandoned, Ability, Order, Refinement, require_abilities
from evomeans.engines.sampling import Drawing
from evomeans.typing import FloatArray

log = logging.getLogger("evomeans")

# Bytes of a sample. Workers send it, and one of them puts it together.
LARGEST_SAMPLE = 2**26
# Refined together, so that what Dask takes for a task is shared: a divisor of the patience of both
# settings of the paper, so that a search rarely ends in the middle of a round.
BATCH = 25
# With more values than this, work exceeds by far what Dask takes for a task. Then small rounds are
# as fast, end sooner, and have better parents.
MANY_VALUES, SMALL_BATCH = 2**28, 5


class Trace:
    """The handle of a refined solution: its name, under which workers may still know it."""

    __slots__ = ("__weakref__", "engine", "name")

    def __init__(self, engine: str, name: int) -> None:
        self.engine = engine
        self.name = name


class DaskEngine(PlainKMeans):
    """K-means on blocks of samples that stay where Dask has them.

    Centres travel to the blocks and integer sums come back, once for every iteration of a whole
    batch. Results have the same bits for any number of workers and threads: they depend on the
    samples and on how these are divided into blocks.

    * ``X`` (n, d), of Dask: samples in data units, all columns in one chunk, chunk sizes known.
    * ``sample_weight`` (n,), of Dask: in the same chunks. None for equal weights.
    * ``frame``: the frame to work in, by default the one around ``X``.
    * ``runner``: where tasks run; by default the current client, else Dask's local scheduler.
    * ``n_jobs``: threads of engines over some of the samples, which are in this process.

    A value that is not finite, or a negative weight, is a ValueError that names block and row.
    """

    abilities = frozenset({Ability.MOMENTUM})

    def __init__(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        frame: Frame | None = None,
        runner: Runner | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.n_jobs = n_jobs
        self.runner = current_runner() if runner is None else runner
        self.X = X
        self.survey = self._divide(sample_weight)
        self.n_samples = self.survey.n_samples
        self.total_weight = self.survey.total_weight
        has_many = self.n_samples * X.shape[1] > MANY_VALUES
        self.batch = SMALL_BATCH if has_many else BATCH
        if frame is None:
            frame = Frame.spanning(self.survey.low, self.survey.high, self.n_samples)
        self.frame = frame
        self.ground = ground_of(self.survey, frame)
        self.most_sampled = LARGEST_SAMPLE // (X.shape[1] * X.dtype.itemsize)
        # Where blocks answered last, and whether they were kept there. Others are best loaded there
        # again, for labels may have been kept.
        self._homes: dict[int, tuple[str, bool]] = {}
        self._workers = self.runner.workers()
        self._names = itertools.count()
        self._serials = itertools.count()
        self._forgotten: deque[int] = deque()
        self._census: tuple[bytes, NDArray[np.int64], FloatArray] | None = None
        self._close = weakref.finalize(self, self.runner.drop, self.ground.token)
        # When the interpreter ends, so does the client, and with it what it holds.
        self._close.atexit = False

    def _divide(self, sample_weight: Any) -> Survey:
        """Choose the blocks and look through each of them once."""
        from dask import delayed

        row_bytes = self.X.shape[1] * self.X.dtype.itemsize
        if (largest := max(self.X.chunks[0]) * row_bytes) > LARGE_CHUNK:
            log.warning(
                "X has chunks of up to %d MiB, which are loaded whole; keep them well below the "
                "memory of a thread.",
                largest // 2**20,
            )
        rows = row_chunks(self.X.chunks[0], row_bytes)
        samples = self.X.rechunk((rows, -1)).to_delayed().ravel()
        weights = [None] * len(rows)
        if sample_weight is not None:
            weights = sample_weight.rechunk((rows,)).to_delayed().ravel()
        look = delayed(summarize, pure=False)
        tasks = [look(*block) for block in zip(samples, weights, strict=True)]
        summaries = self.runner.compute(tasks)
        check_counts(summaries, rows, self.X.chunks[0])
        self._blocks = [
            (X, w)
            for X, w, summary in zip(samples, weights, summaries, strict=True)
            if summary.n_samples
        ]
        return combine(summaries, self.X.chunks[0], weighted=sample_weight is not None)

    def digests(self, digest: Callable[..., str]) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return digests of the samples and of the weights of every block, as arrays of bytes."""
        from dask import delayed

        each = delayed(digest, pure=False)
        samples = self.runner.compute([each(X) for X, _ in self._blocks])
        weights = None
        if not self.survey.equal_weights:
            weights = np.array(self.runner.compute([each(w) for _, w in self._blocks]), "S64")
        return np.array(samples, "S64"), weights

    def check_resolution(self, labels: Any, k: int) -> None:
        """Refuse a clustering if many samples and a whole cluster are lost; see precision.py."""
        from dask import delayed

        survey, n = self.survey, self.n_samples
        weights = survey.lightest, survey.heaviest
        if may_lose_samples(self.frame, survey.finest, *weights, n):
            extremes = Extremes(survey.low, survey.high, *weights, n)
            rows = (tuple(survey.sizes.tolist()),)
            count = delayed(extremes.lost_and_resolved, pure=False)
            parts = zip(self._blocks, labels.rechunk(rows).to_delayed(), strict=True)
            tasks = [count(X, w, own, k, self.frame) for (X, w), own in parts]
            extremes.refuse_lost_clusters(np.sum(self.runner.compute(tasks), axis=0))

    def close(self) -> None:
        """Let the workers forget the samples."""
        self._close()

    # ---- the verbs of the protocol ---------------------------------------------------------------

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        picks, order = positions(self.survey, quantiles)
        (found,) = self.ask([Question("rows", picks=picks)])
        return np.array([found[block][place] for block, place in order])

    def subsample(self, drawing: Drawing) -> CpuEngine:
        """Make an engine in this process, over rows that one pass over the blocks has drawn."""
        total, ends = self.survey.total_weight, np.cumsum(self.survey.sizes)
        firsts = dict(enumerate((ends - self.survey.sizes).tolist()))
        centers = np.zeros((0, self.X.shape[1])) if drawing.centers is None else drawing.centers
        sampling = BlockSampling(drawing, total, firsts)
        (found,) = self.ask([Question("sample", centers=centers, sampling=sampling)])
        rows, own = (np.concatenate(parts) for parts in zip(*in_order(found), strict=True))
        X = self.frame.decode(rows).astype(self.X.dtype)
        return CpuEngine(X, own, n_jobs=self.n_jobs, frame=self.frame)

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """K-means from all starts side by side."""
        require_abilities(starts, self.abilities, "Dask")
        self._settle()
        names = [next(self._names) for _ in starts]
        following = [
            BlockCourse(start, name, self._name_of(start.parent), self.ground, self.survey)
            for start, name in zip(starts, names, strict=True)
        ]
        courses = [one.run() for one in following]
        asking = {number: next(course) for number, course in enumerate(courses)}
        refined: dict[int, Refinement] = {}
        while asking:
            try:
                self.check_abandoned()
                answers = self.ask(list(asking.values()))
            except Abandoned:
                reached = [one.centers for one in following]
                return [Refinement.stopped(*one) for one in zip(starts, reached, strict=True)]
            for number, answer in zip(list(asking), answers, strict=True):
                try:
                    asking[number] = courses[number].send(answer)
                except StopIteration as end:
                    refined[number] = end.value
                    del asking[number]
        return [replace(refined[i], handle=self._remember(name)) for i, name in enumerate(names)]

    def assign(self, centers: FloatArray) -> tuple[Any, float]:
        """Labels of the closest centres, a lazy Dask array, and the inertia."""
        (census,) = self.ask([Question("census", centers=centers)])
        inertias, sizes, weights = zip(*in_order(census), strict=True)
        self._census = centers.tobytes(), np.sum(sizes, axis=0), np.sum(weights, axis=0)
        labels = lazy_labels(self.X, centers, self.frame)
        return labels, self.frame.inertia_in_data_units(sum(inertias))

    def cluster_sizes(self, centers: FloatArray) -> NDArray[np.int64]:
        """Count the samples that are closest to each centre."""
        if self._census is None or self._census[0] != centers.tobytes():
            self.assign(centers)
        assert self._census is not None
        return self._census[1]

    def weigh(self, centers: FloatArray) -> tuple[FloatArray, float]:
        """Total weight of the samples that are closest to each centre, and the inertia."""
        _, inertia = self.assign(centers)
        assert self._census is not None
        return self._census[2], inertia

    def distances(self, centers: FloatArray) -> Any:
        """Distances of all samples to all centres, a lazy Dask array."""
        return lazy_distances(self.X, centers, self.frame)

    # ---- handles ---------------------------------------------------------------------------------

    def _remember(self, name: int) -> Trace:
        trace = Trace(self.ground.token, name)
        weakref.finalize(trace, self._forgotten.append, name)
        return trace

    def _name_of(self, handle: Any) -> int:
        known = isinstance(handle, Trace) and handle.engine == self.ground.token
        return handle.name if known else -1

    # ---- requests --------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Give workers that joined their share of the blocks; all other blocks stay."""
        before, self._workers = self._workers, self.runner.workers()
        joined = sorted(self._workers - before)
        held: dict[str, list[int]] = {worker: [] for worker in sorted(self._workers)}
        for block, (worker, _) in sorted(self._homes.items()):
            if worker in held:
                held[worker].append(block)
        moved: list[int] = []
        while joined:
            emptiest = min(joined, key=lambda worker: len(held[worker]))
            fullest = max(held, key=lambda worker: len(held[worker]))
            if len(held[fullest]) - len(held[emptiest]) < 2:
                break
            moved.append(held[fullest].pop())
            held[emptiest].append(moved[-1])
            self._homes[moved[-1]] = emptiest, False
        if moved:
            self.runner.drop(self.ground.token, moved)

    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """Ask all blocks concerned; those that are not found are loaded."""
        forget = frozenset(self._forgotten.popleft() for _ in range(len(self._forgotten)))
        request = Request(self.ground, questions, next(self._serials), forget)
        waiting = [
            block
            for block in range(len(self._blocks))
            if any(question.concerns(block) for question in questions)
        ]
        replies: list[Reply] = []
        while waiting:
            received = self._send(request, waiting)
            reply = merge_replies(received)
            replies.append(reply)
            waiting = [block for block in waiting if block not in reply.homes]
            # Without any reply a worker is gone, and the others still have their blocks. With one,
            # the blocks missing from it are no longer where they were.
            alive = set() if received else self.runner.workers()
            for block in waiting:
                if block in self._homes and self._homes[block][0] not in alive:
                    del self._homes[block]
            self._homes |= reply.homes
        return merge_replies(replies).answers

    def _send(self, request: Request, blocks: Sequence[int]) -> list[Reply]:
        """Ask blocks once, where they are, or where they are best loaded."""
        from dask import delayed

        # Delayed once: it is not to be looked through for every block.
        carried = delayed(request, traverse=False)
        visit = delayed(visit_block, pure=False)
        kept: dict[str, list[int]] = {}
        visits: dict[str, list[Any]] = {}
        for block in blocks:
            worker, is_kept = self._homes.get(block, (ANYWHERE, False))
            if is_kept:
                kept.setdefault(worker, []).append(block)
            else:
                lazy = visit(*self._blocks[block], block, carried)
                visits.setdefault(worker, []).append(lazy)
        return self.runner.ask(request, kept, visits, lambda: self.is_abandoned)


def ground_of(survey: Survey, frame: Frame) -> Ground:
    """Return what blocks need to know of each other."""
    bits = limb_bits(survey.n_samples)
    ends = frame.encode(np.stack([survey.low, survey.high]))
    extents = np.maximum(ends[1], -ends[0]).astype(np.float64)
    heaviest = np.array([] if survey.equal_weights else [survey.heaviest])
    scales = column_scales(extents, heaviest, bits)
    return Ground(uuid.uuid4().hex, frame, scales, float(2**bits))
