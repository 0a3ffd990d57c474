"""Questions about solutions, and how the blocks of the samples answer them.

What runs on a worker: plain functions of a block and a request, by the kernels of the CPU.

A worker's cache stands between them and the work, and only there: with an empty one they return the
same bits. So Dask may run them anywhere, and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Samples, State
from evomeans.engines.cpu.samples import dense_rows, encode_samples, sit_on_centers
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.dask.cache import CACHE, Standing, StandingKey, memory_for
from evomeans.engines.frame import Frame
from evomeans.engines.sampling import wheel_stops
from evomeans.typing import FloatArray

Wanted = Literal["sums", "distances", "draw", "rows", "sample", "census", "on_centers", "members"]
"""What a block is to answer. Sums are added up over blocks, all else is kept apart.

sums: (k, 2, d + 1) integers, the sums of the clusters. distances: the weighted sum of the distances
to the own centres, to a power. draw: the sample at which that sum exceeds a limit. rows: samples at
given positions. sample: samples that are drawn as :mod:`~evomeans.engines.sampling` says, and their
weights. census: the inertia, and how many samples each centre has, and of which weight. on_centers:
whether all samples sit on their centres. members: the first sample of each cluster.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What the blocks are asked about one set of centres, shape (k, d)."""

    wanted: Wanted
    name: int = -1
    """Of the solution: blocks find the labels and bounds again that they had for it."""
    centers: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    parent: int = -1
    """The name of a solution whose centres are mostly the same; −1 for none."""
    gone: int = -1
    """A centre that is nowhere at present; −1 for none."""
    power: int = 2
    """Of distances, 1 or 2."""
    picks: Any = None
    """A mapping of the blocks concerned, by default all: to the targets of draws and rows, and for
    samples to the number of the first row."""
    drawing: Any = None
    """How samples are drawn, a :class:`~evomeans.engines.sampling.Drawing`."""

    def concerns(self, block: int) -> bool:
        """Whether a block has anything to answer."""
        return self.picks is None or block in self.picks


@dataclass(frozen=True, slots=True)
class Ground:
    """What all blocks have in common."""

    token: str
    """Names the data set."""
    frame: Frame
    scales: FloatArray
    limb: float
    """Both of the sums of all samples together, see :mod:`~evomeans.engines.cpu.sums`."""
    total_weight: float


@dataclass(frozen=True, slots=True)
class Request:
    """Questions that are asked together."""

    ground: Ground
    questions: Sequence[Question]
    serial: int
    """Counts the requests of a search."""
    forget: frozenset[int]
    """Names of solutions that no later question is about."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one or several blocks answer."""

    answers: list[Any]
    """For each question an array to be added up, or a dict of block to value. Empty if no block
    answers."""
    homes: dict[int, tuple[str, bool]]
    """Blocks that answer, the worker of each, and whether it keeps the block."""


def merge_replies(replies: Iterable[Reply]) -> Reply:
    """Put replies together. Sums are integers: their total does not depend on any order."""
    replies = [reply for reply in replies if reply.homes]
    answers = zip(*(reply.answers for reply in replies), strict=True)
    homes = {block: home for reply in replies for block, home in reply.homes.items()}
    return Reply([reduce(_merge, those) for those in answers], homes)


def _merge(one: Any, two: Any) -> Any:
    return one | two if isinstance(one, dict) else one + two


HERE = "here"
"""The address of this process where there are no workers."""


def ask_blocks(blocks: Sequence[int], request: Request) -> Reply:
    """Let blocks answer a request, as far as they are kept here."""
    token = request.ground.token
    CACHE.forget(token, request.forget)
    here, n_threads = place_here()

    def ask(block: int) -> Reply:
        samples = CACHE.samples((token, block))
        if samples is None:
            return Reply([], {})
        return Reply(_Visit(samples, block, True, request).answers(), {block: (here, True)})

    if n_threads == 1:
        return merge_replies(map(ask, blocks))
    with ThreadPoolExecutor(n_threads, "evomeans") as pool:
        return merge_replies(pool.map(ask, blocks))


def visit_block(
    X: NDArray[Any], sample_weight: NDArray[Any] | None, block: int, request: Request
) -> Reply:
    """Let a block that has just been loaded answer a request, and keep it if there is room."""
    ground, token = request.ground, request.ground.token
    CACHE.forget(token, request.forget)
    samples = CACHE.samples((token, block))
    kept = in_order = True
    if samples is None:
        # To put neighbours together takes long, and is worthwhile only if it is done once.
        in_order = CACHE.has_room(token, memory_for(X, sample_weight is not None))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        samples = encode_samples(np.asarray(X), weights, ground.frame, in_order=in_order)
        # The sums of all blocks together have these.
        samples = samples._replace(scales=ground.scales, limb=ground.limb)
        kept = in_order and CACHE.keep_samples((token, block), samples)
    answers = _Visit(samples, block, in_order, request).answers()
    return Reply(answers, {block: (place_here()[0], kept)})


