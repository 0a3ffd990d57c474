"""The closest of given centres: labels, distances and inertia of samples that no engine holds.

Samples are taken block by block, by several threads; :mod:`~evomeans.engines.scoring` has the
formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from evomeans.engines.frame import Frame
from evomeans.engines.precision import OVERFLOW
from evomeans.engines.scoring import FAR, UNCLEAR, Block, Scorer, scorer_for
from evomeans.typing import FloatArray, Indices

# Samples that kernels label between two looks at those that remain unclear.
MOST = 32768

Answer = TypeVar("Answer")


def labels(X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1) -> NDArray[np.int32]:
    """Find the closest centre of every sample; the lowest index on ties.

    * ``X`` (n, d) or CSR matrix of float32 or float64: finite samples in data units. They may lie
      outside of the frame.
    * ``centers`` (k, d) of float64: in the frame.
    * ``frame``: without a shift if ``X`` is sparse.
    * ``n_threads``: the result does not depend on it.
    """
    result = np.empty(X.shape[0], np.int32)

    def find(scorer: Scorer, block: Block) -> None:
        result[block.places] = scorer.closest(block)

    def find_all(scorer: Scorer, places: slice) -> list[None]:
        if not scorer.is_compiled:
            return answers(X, find, scorer, places)
        scorer.label_clear(X[places], result[places])
        unclear = places.start + np.flatnonzero(result[places] == UNCLEAR)
        for first in range(0, len(unclear), scorer.block_size):
            answers(X, find, scorer, unclear[first : first + scorer.block_size])
        return []

    make_scorer = partial(scorer_for, X, centers, frame, X.dtype)
    for_blocks(X, make_scorer, n_threads, find_all, most=MOST)
    return result


def squares(
    X: Any, labels: NDArray[np.int32], centers: FloatArray, frame: Frame, n_threads: int = 1
) -> FloatArray:
    """Return the squared distances of all samples to the centres of their labels, in the frame.

    The other parameters are those of :func:`labels`. Everything is computed in float64.
    """
    result = np.empty(X.shape[0])

    def square(scorer: Scorer, block: Block) -> None:
        found = scorer.squares_to(block, labels[block.places])
        result[block.places] = np.ldexp(found, 2 * (frame.exponent - scorer.frame.exponent))

    make_scorer = partial(scorer_for, X, centers, frame, X.dtype)
    for_blocks(X, make_scorer, n_threads, partial(answers, X, square))
    return result


def distances(X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1) -> NDArray[Any]:
    """Return the distances of all samples to all centres, in data units and the dtype of ``X``.

    The parameters are those of :func:`labels`. Everything is computed in float64.
    """
    result = np.empty((X.shape[0], len(centers)), X.dtype)

    def measure(scorer: Scorer, block: Block) -> None:
        result[block.places] = scorer.distances(block)

    double = np.dtype(np.float64)
    make_scorer = partial(scorer_for, X, centers, frame, double, measuring=True)
    for_blocks(X, make_scorer, n_threads, partial(answers, X, measure))
    return result


def inertia(
    X: Any, sample_weight: FloatArray | None, centers: FloatArray, frame: Frame, n_threads: int = 1
) -> float:
    """Sum up the weighted squared distances to the closest centres, in data units.

    The other parameters are those of :func:`labels`.
    """

    def cost(scorer: Scorer, block: Block) -> float:
        squares = scorer.squares_to(block, scorer.closest(block))
        total = squares.sum() if sample_weight is None else sample_weight[block.places] @ squares
        return scorer.frame.inertia_in_data_units(float(total))

    try:
        make_scorer = partial(scorer_for, X, centers, frame, X.dtype)
        costs: list[float] = for_blocks(X, make_scorer, n_threads, partial(answers, X, cost))
        return math.fsum(costs)
    except OverflowError:
        raise ValueError(f"The squared distances of X are too large; {OVERFLOW}") from None


def for_blocks(
    X: Any,
    make_scorer: Callable[[], Scorer],
    n_threads: int,
    answer: Callable[[Scorer, slice], list[Answer]],
    most: int = 0,
) -> list[Answer]:
    """Answer a question about all samples, block by block; a block may have ``most`` samples."""
    n_samples, scorer = X.shape[0], make_scorer()
    if n_samples <= scorer.block_size:
        with one_blas_thread:
            return answer(scorer, slice(0, n_samples))
    size = max(scorer.block_size, most)
    # Every thread gets something to do.
    size = min(size, max(scorer.block_size, -(-n_samples // n_threads)))
    places = [slice(first, min(first + size, n_samples)) for first in range(0, n_samples, size)]
    n_threads = min(n_threads, len(places))

    def work(thread: int) -> list[Answer]:
        own = scorer if thread == 0 else make_scorer()
        own.is_compiled = True
        return [one for some in places[thread::n_threads] for one in answer(own, some)]

    if n_threads == 1:
        with one_blas_thread:
            return work(0)
    with one_blas_thread, ThreadPoolExecutor(n_threads) as pool:
        return [one for part in pool.map(work, range(n_threads)) for one in part]


class OneBlasThread:
    """While anybody is inside, matrix products use one thread each.

    Otherwise theirs and ours would wait for each other, and theirs for nothing once a product is
    done: OpenBLAS's threads stay busy for a tenth of a second.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = self._libraries.limit(limits=1)
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(*error)

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController().select(user_api="blas")


one_blas_thread = OneBlasThread()


def answers(
    X: Any, answer: Callable[[Scorer, Block], Answer], scorer: Scorer, places: slice | Indices
) -> list[Answer]:
    """Answer for a block; for samples far outside of the frame in another frame, and apart."""
    block = scorer.block(X[places], places)
    # Not the other way round: what has overflowed is not a number.
    is_near = block.squares <= FAR
    if is_near.all():
        return [answer(scorer, block)]
    indices = np.arange(X.shape[0])[places]
    near, far = indices[is_near], indices[~is_near]
    found = answers(X, answer, scorer.reaching(X[far]), far)
    return [*answers(X, answer, scorer, near), *found] if len(near) else found
