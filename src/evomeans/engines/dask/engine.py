"""The Dask engine, and one of its refinements as a sequence of questions to the blocks."""

from __future__ import annotations

import itertools
import logging
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.base import PlainKMeans
from evomeans.engines.course import (
    Assign,
    Begin,
    ClusterMeans,
    Descend,
    IsOnSamples,
    Level,
    Relocate,
    Snap,
    Step,
    course,
)
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.dask.blocks import (
    LARGE_CHUNK,
    Survey,
    combine,
    lazy_distances,
    lazy_labels,
    row_chunks,
    summarize,
)
from evomeans.engines.dask.runners import ANYWHERE, Runner, current_runner
from evomeans.engines.dask.steps import (
    BlockSampling,
    Ground,
    Question,
    Reply,
    Request,
    Wanted,
    merge_replies,
    visit_block,
)
from evomeans.engines.frame import (
    Extremes,
    Frame,
    column_scales,
    limb_bits,
    may_lose_samples,
    means_of,
)
from evomeans.engines.protocol import Abandoned, Ability, Order, Refinement, require_abilities
from evomeans.engines.rules import MAX_ITERATIONS, split_mixture
from evomeans.engines.sampling import Drawing, wheel_stops
from evomeans.typing import FloatArray

Asking = Generator[Question, Any, None]
Said = TypeVar("Said")


@dataclass
class BlockCourse:
    """One refinement whose steps are answered by blocks of samples.

    Every step of the :func:`~evomeans.engines.course.course` becomes questions to the blocks. Many
    solutions ask side by side.
    """

    start: Order
    name: int
    """Of the solution, for the workers."""
    parent: int
    """The name of the parent, −1 if there is none."""
    ground: Ground
    survey: Survey

    def __post_init__(self) -> None:
        self.centers = self.start.centers
        self.n_iter = 0

    def run(self) -> Generator[Question, Any, Refinement]:
        """Follow the course; every question is to be answered by all blocks together."""
        steps = course(self.start, self.survey.total_weight)
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                inertia = self.ground.frame.inertia_in_data_units(end.value.inertia)
                return Refinement(self.centers, inertia, end.value.weights, self.n_iter)
            answer = yield from self._answer(step)

    def _answer(self, step: Step) -> Generator[Question, Any, Any]:
        match step:
            case Begin():
                self.centers = self.start.centers.copy()
                return None
            case Relocate():
                return (yield from self._relocate(step.removed, step.alpha, step.quantile))
            case Assign():
                return (yield from self._assign(step.centers))
            case Descend():
                return (yield from self._lloyd())
            case IsOnSamples():
                answers = yield self._question("on_centers")
                return all(answers.values())
            case Snap():
                return (yield from self._snap())
            case _:
                raise NotImplementedError(f"The Dask engine has no answer to {step}.")

    def _assign(self, centers: FloatArray | None) -> Generator[Question, Any, ClusterMeans]:
        if centers is not None:
            self.centers = centers
        sums = yield self._question("sums")
        self.n_iter += 1
        ground = self.ground
        means, weights = means_of(sums, self.centers, ground.scales, ground.limb)
        return ClusterMeans(self.centers, means, weights)

    def _lloyd(self) -> Generator[Question, Any, Level]:
        """Move centres to the means of their clusters until none moves any more."""
        weights = np.zeros(len(self.centers))
        for _ in range(MAX_ITERATIONS):
            before, self.centers, weights = yield from self._assign(None)
            # As the CPU engine sees it: squares of the smallest moves vanish.
            if not np.any(np.sum((self.centers - before) ** 2, axis=1) > 0.0):
                break
        return (yield from self._measure(weights))

    def _measure(self, weights: FloatArray) -> Generator[Question, Any, Level]:
        distances = yield self._question("distances")
        return Level(sum(in_order(distances)), weights)

    def _relocate(self, removed: int, alpha: float, quantile: float) -> Asking:
        """Put one centre onto a sample drawn from the mixture (the paper's eq. 5)."""
        by_distance, quantile = split_mixture(alpha, quantile)
        row = None
        if by_distance and len(self.centers) > 1:
            asked = {"gone": removed, "power": self.start.power}
            distances = yield self._question("distances", **asked)
            self.n_iter += 1
            if (found := locate(in_order(distances), quantile)) is not None:
                block, rest = found
                drawn = yield self._question("draw", picks={block: rest}, **asked)
                row = drawn[block]
        if row is None:
            picks, _ = positions(self.survey, np.array([quantile]))
            drawn = yield Question("rows", picks=picks)
            (row,) = next(iter(drawn.values()))
        self.centers = self.centers.copy()
        self.centers[removed] = row

    def _snap(self) -> Generator[Question, Any, Level]:
        """Put every centre onto one of its samples, where all of them are up to rounding."""
        members = yield self._question("members")
        self.centers = self.centers.copy()
        for block in sorted(members, reverse=True):
            for j, row in members[block].items():
                self.centers[j] = row
        sums = yield self._question("sums")
        _, weights = means_of(sums, self.centers, self.ground.scales, self.ground.limb)
        return (yield from self._measure(weights))

    def _question(self, wanted: Wanted, **details: Any) -> Question:
        return Question(wanted, self.name, self.centers, self.parent, **details)