def place_here() -> tuple[str, int]:
    """Return the address of this worker, or HERE if there is none, and its number of threads."""
    import dask
    from dask.local import get_sync
    from dask.system import CPU_COUNT
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        if dask.base.get_scheduler() is get_sync:
            return HERE, 1
        pool = dask.config.get("pool", None)
        n_threads = getattr(pool, "_max_workers", None) or dask.config.get("num_workers", None)
        return HERE, int(n_threads or CPU_COUNT)
    return str(worker.address), int(worker.state.nthreads)


@dataclass
class _Visit:
    """One block, in which neighbours stand together or not, while it answers a request."""

    samples: Samples
    block: int
    in_order: bool
    request: Request

    def __post_init__(self) -> None:
        self.n_samples, self.n_features = self.samples.rows.shape
        self._workspace: Workspace | None = None

    def answers(self) -> list[Any]:
        """Answer all questions."""
        return [self._answer(question) for question in self.request.questions]

    def _answer(self, question: Question) -> Any:
        if not question.concerns(self.block):
            return {}
        if question.wanted == "rows":
            return {self.block: self._rows(question)}
        if question.wanted == "sample" and not len(question.centers):
            return {self.block: self._sample(question, None)}
        workspace = self._workspace_for(len(question.centers))
        standing = self._standing(workspace, question)
        try:
            if question.wanted == "sums":
                return standing.sums
            return {self.block: self._about(workspace, standing.state, question)}
        finally:
            if question.name >= 0:
                CACHE.give(self._key(question.name), standing, self.request.serial)

    def _key(self, name: int) -> StandingKey:
        return self.request.ground.token, name, self.block, self.in_order

    def _workspace_for(self, k: int) -> Workspace:
        if self._workspace is None or self._workspace.k != k:
            self._workspace = Workspace(self.samples, k, self.n_features, 1)
        return self._workspace

    def _standing(self, workspace: Workspace, question: Question) -> Standing:
        """Bring labels and sums up to date with the centres in question."""
        known = self._known(question)
        if known is None:
            state = State.allocate(self.n_samples, workspace.k)
            workspace.step(state, question.centers, fresh=True, gone=question.gone)
        else:
            state = known.state
            workspace.take_over(known.centers, known.sums)
            if question.gone >= 0 or not np.array_equal(known.centers, question.centers):
                workspace.step(state, question.centers, fresh=False, gone=question.gone)
        return Standing(state, workspace.positions, workspace.sums)

    def _known(self, question: Question) -> Standing | None:
        known = CACHE.take(self._key(question.name))
        if known is not None:
            return known
        # Taken out while it is copied: a task that Dask gave up may still be running.
        key = self._key(question.parent)
        parent = CACHE.take(key) if question.parent >= 0 else None
        if parent is None:
            return None
        copy = parent.copy() if len(parent.centers) == len(question.centers) else None
        CACHE.give(key, parent, self.request.serial)
        return copy

    def _about(self, workspace: Workspace, state: State, question: Question) -> Any:
        match question.wanted:
            case "distances":
                return workspace.measure(state, question.power)
            case "draw":
                workspace.measure(state, question.power)
                place = workspace.draw(question.picks[self.block])
                return self.samples.rows[place].astype(np.float64)
            case "census":
                labels = workspace.labels(state)
                sizes = np.bincount(labels, minlength=workspace.k)
                weights = np.bincount(labels, self._weights(), workspace.k)
                return workspace.measure(state, 2), sizes, weights
            case "sample":
                workspace.measure(state, 2)
                return self._sample(question, workspace.scratch.nearby[self.samples.places])
            case "on_centers":
                workspace.measure(state, 2)
                return sit_on_centers(self.samples, workspace.scratch.nearby)
            case "members":
                return self._first_members(workspace.labels(state))
            case _:
                raise NotImplementedError(f"A block has no answer to {question.wanted!r}.")

    def _rows(self, question: Question) -> FloatArray:
        """Rows by their number, or by the cumulated weight that they have to exceed."""
        wanted = np.asarray(question.picks[self.block])
        if wanted.dtype.kind == "f":
            weights = self._weights()
            wanted = wheel_stops(np.cumsum(weights), wanted, np.flatnonzero(weights)[-1])
        return dense_rows(self.samples, wanted, self.n_features)

    def _sample(self, question: Question, costs: FloatArray | None) -> tuple[Any, Any]:
        """Rows that are drawn, and their weights."""
        own = self._weights() if len(self.samples.weights) else None
        first, total = question.picks[self.block], self.request.ground.total_weight
        rows, weights = question.drawing.choose(costs, own, total, self.n_samples, first)
        # They were of this type before they were encoded, which loses no digit.
        found = dense_rows(self.samples, rows, self.n_features)
        return found.astype(self.samples.rows.dtype), weights

    def _weights(self) -> FloatArray:
        """Weights in the user's order."""
        weights = self.samples.weights
        return weights[self.samples.places] if len(weights) else np.ones(self.n_samples)

    def _first_members(self, labels: NDArray[np.int32]) -> dict[int, FloatArray]:
        """Return the first sample that counts of every cluster that has one."""
        counted = np.flatnonzero(self._weights())
        present, members = np.unique(labels[counted], return_index=True)
        rows = dense_rows(self.samples, counted[members], self.n_features)
        return dict(zip(present.tolist(), rows, strict=True))
