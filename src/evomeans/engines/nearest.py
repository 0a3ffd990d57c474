"""The closest of given centres: labels, distances and inertia of samples that no engine holds.

With x and c relative to a point in the middle of the centres, ‖x − c‖² = ‖x‖² + (‖c‖² − 2x·c). The
terms in brackets, the *scores*, are one matrix product for a block of samples. The error of a score
has a bound. Where only one centre has a score close enough to the lowest one, it is the closest.
Everywhere else the direct formula decides, by the function that the CPU engine uses. So a label
depends neither on the other samples nor on the number of threads, and it equals the engine's.

Samples of one block need NumPy only, unless there are ties. For more, small kernels save time, and
with few features one of them computes the scores as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import ThreadpoolController

from evomeans.engines.frame import Frame, is_sparse
from evomeans.engines.protocol import FloatArray
from evomeans.engines.values import OVERFLOW, reaching

# Scores of a block of samples, few enough for the cache, and samples of a block.
SCORES = 2**16
FEWEST, MOST = 512, 8192
# Up to so many features a kernel is faster than matrix products; it takes more samples at a time.
NARROW, MOST_NARROW = 12, 32768
# Samples farther from the middle than this, squared and in the frame, get a frame of their own.
FAR = 1e12
# Squares below this may have lost digits to underflow, or all of them.
UNDERFLOW = 1e-36
# Where ‖x − c‖² is below this share of ‖x‖², it has lost too many digits to cancellation. The
# direct form takes over.
CANCELLED = 1e-2
# The label of a sample whose scores cannot decide, as in the kernels.
UNCLEAR = -1
# Numbers of sparse rows that are made dense at a time.
DENSE = 2**20

Indices = NDArray[np.intp]
Answer = TypeVar("Answer")


def labels(X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1) -> NDArray[np.int32]:
    """Find the closest centre of every sample; the lowest index on ties.

    Parameters
    ----------
    X : (n, d) array or CSR matrix of float32 or float64
        Finite samples in data units. They may lie outside of the frame.
    centers : (k, d) array of float64
        In the frame.
    frame : Frame
        Without a shift if ``X`` is sparse.
    n_threads : int
        The result does not depend on it.
    """
    result = np.empty(X.shape[0], np.int32)

    def find(scorer: Scorer, block: Block) -> None:
        result[block.places] = scorer.closest(block)

    def find_all(scorer: Scorer, places: slice) -> list[None]:
        if not (scorer.is_narrow and scorer.is_compiled):
            return answers(X, places, scorer, find)
        scorer.label_clear(X[places], result[places])
        unclear = places.start + np.flatnonzero(result[places] == UNCLEAR)
        for first in range(0, len(unclear), scorer.block_size):
            answers(X, unclear[first : first + scorer.block_size], scorer, find)
        return []

    make_scorer = partial(scorer_for, X, centers, frame, X.dtype)
    for_blocks(X, make_scorer, n_threads, find_all, most=MOST_NARROW)
    return result


def distances(X: Any, centers: FloatArray, frame: Frame, n_threads: int = 1) -> NDArray[Any]:
    """Return the distances of all samples to all centres, in data units and the dtype of ``X``.

    The parameters are those of :func:`labels`. Everything is computed in float64.
    """
    result = np.empty((X.shape[0], len(centers)), X.dtype)

    def measure(scorer: Scorer, block: Block) -> None:
        result[block.places] = scorer.distances(block)

    double = np.dtype(np.float64)
    make_scorer = partial(scorer_for, X, centers, frame, double)
    for_blocks(X, make_scorer, n_threads, partial(answers_in, X, measure))
    return result


def inertia(
    X: Any,
    sample_weight: FloatArray | None,
    centers: FloatArray,
    frame: Frame,
    n_threads: int = 1,
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
        costs: list[float] = for_blocks(X, make_scorer, n_threads, partial(answers_in, X, cost))
        return math.fsum(costs)
    except OverflowError:
        raise ValueError(f"The squared distances of X are too large; {OVERFLOW}") from None


# ---- blocks --------------------------------------------------------------------------------------


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


def for_blocks(
    X: Any,
    make_scorer: Callable[[], Scorer],
    n_threads: int,
    answer: Callable[[Scorer, slice], list[Answer]],
    most: int = 0,
) -> list[Answer]:
    """Answer a question about all samples, block by block; narrow ones have ``most`` samples."""
    n_samples, scorer = X.shape[0], make_scorer()
    if n_samples <= scorer.block_size:
        return answer(scorer, slice(0, n_samples))
    size = max(scorer.block_size, most) if scorer.is_narrow else scorer.block_size
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

    Otherwise theirs and ours would wait for each other.
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


def answers_in(
    X: Any, answer: Callable[[Scorer, Block], Answer], scorer: Scorer, places: slice
) -> list[Answer]:
    """Answer for a block, as :func:`for_blocks` asks for it."""
    return answers(X, places, scorer, answer)


def answers(
    X: Any,
    places: slice | Indices,
    scorer: Scorer,
    answer: Callable[[Scorer, Block], Answer],
) -> list[Answer]:
    """Answer for a block; for samples far outside of the frame in another frame, and apart."""
    block = scorer.block(X[places], places)
    # Not the other way round: what has overflowed is not a number.
    is_near = block.squares <= FAR
    if is_near.all():
        return [answer(scorer, block)]
    indices = np.arange(X.shape[0])[places]
    near, far = indices[is_near], indices[~is_near]
    found = answers(X, far, scorer.reaching(X[far]), answer)
    return [*answers(X, near, scorer, answer), *found] if len(near) else found


# ---- scores --------------------------------------------------------------------------------------


def scorer_for(X: Any, centers: FloatArray, frame: Frame, precision: np.dtype[Any]) -> Scorer:
    """Return what compares samples such as ``X`` with the centres."""
    kind = SparseScorer if is_sparse(X) else Scorer
    return kind(centers, frame, np.dtype(np.float64) if is_sparse(X) else precision)


class Scorer:
    """Compares blocks of dense samples with the centres.

    Parameters
    ----------
    centers : (k, d) array of float64
        In the frame.
    frame : Frame
    precision : dtype
        In which scores are computed.

    Attributes
    ----------
    is_compiled : bool
        Whether kernels are worth their compilation. They give the same labels as NumPy.
    """

    is_compiled = False

    def __init__(self, centers: FloatArray, frame: Frame, precision: np.dtype[Any]) -> None:
        self.centers = centers
        self.frame = frame
        self.precision = precision
        self.is_narrow = self._is_narrow()
        self.block_size = int(np.clip(SCORES // max(centers.shape), FEWEST, MOST))
        self.middle = self._middle().astype(precision)
        offsets = centers - self.middle
        squares = np.einsum("ij,ij->i", offsets, offsets)
        self.points = (-2.0 * offsets.T).astype(precision, order="C")
        self.levels = squares.astype(precision)
        self.longest = math.sqrt(squares.max())
        # Twice the error of a score, and as much again for the direct formula.
        self.roundoff = 2 * (centers.shape[1] + 8) * float(np.finfo(precision).eps)
        self._memory: dict[str, NDArray[Any]] = {}

    def _is_narrow(self) -> bool:
        return bool(self.centers.shape[1] <= NARROW)

    def _middle(self) -> FloatArray:
        # A few centres far away do not move a median.
        return np.median(self.centers, axis=0)

    def _room(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return memory that every block uses again.

        Fresh memory has to be mapped by the system page by page, which takes longer than using it.
        """
        size = math.prod(shape)
        if name not in self._memory or self._memory[name].size < size:
            self._memory[name] = np.empty(size, dtype)
        return self._memory[name][:size].reshape(shape)

    def reaching(self, X: Any) -> Scorer:
        """Return a scorer in a frame that is large enough for these samples."""
        frame = reaching(self.frame, *self._ends(X))
        centers = np.ldexp(self.centers, frame.exponent - self.frame.exponent)
        return type(self)(centers, frame, self.precision)

    def _ends(self, X: Any) -> tuple[Any, Any]:
        return X.min(axis=0), X.max(axis=0)

    def block(self, X: Any, places: slice | Indices) -> Block:
        """Bring a few samples into the frame."""
        # What overflows is far outside, and is then given another frame.
        with np.errstate(over="ignore", invalid="ignore"):
            offsets = self._room("offsets", X.shape, self.precision)
            if self.is_compiled:
                from evomeans.engines.cpu.choose import set_offsets

                X = np.ascontiguousarray(X)
                squares = np.empty(len(X), self.precision)
                set_offsets(X, *self.frame.factors(X.dtype), self.middle, offsets, squares)
            else:
                np.subtract(self.frame.encode(X), self.middle, out=offsets)
                squares = np.einsum("ij,ij->i", offsets, offsets)
        return Block(places, X, offsets, squares)

    def _rows(self, block: Block, i: Indices) -> Any:
        """Return some samples of a block in the frame."""
        return self.frame.encode(block.samples[i])

    def label_clear(self, X: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Set the closest centres of narrow samples, or UNCLEAR where scores cannot decide."""
        from evomeans.engines.cpu.choose import TOGETHER, label_narrow

        scale, shift = self.frame.factors(X.dtype)
        label_narrow(
            np.ascontiguousarray(X),
            scale,
            shift,
            self.middle,
            self.points,
            self.levels,
            self.longest,
            self.roundoff,
            UNDERFLOW,
            FAR,
            self._room("columns", (X.shape[1], TOGETHER), self.precision),
            self._room("work", (5, TOGETHER), self.precision),
            labels,
        )

    def _products(self, block: Block) -> NDArray[Any]:
        """Return −2x·c of all samples and centres, an (m, k) array."""
        shape = len(block.squares), len(self.centers)
        scores = self._room("scores", shape, self.precision)
        return np.matmul(block.offsets, self.points, out=scores)

    def closest(self, block: Block) -> NDArray[np.int32]:
        """Return the closest centre of each sample; the lowest index on ties."""
        products = self._products(block)
        labels = np.empty(len(products), np.int32)
        bounds = self.longest, self.roundoff, UNDERFLOW
        if self.is_compiled:
            from evomeans.engines.cpu.choose import label_clear

            label_clear(products, self.levels, block.squares, *bounds, labels)
        else:
            products += self.levels
            margins = self.roundoff * (np.sqrt(block.squares) + self.longest) ** 2 + UNDERFLOW
            close = products <= (products.min(axis=1) + margins)[:, None]
            labels[:] = close.argmax(axis=1)
            labels[np.count_nonzero(close, axis=1) > 1] = UNCLEAR
        unclear = np.flatnonzero(labels == UNCLEAR)
        if len(unclear):
            # Imported here: it loads Numba.
            from evomeans.engines.cpu.choose import choose

            rows, chosen = self._kernel_rows(self._rows(block, unclear)), labels[unclear]
            scores, squares = products[unclear], block.squares[unclear]
            choose(rows, scores, squares, *bounds, self.centers, chosen)
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
        if not self.is_compiled:
            return self.squared_distances(block, np.arange(len(labels)), labels)
        from evomeans.engines.cpu.choose import set_squared_distances

        X, squares = block.samples, np.empty(len(labels))
        factors = self.frame.factors(X.dtype)
        set_squared_distances(X, *factors, self.centers, labels, squares)
        return squares

    def squared_distances(self, block: Block, i: Indices, j: NDArray[Any]) -> FloatArray:
        """Return ‖rows[i] − centers[j]‖² for pairs, by the direct formula in float64."""
        difference = self._rows(block, i) - self.centers[j]
        squares: FloatArray = np.einsum("ij,ij->i", difference, difference)
        return squares


class SparseScorer(Scorer):
    """Compares blocks of CSR matrices with the centres; the frame has no shift."""

    def _is_narrow(self) -> bool:
        return False

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

    def _kernel_rows(self, rows: Any) -> Any:
        from evomeans.engines.cpu.samples import sparse_rows

        k, d = self.centers.shape
        held = sparse_rows(rows)
        return held._replace(center_squares=np.empty(k), by_feature=np.empty((d, k)))

    def _rows(self, block: Block, i: Indices) -> Any:
        return block.samples[i]

    def squares_to(self, block: Block, labels: NDArray[np.int32]) -> FloatArray:
        """Return the squared distances of all samples of a block to their centres."""
        return self.squared_distances(block, np.arange(len(labels)), labels)

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
