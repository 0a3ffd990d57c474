"""The Dask engine, and one of its refinements as a sequence of questions to the blocks."""

from __future__ import annotations

import itertools
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
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
    Survey,
    combine,
    lazy_distances,
    lazy_labels,
    row_chunks,
    summarize,
)
from evomeans.engines.dask.runners import ANYWHERE, Runner, current_runner
from evomeans.engines.dask.steps import (
    Ground,
    Question,
    Reply,
    Request,
    Wanted,
    merge_replies,
    visit_block,
)
from evomeans.engines.frame import (
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
Census = tuple[float, NDArray[np.int64], FloatArray]


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
            (block,), rests = positions(self.survey, np.array([quantile]))
            drawn = yield Question("rows", picks={block: rests})
            (row,) = drawn[block]
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


def positions(survey: Survey, quantiles: FloatArray) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Find the rows at quantiles of the cumulated weight.

    Returns for each quantile its block, and what is left of the target within that: the number of
    the row if weights are equal, else a cumulated weight.
    """
    cumulated = survey.cumulated
    weights = np.diff(cumulated, prepend=0.0)
    targets = quantiles * cumulated[-1]
    blocks = wheel_stops(cumulated, targets, np.flatnonzero(weights)[-1])
    rests = targets - (cumulated - weights)[blocks]
    if survey.equal_weights:
        # Equal weights count rows: less than a row is left by rounding only.
        rests = np.minimum(rests.astype(np.int64), survey.sizes[blocks] - 1)
    return blocks, rests


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
        low, high, _, _, self.n_samples = self.survey.extremes
        self.total_weight = self.survey.total_weight
        has_many = self.n_samples * X.shape[1] > MANY_VALUES
        self.batch = SMALL_BATCH if has_many else BATCH
        if frame is None:
            frame = Frame.spanning(low, high, self.n_samples)
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
        self._last_census: tuple[bytes, Census] | None = None
        self._close = weakref.finalize(self, self.runner.drop, self.ground.token)
        # When the interpreter ends, so does the client, and with it what it holds.
        self._close.atexit = False

    def _divide(self, sample_weight: Any) -> Survey:
        """Choose the blocks and look through each of them once."""
        chunks = self.X.chunks[0]
        rows = row_chunks(chunks, self.X.shape[1] * self.X.dtype.itemsize)
        samples = self.X.rechunk((rows, -1)).to_delayed().ravel()
        weights = [None] * len(rows)
        if sample_weight is not None:
            weights = sample_weight.rechunk((rows,)).to_delayed().ravel()
        self._blocks = list(zip(samples, weights, strict=True))
        summaries = self._of_blocks(summarize, self._blocks)
        survey = combine(summaries, rows, chunks, weighted=sample_weight is not None)
        pairs = zip(self._blocks, rows, strict=True)
        self._blocks = [block for block, count in pairs if count]
        return survey

    def _of_blocks(self, function: Callable[..., Any], blocks: Iterable[Any]) -> list[Any]:
        """Compute a function of what belongs to each block, which is lazy."""
        from dask import delayed

        call = delayed(function, pure=False)
        return self.runner.compute([call(*block) for block in blocks])

    def digests(self, digest: Callable[..., str]) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return digests of the samples and of the weights of every block, as arrays of bytes."""
        samples = self._of_blocks(digest, ([X] for X, _ in self._blocks))
        if self.survey.equal_weights:
            return np.array(samples, "S64"), None
        weights = self._of_blocks(digest, ([w] for _, w in self._blocks))
        return np.array(samples, "S64"), np.array(weights, "S64")

    def check_resolution(self, labels: Any, k: int) -> None:
        """Refuse a clustering if many samples and a whole cluster are lost; see frame.py."""
        survey, extremes = self.survey, self.survey.extremes
        if may_lose_samples(self.frame, survey.finest, *extremes[2:]):
            parts = labels.rechunk((tuple(survey.sizes.tolist()),)).to_delayed()
            blocks = [
                (X, w, own, k, self.frame) for (X, w), own in zip(self._blocks, parts, strict=True)
            ]
            counts = self._of_blocks(extremes.lost_and_resolved, blocks)
            extremes.refuse_lost_clusters(np.sum(counts, axis=0))

    def close(self) -> None:
        """Let the workers forget the samples."""
        self._close()

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        blocks, rests = positions(self.survey, quantiles)
        picks = {block: rests[blocks == block] for block in np.unique(blocks).tolist()}
        (found,) = self.ask([Question("rows", picks=picks)])
        rows = np.empty((len(quantiles), self.X.shape[1]))
        for block, own in found.items():
            rows[blocks == block] = own
        return rows

    def drawn(self, drawing: Drawing) -> tuple[NDArray[Any], FloatArray]:
        """Return rows that one pass over the blocks has drawn, and what each stands for."""
        firsts = (np.cumsum(self.survey.sizes) - self.survey.sizes).tolist()
        question = Question("sample", picks=dict(enumerate(firsts)), drawing=drawing)
        if drawing.centers is not None:
            question = replace(question, centers=drawing.centers)
        (found,) = self.ask([question])
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

    def _census(self, centers: FloatArray) -> Census:
        """Inertia, and how many samples are closest to each centre, and of which weight."""
        bits = centers.tobytes()
        if self._last_census is None or self._last_census[0] != bits:
            (found,) = self.ask([Question("census", centers=centers)])
            inertias, sizes, weights = zip(*in_order(found), strict=True)
            inertia = self.frame.inertia_in_data_units(sum(inertias))
            self._last_census = bits, (inertia, np.sum(sizes, axis=0), np.sum(weights, axis=0))
        return self._last_census[1]

    def assign(self, centers: FloatArray) -> tuple[Any, float]:
        """Labels of the closest centres, a lazy Dask array, and the inertia."""
        return lazy_labels(self.X, centers, self.frame), self._census(centers)[0]

    def cluster_sizes(self, centers: FloatArray) -> NDArray[np.int64]:
        """Count the samples that are closest to each centre."""
        return self._census(centers)[1]

    def weigh(self, centers: FloatArray) -> tuple[FloatArray, float]:
        """Total weight of the samples that are closest to each centre, and the inertia."""
        inertia, _, weights = self._census(centers)
        return weights, inertia

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
        """Have all blocks loaded anew if workers joined, which so get their share."""
        before, self._workers = self._workers, self.runner.workers()
        if not self._workers <= before:
            self.runner.drop(self.ground.token)
            self._homes.clear()

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
    low, high, _, heaviest, n_samples = survey.extremes
    bits = limb_bits(n_samples)
    ends = frame.encode(np.stack([low, high]))
    extents = np.maximum(ends[1], -ends[0]).astype(np.float64)
    scales = column_scales(extents, np.array([heaviest]), bits)
    return Ground(uuid.uuid4().hex, frame, scales, float(2**bits), survey.total_weight)
