"""What runs on a worker: plain functions of a block and a request, by the kernels of the CPU.

A worker's cache stands between them and the work, and only there: with an empty one they return the
same bits. So Dask may run them anywhere, and again.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Samples, State
from evomeans.engines.cpu.room import Room
from evomeans.engines.cpu.samples import dense_rows, encode_samples, squared_norms
from evomeans.engines.dask.cache import (
    Standing,
    StandingKey,
    WorkerCache,
    cache_here,
    memory_for,
)
from evomeans.engines.dask.questions import (
    Ground,
    Question,
    Reply,
    Request,
    Wanted,
    merge_replies,
    no_answer,
)
from evomeans.engines.protocol import FloatArray
from evomeans.engines.rules import sits_on_centers

HERE = "here"
"""The address of this process where there are no workers."""


def ask_blocks(blocks: tuple[int, ...], request: Request, n_threads: int = 1) -> Reply:
    """Let blocks that are kept here answer a request; name those that are not here."""
    began = time.perf_counter()
    memory, here = cache_here(), address()
    memory.forget(request.ground.token, frozenset(request.forget))

    def ask(block: int) -> Reply:
        samples = memory.samples((request.ground.token, block))
        if samples is None:
            return Reply([no_answer(question) for question in request.questions], {}, (block,))
        return Reply(answer_all(samples, block, True, request, memory), {block: here})

    run = map if n_threads == 1 else threads(n_threads).map
    reply = merge_replies(list(run(ask, blocks)))
    return replace(reply, seconds=time.perf_counter() - began)


@cache
def threads(count: int) -> ThreadPoolExecutor:
    """Return threads of this worker that share a request."""
    return ThreadPoolExecutor(count, "evomeans")


def visit_block(
    X: NDArray[Any], sample_weight: NDArray[Any] | None, block: int, request: Request
) -> Reply:
    """Let a block that has just been loaded answer a request, and keep it if there is room."""
    began = time.perf_counter()
    memory = cache_here()
    token = request.ground.token
    memory.forget(token, frozenset(request.forget))
    samples = memory.samples((token, block))
    kept = in_order = True
    if samples is None:
        # To put neighbours together takes long, and pays only if it is done once.
        in_order = memory.has_room(token, memory_for(X, sample_weight is not None))
        samples = prepare(X, sample_weight, request.ground, in_order=in_order)
        kept = in_order and memory.keep_samples((token, block), samples)
    answers = answer_all(samples, block, in_order, request, memory)
    unkept = () if kept else (block,)
    seconds = time.perf_counter() - began
    return Reply(answers, {block: address()}, unkept=unkept, seconds=seconds)


def address() -> str:
    """Return where this runs."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return HERE


def prepare(
    X: NDArray[Any], sample_weight: NDArray[Any] | None, ground: Ground, *, in_order: bool
) -> Samples:
    """Bring the samples of a block into the form that kernels read."""
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    samples = encode_samples(np.asarray(X), weights, ground.frame, in_order=in_order)
    return samples._replace(scales=ground.scales, limb=ground.limb)


# ---- answers -------------------------------------------------------------------------------------


def answer_all(
    samples: Samples, block: int, in_order: bool, request: Request, memory: WorkerCache
) -> list[Any]:
    """Answer all questions for one block, in which neighbours stand together or not."""
    visit = _Visit(samples, block, in_order, request, memory)
    return [visit.answer(question) for question in request.questions]


