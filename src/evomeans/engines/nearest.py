"""The closest of given centres: labels, distances and inertia of samples that no engine holds.

With x and c relative to a point in the middle of the centres, ‖x − c‖² = ‖x‖² + (‖c‖² − 2x·c). The
terms in brackets, the *scores*, are one matrix product for a block of samples. Where only one
centre has a score that is, within a bound of its error, the lowest, it is the closest. Elsewhere
the direct formula decides, by the function of the CPU engine. So a label depends neither on the
other samples nor on the number of threads, and it equals the engine's.

Samples of one block need NumPy only, unless there are ties. For more, small kernels save time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import wait
from copy import copy
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evomeans.engines.frame import OVERFLOW, Frame, is_sparse, reaching
from evomeans.engines.workers import threads_for
from evomeans.kernels.blas import one_blas_thread
from evomeans.typing import FloatArray, Indices

# Scores of a block of samples, few enough for the cache, and samples of a block. The interpreter
# spends a tenth of a millisecond on each block, for one thread at a time. So blocks have at least
# this many products for each thread, where that changes no result.
SCORES = 2**18
FEWEST, MOST = 512, 8192
PRODUCTS_OF_A_THREAD = 2**22
# Up to 6 features a kernel is faster than matrix products, which take 1.5 to 1.9 times as long for
# 8 centres in 2 features. It labels this many samples between two looks at the unclear ones.
NARROW, MOST_LABELLED = 6, 32768
# Of more centres than this, some tell the middle.
MOST_IN_THE_MIDDLE = 128
# Samples farther from the middle than this, squared and in the frame, get a frame of their own.
FAR = 1e12
# Squares below this may have lost digits to underflow, or all of them.
UNDERFLOW = 1e-36
# Below this share of ‖x‖², ‖x − c‖² has lost too many digits, and the direct form takes over.
CANCELLED = 1e-2
# The label of a sample whose scores cannot decide; and samples that kernels compare at a time.
UNCLEAR, TOGETHER = -1, 256
# Numbers of sparse rows that are made dense at a time.
DENSE = 2**20


Answer = TypeVar("Answer")


class Block(NamedTuple):
    """A few samples.

    * ``places``: the slice or indices of ``X`` that they are.
    * ``samples`` (m, d): array in data units, or CSR matrix in the frame.
    * ``offsets`` (m, d): the same in the frame, relative to the middle.
    * ``squares`` (m,): squared norms of the offsets.
    """

    places: slice | Indices
    samples: Any
    offsets: Any
    squares: NDArray[Any]


def block_size(n_clusters: int, n_features: int) -> int:
    """Return how many samples are compared with the centres at a time."""
    return int(np.clip(SCORES // max(n_clusters, n_features), FEWEST, MOST))


class Scorer:
    """Compares blocks of dense samples with the centres.

    * ``centers`` (k, d) of float64: in the frame.
    * ``precision``: in which scores are computed.
    * ``is_narrow``: whether a kernel does the work of matrix products.
    * ``is_compiled``: whether kernels are worth their compilation. They give the same labels as
      NumPy.
    """

    is_compiled = False
    most_narrow = NARROW

    def __init__(self, centers: FloatArray, frame: Frame, precision: Any) -> None:
        self.centers = centers
        self.frame = frame
        self.precision = np.dtype(precision)
        self.is_narrow = centers.shape[1] <= self.most_narrow
        self.block_size = block_size(*centers.shape)
        self.middle = self._middle().astype(precision)
        offsets = centers - self.middle
        levels = np.einsum("ij,ij->i", offsets, offsets)
        points = np.multiply(offsets, -2.0, out=offsets).astype(precision)
        # Matrix products take them as they are; to transpose thousands takes longer than these.
        self.points = np.ascontiguousarray(points.T) if self.is_read_by_row else points.T
        self.levels = levels.astype(precision)
        # Twice the error of a score, and as much again for the direct formula, is this share of
        # (‖x‖ + ‖c‖)² where two centres are as long. It is a half of that for each of them, and at
        # most the whole of ‖x‖² + ‖c‖².
        self.roundoff = 2 * (centers.shape[1] + 8) * float(np.finfo(self.precision).eps)
        self._doubts = (self.roundoff * levels).astype(precision)
        self._lowered = (levels - self.roundoff * levels).astype(precision)
        self._memory: dict[str, NDArray[Any]] = {}

    @property
    def is_read_by_row(self) -> bool:
        """Whether kernels, or sparse products, read the points feature by feature."""
        return bool(self.is_narrow)

    def _middle(self) -> FloatArray:
        # A few centres far away do not move a median, and some tell as much as thousands.
        step = -(-len(self.centers) // MOST_IN_THE_MIDDLE)
        # Features that lie side by side are much faster to sort.
        return np.median(np.ascontiguousarray(self.centers[::step].T), axis=1)

    def _room(self, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return memory that every block uses again; mapping fresh memory takes long."""
        size = math.prod(shape)
        if name not in self._memory or self._memory[name].size < size:
            self._memory[name] = np.empty(size, self.precision)
        return self._memory[name][:size].reshape(shape)

    def twin(self) -> Scorer:
        """Return a scorer for another thread, with working memory of its own."""
        twin = copy(self)
        twin._memory = {}
        return twin

    def reaching(self, X: Any) -> Scorer:
        """Return a scorer in a frame that is large enough for these samples."""
        frame = reaching(self.frame, *self._ends(X))
        centers = np.ldexp(self.centers, frame.exponent - self.frame.exponent)
        return type(self)(centers, frame, self.precision)

    def _ends(self, X: Any) -> tuple[Any, Any]:
        return X.min(axis=0), X.max(axis=0)

    def block(self, X: Any, places: slice | Indices) -> Block:
        """Bring a few samples into the frame."""
        offsets = self._room("offsets", X.shape)
        # What overflows is far outside, and is then given another frame.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_compiled:
                from evomeans.engines.cpu.predict import set_offsets

                X = as_kernels_read(X)
                squares = np.empty(len(X), self.precision)
                set_offsets(X, *self.frame.factors(X.dtype), self.middle, offsets, squares)
            else:
                np.subtract(self.frame.encode(X), self.middle, out=offsets)
                squares = np.einsum("ij,ij->i", offsets, offsets)
        return Block(places, X, offsets, squares)

    def _rows(self, block: Block, i: Indices) -> Any:
        """Return some samples of a block in the frame."""
        return self.frame.encode(block.samples[i])

    def label_narrow(self, X: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Set the closest centres of samples with few features, or UNCLEAR."""
        from evomeans.engines.cpu.predict import label_narrow

        centers = self.middle, self.points, self._lowered, self._doubts, self.roundoff
        columns = self._room("columns", (X.shape[1] + 1, TOGETHER))
        memory = columns[:-1], columns[-1], self._room_by_center(TOGETHER), self._lanes()
        samples = as_kernels_read(X), *self.frame.factors(X.dtype)
        arguments: list[Any] = [*samples, *centers, *memory, labels]
        label_narrow(*arguments)

    def _lanes(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return working memory of kernels, for each of the samples that they compare at a time."""
        one, two, three, four = self._room("lanes", (4, TOGETHER))
        return one, two, three, four

    def _products(self, block: Block) -> NDArray[Any]:
        """Return −2x·c of all samples and centres, an (m, k) array."""
        scores = self._room("scores", (len(block.squares), len(self.centers)))
        return np.matmul(block.offsets, self.points, out=scores)

    def _products_by_center(self, block: Block) -> NDArray[Any]:
        """Return the same as a (k, ≥ m) array: kernels look at TOGETHER samples at a time."""
        products = self._room_by_center(len(block.squares))
        np.matmul(self.points.T, block.offsets.T, out=products[:, : len(block.squares)])
        return products

    def _room_by_center(self, n_samples: int) -> NDArray[Any]:
        """Return memory for products; there are some more columns than samples."""
        return self._room("products", (len(self.centers), -(-n_samples // TOGETHER) * TOGETHER))

    def closest(self, block: Block) -> NDArray[np.int32]:
        """Return the closest centre of each sample; the lowest index on ties."""
        products, n_samples = self._products_by_center(block), len(block.squares)
        labels = np.empty(n_samples, np.int32)
        if self.is_compiled:
            from evomeans.engines.cpu.predict import label_clear

            given = products, self._lowered, self._doubts, block.squares, self.roundoff
            label_clear(*given, self._lanes(), labels)
        else:
            scores = products[:, :n_samples] + self._lowered[:, None]
            highest = (scores + 2 * self._doubts[:, None]).min(axis=0)
            close = scores <= highest + (2 * self.roundoff * block.squares + UNDERFLOW)
            labels[:] = np.where(close.sum(axis=0) == 1, close.argmax(axis=0), UNCLEAR)
        unclear = np.flatnonzero(labels == UNCLEAR)
        if len(unclear):
            # Imported here: it loads Numba.
            from evomeans.engines.cpu.predict import choose

            rows, chosen = self._kernel_rows(self._rows(block, unclear)), labels[unclear]
            scores = np.ascontiguousarray(products[:, unclear].T + self._lowered)
            given = rows, scores, self._doubts, block.squares[unclear], self.roundoff
            choose(*given, self.centers, chosen)
            labels[unclear] = chosen
        return labels

    def _kernel_rows(self, rows: Any) -> Any:
        return rows

    def distances(self, block: Block) -> FloatArray:
        """Return the distances to all centres in data units, an (m, k) array."""
        squares = self._products(block)
        squares += self.levels
        squares += block.squares[:, None]
        i, j = np.divmod(
            np.flatnonzero(squares < CANCELLED * block.squares[:, None]), len(self.centers)
        )
        squares[i, j] = self.squared_distances(block, i, j)
        np.sqrt(squares, out=squares)
        squares *= math.ldexp(1.0, -self.frame.exponent)
        return squares

    def squares_to(self, block: Block, labels: NDArray[np.int32]) -> FloatArray:
        """Return the squared distances of all samples of a block to their centres."""
        if is_sparse(block.samples) or not self.is_compiled:
            return self.squared_distances(block, np.arange(len(labels)), labels)
        from evomeans.engines.cpu.predict import set_squared_distances

        X, squares = block.samples, np.empty(len(labels))
        set_squared_distances(X, *self.frame.factors(X.dtype), self.centers, labels, squares)
        return squares

    def squared_distances(self, block: Block, i: Indices, j: NDArray[Any]) -> FloatArray:
        """Return ‖rows[i] − centers[j]‖² for pairs, by the direct formula in float64."""
        difference = self._rows(block, i) - self.centers[j]
        squares: FloatArray = np.einsum("ij,ij->i", difference, difference)
        return squares


class Writable:
    """What NumPy asks of an array: the values of another one, as if they might be written to."""

    def __init__(self, owner: NDArray[Any]) -> None:
        interface = owner.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        # Lives as long as this.
        self.owner = owner


def as_kernels_read(X: NDArray[Any]) -> NDArray[Any]:
    """Return samples in C order, as if they might be written to: others would be another type.

    Memory maps and arrays of other processes are often read-only. Kernels never write to samples.
    """
    X = np.ascontiguousarray(X)
    return X if X.flags.writeable else np.asarray(Writable(X))


class SparseScorer(Scorer):
    """Compares blocks of CSR matrices with the centres; the frame has no shift."""

    most_narrow = 0
    is_read_by_row = True

    def _middle(self) -> FloatArray:
        return np.zeros(self.centers.shape[1])

    def _ends(self, X: Any) -> tuple[Any, Any]:
        largest = np.abs(X.data).max(initial=0.0)
        return -largest, largest

    def block(self, X: Any, places: slice | Indices) -> Block:
        """Bring a few samples into the frame."""
        with np.errstate(over="ignore"):
            values = np.ldexp(X.data, self.frame.exponent).astype(np.float64)
            rows = csr_array((values, X.indices, X.indptr), shape=X.shape)
            squares = np.bincount(rows_of_entries(rows), values * values, X.shape[0])
        return Block(places, rows, rows, squares)

    def _products(self, block: Block) -> NDArray[Any]:
        products: NDArray[Any] = block.samples @ self.points
        return products

    def _products_by_center(self, block: Block) -> NDArray[Any]:
        products = self._room_by_center(len(block.squares))
        products[:, : len(block.squares)] = self._products(block).T
        return products

    def _kernel_rows(self, rows: Any) -> Any:
        from evomeans.engines.cpu.samples import sparse_rows

        k, d = self.centers.shape
        held = sparse_rows(rows)
        return held._replace(center_squares=np.empty(k), by_feature=np.empty((d, k)))

    def _rows(self, block: Block, i: Indices) -> Any:
        return block.samples[i]

    def squared_distances(self, block: Block, i: Indices, j: NDArray[Any]) -> FloatArray:
        """Return ‖rows[i] − centers[j]‖² for pairs, by the direct formula where digits cancel."""
        rows = block.samples[i]
        pairs = rows_of_entries(rows)
        products = np.bincount(pairs, rows.data * self.points[rows.indices, j[pairs]], len(i))
        squares: FloatArray = block.squares[i] + self.levels[j] + products
        cancelled = np.flatnonzero(squares < CANCELLED * block.squares[i])
        step = max(1, DENSE // rows.shape[1])
        for some in np.split(cancelled, range(step, len(cancelled), step)):
            difference = rows[some].toarray() - self.centers[j[some]]
            squares[some] = np.einsum("ij,ij->i", difference, difference)
        return squares


def rows_of_entries(rows: Any) -> Indices:
    """Return the row of every stored entry of a CSR matrix."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def labels(X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1) -> NDArray[np.int32]:
    """Find the closest centre of every sample; the lowest index on ties.

    * ``X`` (n, d) or CSR matrix of float32 or float64: finite samples in data units. They may lie
      outside of the frame, which has no shift if ``X`` is sparse.
    * ``centers`` (k, d) of float64: in the frame.
    """
    result = np.empty(X.shape[0], np.int32)

    def find(scorer: Scorer, block: Block) -> None:
        result[block.places] = scorer.closest(block)

    def find_all(scorer: Scorer, places: slice) -> list[None]:
        if not (scorer.is_narrow and scorer.is_compiled):
            return answers(X, find, scorer, places)
        scorer.label_narrow(X[places], result[places])
        unclear = places.start + np.flatnonzero(result[places] == UNCLEAR)
        for first in range(0, len(unclear), scorer.block_size):
            answers(X, find, scorer, unclear[first : first + scorer.block_size])
        return []

    for_blocks(X, centers, frame, n_threads, find_all, products=centers.size)
    return result


def squares(
    X: Any, labels: NDArray[np.int32], centers: FloatArray, frame: Frame, n_threads: int = 1
) -> FloatArray:
    """Return the squared distances of samples to the centres of their labels, in the frame."""
    result = np.empty(X.shape[0])

    def square(scorer: Scorer, block: Block) -> None:
        found = scorer.squares_to(block, labels[block.places])
        result[block.places] = np.ldexp(found, 2 * (frame.exponent - scorer.frame.exponent))

    answer, n_features = partial(answers, X, square), centers.shape[1]
    for_blocks(X, centers, frame, n_threads, answer, products=n_features)
    return result


def labels_and_squares(
    X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1
) -> tuple[NDArray[np.int32], FloatArray]:
    """Return what :func:`labels` and :func:`squares` do, mostly by one look at the samples."""
    if not is_sparse(X) and centers.shape[1] <= NARROW:
        found = labels(X, centers, frame, n_threads)
        return found, squares(X, found, centers, frame, n_threads)
    chosen, result = np.empty(X.shape[0], np.int32), np.empty(X.shape[0])

    def find(scorer: Scorer, block: Block) -> None:
        own = chosen[block.places] = scorer.closest(block)
        found = scorer.squares_to(block, own)
        result[block.places] = np.ldexp(found, 2 * (frame.exponent - scorer.frame.exponent))

    for_blocks(X, centers, frame, n_threads, partial(answers, X, find), products=centers.size)
    return chosen, result


def seconds_to_label(
    X: Any, centers: FloatArray, frame: Frame, n_samples: int
) -> tuple[float, float]:
    """Measure how long :func:`labels_and_squares` takes: to prepare, and for a few samples.

    ``X`` are some of ``n_samples``, whose number decides about kernels.
    """
    began = perf_counter()
    scorer = scorer_for(X, centers, frame)
    prepared = perf_counter()
    labels = np.empty(X.shape[0], np.int32)

    def find(scorer: Scorer, block: Block) -> None:
        labels[block.places] = scorer.closest(block)
        scorer.squares_to(block, labels[block.places])

    scorer.is_compiled = n_samples > scorer.block_size
    with one_blas_thread:
        for _ in range(2):
            # The first time it reserves memory.
            started = perf_counter()
            if scorer.is_narrow and scorer.is_compiled:
                scorer.label_narrow(X, labels)
            else:
                answers(X, find, scorer, slice(0, X.shape[0]))
    return prepared - began, perf_counter() - started


def distances(X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1) -> NDArray[Any]:
    """Return the distances of all samples to all centres, in data units and the dtype of ``X``.

    The parameters are those of :func:`labels`. Everything is computed in float64.
    """
    result = np.empty((X.shape[0], len(centers)), X.dtype)

    def measure(scorer: Scorer, block: Block) -> None:
        result[block.places] = scorer.distances(block)

    for_blocks(X, centers, frame, n_threads, partial(answers, X, measure), precision=np.float64)
    return result


def inertia(
    X: Any, sample_weight: FloatArray | None, centers: FloatArray, frame: Frame, n_threads: int = 1
) -> float:
    """Sum up the weighted squared distances to the closest centres, in data units."""

    def cost(scorer: Scorer, block: Block) -> float:
        squares = scorer.squares_to(block, scorer.closest(block))
        total = squares.sum() if sample_weight is None else sample_weight[block.places] @ squares
        return scorer.frame.inertia_in_data_units(float(total))

    try:
        costs: list[float] = for_blocks(X, centers, frame, n_threads, partial(answers, X, cost))
        return math.fsum(costs)
    except OverflowError:
        raise ValueError(f"The squared distances of X are too large; {OVERFLOW}") from None


def scorer_for(X: Any, centers: FloatArray, frame: Frame, precision: Any = None) -> Scorer:
    """Return what compares samples of this kind with the centres."""
    if is_sparse(X):
        return SparseScorer(centers, frame, precision or np.float64)
    return Scorer(centers, frame, precision or X.dtype)


def for_blocks(
    X: Any,
    centers: FloatArray,
    frame: Frame,
    n_threads: int,
    answer: Callable[[Scorer, slice], list[Answer]],
    *,
    precision: Any = None,
    products: int = 0,
) -> list[Answer]:
    """Answer a question about all samples, block by block.

    ``products`` are those of a sample that it takes, if answers do not depend on the blocks. Scores
    have the ``precision`` of the samples by default, and are double for sparse ones.
    """
    n_samples, scorer = X.shape[0], scorer_for(X, centers, frame, precision)
    if n_samples <= scorer.block_size:
        with one_blas_thread:
            return answer(scorer, slice(0, n_samples))
    size = scorer.block_size
    if products and scorer.is_narrow:
        size = MOST_LABELLED
    elif products:
        size = max(size, min(n_threads * PRODUCTS_OF_A_THREAD // products, MOST))
    # Every thread gets something to do.
    size = min(size, max(scorer.block_size, -(-n_samples // n_threads)))
    places = [slice(first, min(first + size, n_samples)) for first in range(0, n_samples, size)]
    pool, n_threads, is_over = threads_for(n_threads), min(n_threads, len(places)), False

    def work(thread: int) -> list[Answer]:
        own = scorer if thread == 0 else scorer.twin()
        own.is_compiled = True
        mine = places[thread::n_threads]
        return [one for some in mine if not is_over for one in answer(own, some)]

    with one_blas_thread:
        if n_threads == 1:
            return work(0)
        parts = [pool.submit(work, thread) for thread in range(n_threads)]
        try:
            return [one for part in parts for one in part.result()]
        finally:
            # After Ctrl-C or an error, none of them continues.
            is_over = True
            wait(parts)


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