def in_order(answers: Mapping[int, Said]) -> list[Said]:
    """Return what blocks said in their order, which sums depend on."""
    return [answers[block] for block in sorted(answers)]


def locate(totals: list[float], quantile: float) -> tuple[int, float] | None:
    """Return the block whose share of the total holds a quantile, and what is left for it to draw.

    None if the total is zero.
    """
    drawable = [block for block, total in enumerate(totals) if total > 0.0]
    if not drawable:
        return None
    target = quantile * sum(totals)
    for block in drawable[:-1]:
        if totals[block] > target:
            return block, target
        target -= totals[block]
    return drawable[-1], target


def positions(
    survey: Survey, quantiles: FloatArray
) -> tuple[dict[int, NDArray[Any]], list[tuple[int, int]]]:
    """Find the rows at quantiles of the cumulated weight.

    Returns for each block concerned what is left of the targets within it, row numbers if weights
    are equal, else cumulated weights; and for each quantile, its block and its place in there.
    """
    cumulated = survey.cumulated
    weights = np.diff(cumulated, prepend=0.0)
    targets = quantiles * cumulated[-1]
    blocks = wheel_stops(cumulated, targets, np.flatnonzero(weights)[-1])
    rests = targets - (cumulated - weights)[blocks]
    if survey.equal_weights:
        # Equal weights count rows: less than a row is left by rounding only.
        rests = np.minimum(rests.astype(np.int64), survey.sizes[blocks] - 1)
    picks: dict[int, list[Any]] = {}
    order = []
    for block, rest in zip(blocks.tolist(), rests, strict=True):
        picks.setdefault(block, []).append(rest)
        order.append((block, len(picks[block]) - 1))
    return {block: np.array(rest) for block, rest in picks.items()}, order


log = logging.getLogger("evomeans")

# Bytes of a sample. Workers send it, and one of them puts it together.
LARGEST_SAMPLE = 2**26
# Refined together, so that what Dask takes for a task is shared: a divisor of the patience of both
# settings of the paper, so that a search rarely ends in the middle of a round.
BATCH = 25
# With more values than this, work exceeds by far what Dask takes for a task. Then small rounds are
# as fast, end sooner, and have better parents.
MANY_VALUES, SMALL_BATCH = 2**28, 5


@dataclass(eq=False)
class Trace:
    """The handle of a refined solution: its name, under which workers may still know it."""

    engine: str
    name: int


class DaskEngine(PlainKMeans):
    """K-means on blocks of samples that stay where Dask has them.

    Centres travel to the blocks and integer sums come back, once for every iteration of a whole
    batch. Results have the same bits for any number of workers and threads: they depend on the
    samples and on how these are divided into blocks.

    * ``X`` and ``sample_weight``: in the same chunks, of known sizes, with all columns in one.
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
        self._blocks = [
            (X, w)
            for X, w, summary in zip(samples, weights, summaries, strict=True)
            if summary.n_samples
        ]
        return combine(summaries, rows, self.X.chunks[0], weighted=sample_weight is not None)

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
        """Refuse a clustering if many samples and a whole cluster are lost; see frame.py."""
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

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        picks, order = positions(self.survey, quantiles)
        (found,) = self.ask([Question("rows", picks=picks)])
        return np.array([found[block][place] for block, place in order])

    def drawn(self, drawing: Drawing) -> tuple[NDArray[Any], FloatArray]:
        """Return rows that one pass over the blocks has drawn, and what each stands for."""
        total, ends = self.survey.total_weight, np.cumsum(self.survey.sizes)
        firsts = dict(enumerate((ends - self.survey.sizes).tolist()))
        centers = np.zeros((0, self.X.shape[1])) if drawing.centers is None else drawing.centers
        sampling = BlockSampling(drawing, total, firsts)
        (found,) = self.ask([Question("sample", centers=centers, sampling=sampling)])
        rows, own = (np.concatenate(parts) for parts in zip(*in_order(found), strict=True))
        return self.frame.decode(rows).astype(self.X.dtype), own

    def subsample(self, drawing: Drawing) -> CpuEngine:
        """Make an engine in this process, over rows that one pass over the blocks has drawn."""
        return CpuEngine(*self.drawn(drawing), n_jobs=self.n_jobs, frame=self.frame)

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

    def _remember(self, name: int) -> Trace:
        trace = Trace(self.ground.token, name)
        weakref.finalize(trace, self._forgotten.append, name)
        return trace

    def _name_of(self, handle: Any) -> int:
        known = isinstance(handle, Trace) and handle.engine == self.ground.token
        return handle.name if known else -1

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