class _Visit:
    """One block, while it answers the questions of a request."""

    def __init__(
        self,
        samples: Samples,
        block: int,
        in_order: bool,
        request: Request,
        memory: WorkerCache,
    ) -> None:
        self.samples = samples
        self.block = block
        self.in_order = in_order
        self.token, self.serial = request.ground.token, request.serial
        self.memory = memory
        self.n_samples, self.n_features = samples.rows.shape
        self._room: Room | None = None

    def answer(self, question: Question) -> Any:
        """Answer one question."""
        if not question.concerns(self.block):
            return no_answer(question)
        if question.wanted is Wanted.ROWS:
            return self._rows(question)
        room = self._room_for(len(question.centers))
        key = self._key(question.name)
        standing = self._standing(room, question)
        try:
            return self._about(room, standing, question)
        finally:
            if question.name >= 0:
                self.memory.give(key, standing, self.serial)

    def _key(self, name: int) -> StandingKey:
        return self.token, name, self.block, self.in_order

    def _room_for(self, k: int) -> Room:
        if self._room is None or self._room.k != k:
            self._room = Room(self.samples, k, self.n_features, 1)
        return self._room

    def _standing(self, room: Room, question: Question) -> Standing:
        """Bring labels and sums up to date with the centres in question."""
        known = self._known(question)
        if known is None:
            state = State.allocate(self.n_samples, room.k)
            room.step(state, question.centers, fresh=True, gone=question.gone)
        else:
            state = known.state
            room.take_over(known)
            if question.gone >= 0 or not np.array_equal(known.centers, question.centers):
                room.step(state, question.centers, fresh=False, gone=question.gone)
        return Standing(state, room.positions, room.sums)

    def _known(self, question: Question) -> Standing | None:
        known = self.memory.take(self._key(question.name))
        if known is not None:
            return known
        # Taken out while it is copied: a task that Dask gave up may still be running.
        key = self._key(question.parent)
        parent = self.memory.take(key) if question.parent >= 0 else None
        if parent is None:
            return None
        self.memory.give(key, parent, self.serial)
        return parent.copy() if len(parent.centers) == len(question.centers) else None

    def _about(self, room: Room, standing: Standing, question: Question) -> Any:
        match question.wanted:
            case Wanted.SUMS:
                return standing.sums
            case Wanted.DISTANCES:
                return {self.block: room.measure(standing.state, question.power)}
            case Wanted.DRAW:
                room.measure(standing.state, question.power)
                assert question.picks is not None
                place = room.draw(question.picks[self.block])
                return {self.block: self.samples.rows[place].astype(np.float64)}
            case Wanted.CENSUS:
                sizes = np.bincount(self._labels(standing.state), minlength=room.k)
                return {self.block: (room.measure(standing.state, 2), sizes)}
            case Wanted.ON_CENTERS:
                room.measure(standing.state, 2)
                return {self.block: self._sits_on_centers(room)}
            case _:
                return {self.block: self._first_members(standing.state)}

    def _rows(self, question: Question) -> dict[int, FloatArray]:
        """Rows by their number, or by the cumulated weight that they have to exceed."""
        assert question.picks is not None
        wanted = np.asarray(question.picks[self.block])
        if wanted.dtype.kind == "f":
            weights = self._weights()
            numbers = np.searchsorted(np.cumsum(weights), wanted, side="right")
            wanted = np.minimum(numbers, np.flatnonzero(weights)[-1])
        return {self.block: dense_rows(self.samples, wanted, self.n_features)}

    def _weights(self) -> FloatArray:
        """Weights in the user's order."""
        weights = self.samples.weights
        return weights[self.samples.places] if len(weights) else np.ones(self.n_samples)

    def _labels(self, state: State) -> NDArray[Any]:
        """Labels in the user's order."""
        labels: NDArray[Any] = state.labels.ravel()[self.samples.places]
        return labels

    def _sits_on_centers(self, room: Room) -> bool:
        squares, norms = room.scratch.nearby, squared_norms(self.samples)
        weights = self.samples.weights
        if len(weights):
            counted = np.flatnonzero(weights)
            squares, norms = squares[counted] / weights[counted], norms[counted]
        return sits_on_centers(squares, norms)

    def _first_members(self, state: State) -> dict[int, FloatArray]:
        """Return the first sample that counts of every cluster that has one."""
        counted = np.flatnonzero(self._weights())
        labels, members = np.unique(self._labels(state)[counted], return_index=True)
        rows = dense_rows(self.samples, counted[members], self.n_features)
        return dict(zip(labels.tolist(), rows, strict=True))
