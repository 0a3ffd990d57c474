"""The Dask engine."""

from __future__ import annotations

import itertools
import logging
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.dask.answers import lazy_distances, lazy_labels
from evomeans.engines.dask.blocks import (
    LARGE_CHUNK,
    Survey,
    check_counts,
    combine,
    row_chunks,
    summarize,
)
from evomeans.engines.dask.course import BlockCourse, in_order, positions
from evomeans.engines.dask.placement import ANYWHERE, by_worker, moves
from evomeans.engines.dask.questions import (
    Ground,
    Question,
    Reply,
    Request,
    Wanted,
    merge_replies,
)
from evomeans.engines.dask.runners import Pending, Runner, current_runner
from evomeans.engines.dask.steps import visit_block
from evomeans.engines.fixed_point import column_scales, limb_bits
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import (
    FloatArray,
    PlainKMeans,
    Refinement,
    Start,
    require_abilities,
)
from evomeans.engines.resolution import refuse_unresolved, search_if_needed

log = logging.getLogger("evomeans")

# Refined together, so that what Dask takes for a task is shared: a divisor of the patience of both
# settings of the paper, so that a search rarely ends in the middle of a round.
BATCH = 25
# With fewer solutions under way than this, it is better to ask for all of them at once.
WORTH_A_LANE = 8


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

    Parameters
    ----------
    X : dask array of shape (n, d), float32 or float64
        Samples in data units, all columns in one chunk, chunk sizes known.
    sample_weight : dask array of shape (n,), optional
        In the same chunks. None for equal weights.
    frame : Frame, optional
        The frame to work in, by default the one around ``X``.
    runner : Runner, optional
        Where tasks run; by default the current client, else Dask's local scheduler.

    Raises
    ------
    ValueError
        If a value is not finite or a weight negative; the text names block and row.
    """

    batch = BATCH

    def __init__(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        frame: Frame | None = None,
        runner: Runner | None = None,
    ) -> None:
        self.runner = current_runner() if runner is None else runner
        self.X = X
        self.survey = self._divide(sample_weight)
        self.n_samples = self.survey.n_samples
        self.total_weight = self.survey.total_weight
        self.runner.sizes = self.survey.sizes.tolist()
        if frame is None:
            frame = Frame.spanning(self.survey.low, self.survey.high, self.n_samples)
        self.frame = frame
        self.ground = ground_of(self.survey, frame)
        # Where blocks answered last, and which of them were not kept there. They are best loaded
        # there again, for labels may have been kept.
        self._homes: dict[int, str] = {}
        self._unkept: set[int] = set()
        self._places: list[str] = []
        self._names = itertools.count()
        self._serials = itertools.count()
        self._forgotten: deque[int] = deque()
        self._census: tuple[bytes, NDArray[np.int64]] | None = None
        self.requests = 0
        self.work_seconds = 0.0
        self._close = weakref.finalize(self, self.runner.drop, self.ground.token)
        # When the interpreter ends, so does the client, and there is nobody to tell.
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

    def check_resolution(self, n_clusters: int) -> None:
        """Refuse samples of which some centres would not be the means; see engines/resolution."""
        from dask import delayed

        survey = self.survey
        look = search_if_needed(
            self.frame,
            survey.low,
            survey.high,
            survey.finest,
            survey.lightest,
            survey.heaviest,
            self.n_samples,
        )
        if look is not None:
            look = delayed(look, pure=False)
            tasks = [look(X, weights, n_clusters) for X, weights in self._blocks]
            refuse_unresolved(self.runner.compute(tasks), n_clusters)

    def close(self) -> None:
        """Let the workers forget the samples."""
        self._close()

    # ---- the verbs of the protocol ---------------------------------------------------------------

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        picks, order = positions(self.survey, quantiles)
        (found,) = self._ask([Question(Wanted.ROWS, picks=picks)])
        return np.array([found[block][place] for block, place in order])

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """K-means from all starts side by side."""
        require_abilities(starts, self.abilities, "Dask")
        self._settle()
        names = [next(self._names) for _ in starts]
        courses = [
            BlockCourse(start, name, self._name_of(start.parent), self.ground, self.survey).run()
            for start, name in zip(starts, names, strict=True)
        ]
        # Blocks that are loaded for every request should not be loaded twice as often.
        all_kept = len(self._homes) == len(self._blocks) and not self._unkept
        n_lanes = self.runner.lanes if all_kept else 1
        refined: dict[int, Refinement] = {}
        lanes = [
            Lane(self, dict(itertools.islice(enumerate(courses), i, None, n_lanes)), refined)
            for i in range(n_lanes)
        ]
        while lanes:
            lane, *others = lanes
            if others and sum(map(len, lanes)) < WORTH_A_LANE:
                lane.join(others.pop())
            lanes = [*others, lane] if lane.advance() else others
        return [replace(refined[i], handle=self._remember(name)) for i, name in enumerate(names)]

    def assign(self, centers: FloatArray) -> tuple[Any, float]:
        """Labels of the closest centres, a lazy Dask array, and the inertia."""
        (census,) = self._ask([Question(Wanted.CENSUS, centers=centers)])
        sizes = np.sum([sizes for _, sizes in census.values()], axis=0)
        self._census = centers.tobytes(), sizes
        inertia = sum(in_order({block: inertia for block, (inertia, _) in census.items()}))
        labels = lazy_labels(self.X, centers, self.frame)
        return labels, self.frame.inertia_in_data_units(inertia)

    def cluster_sizes(self, centers: FloatArray) -> NDArray[np.int64]:
        """Count the samples that are closest to each centre."""
        if self._census is None or self._census[0] != centers.tobytes():
            self.assign(centers)
        assert self._census is not None
        return self._census[1]

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
        """Take notice of workers that came or went; send them blocks from those that have most."""
        self._places = self.runner.places()
        present = set(self._places)
        self._homes = {block: home for block, home in self._homes.items() if home in present}
        self._homes |= moves(self._homes, self.runner.sizes, self._places)

    def _ask(self, questions: Sequence[Question]) -> list[Any]:
        """Ask all blocks concerned, and wait for the answers."""
        return self.end(self.begin(questions))

    def begin(self, questions: Sequence[Question]) -> Conversation:
        """Send questions to all blocks concerned."""
        forget = tuple(self._forgotten.popleft() for _ in range(len(self._forgotten)))
        request = Request(self.ground, tuple(questions), next(self._serials), forget)
        self.requests += 1
        concerned = [
            block
            for block in range(len(self._blocks))
            if any(question.concerns(block) for question in questions)
        ]
        kept = {
            block: self._homes[block]
            for block in concerned
            if block in self._homes and block not in self._unkept
        }
        loaded = self._visits(request, [block for block in concerned if block not in kept])
        pending = self.runner.begin(request, by_worker(kept, self._places), loaded)
        return Conversation(request, pending)

    def end(self, conversation: Conversation) -> list[Any]:
        """Wait for the answers; load blocks that were not where they should have been."""
        replies = conversation.pending.result()
        while missing := [block for reply in replies for block in reply.missing]:
            self._learn(replies)
            told = replace(merge_replies(replies), missing=())
            wanted = self._visits(conversation.request, missing)
            pending = self.runner.begin(conversation.request, [], wanted)
            replies = [told, *pending.result()]
        self._learn(replies)
        reply = merge_replies(replies)
        self.work_seconds += reply.seconds
        return reply.answers

    def _visits(self, request: Request, blocks: Sequence[int]) -> dict[str, list[Any]]:
        """Lazy replies of blocks that have to be loaded, by the worker that is to do so."""
        from dask import delayed

        visits: dict[str, list[Any]] = {}
        if blocks:
            # Delayed once: it is not to be looked through for every block.
            carried = delayed(request, traverse=False)
            visit = delayed(visit_block, pure=False)
        for block in blocks:
            lazy = visit(*self._blocks[block], block, carried)
            visits.setdefault(self._homes.get(block, ANYWHERE), []).append(lazy)
        return visits

    def _learn(self, replies: Sequence[Reply]) -> None:
        """Remember where blocks are."""
        for reply in replies:
            self._homes |= reply.homes
            self._unkept -= set(reply.homes)
            self._unkept |= set(reply.unkept)


class Conversation(NamedTuple):
    """A request and the replies to it that are under way."""

    request: Request
    pending: Pending


class Lane:
    """Courses that ask together: each step sends one request for all that are not at their end.

    Parameters
    ----------
    engine : DaskEngine
    courses : dict of int to generator
        By their number.
    refined : dict of int to Refinement, out
        Where the results go.
    """

    def __init__(
        self,
        engine: DaskEngine,
        courses: dict[int, Generator[Question, Any, Refinement]],
        refined: dict[int, Refinement],
    ) -> None:
        self.engine = engine
        self.refined = refined
        self._courses = courses
        self._asking = {number: next(course) for number, course in courses.items()}
        self._conversation: Conversation | None = None

    def __len__(self) -> int:
        return len(self._asking)

    def advance(self) -> bool:
        """Take what came back, if anything was sent, and send the next; return whether it was."""
        self._listen()
        if self._asking:
            self._conversation = self.engine.begin(list(self._asking.values()))
        return bool(self._asking)

    def join(self, other: Lane) -> None:
        """Take the courses of another lane over."""
        self._listen()
        other._listen()
        self._courses |= other._courses
        self._asking |= other._asking

    def _listen(self) -> None:
        if self._conversation is None:
            return
        conversation, self._conversation = self._conversation, None
        answers = self.engine.end(conversation)
        for number, answer in zip(list(self._asking), answers, strict=True):
            try:
                self._asking[number] = self._courses[number].send(answer)
            except StopIteration as end:
                self.refined[number] = end.value
                del self._asking[number]


def ground_of(survey: Survey, frame: Frame) -> Ground:
    """Return what blocks need to know of each other."""
    bits = limb_bits(survey.n_samples)
    ends = frame.encode(np.stack([survey.low, survey.high]))
    extents = np.maximum(ends[1], -ends[0]).astype(np.float64)
    heaviest = np.array([] if survey.equal_weights else [survey.heaviest])
    scales = column_scales(extents, heaviest, bits)
    return Ground(uuid.uuid4().hex, frame, scales, float(2**bits))
