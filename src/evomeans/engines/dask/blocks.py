"""The samples as Dask arrays: reading them, their blocks, and labels and distances by chunk."""

from __future__ import annotations

import logging
import math
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import nearest
from evomeans.engines.frame import (
    LARGEST_VALUE,
    OVERFLOW,
    Extremes,
    Frame,
    check_total_weight,
    smallest,
)
from evomeans.typing import FloatArray
from evomeans.wording import how_to_install

log = logging.getLogger("evomeans")


def import_dask_array() -> ModuleType:
    """Return ``dask.array``, or say which extra brings it."""
    try:
        import dask.array
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"engine='dask' needs Dask, which is not installed: {how_to_install('dask')}."
        ) from error
    module: ModuleType = dask.array
    return module


def as_dask_array(X: Any) -> Any:
    """Return samples as a Dask array with all columns in one chunk.

    They are a Dask array, a NumPy array or memory map, or anything else with two dimensions, a
    dtype and slices, such as an array of Zarr.
    """
    da = import_dask_array()
    if isinstance(X, da.Array):
        return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
    rows = X.shape[0]
    row_bytes = X.shape[1] * np.dtype(X.dtype).itemsize
    stored = getattr(X, "chunks", None)
    begin = stored[0] if stored else rows
    chunks = row_chunks(even_parts(rows, -(-rows // max(1, begin))), row_bytes)
    whole = chunks, X.shape[1:]
    if isinstance(X, np.memmap):
        # A copy of rows or columns is an array in memory: Dask cuts it up as such.
        X = FileRows.of(X) or np.asarray(X)
    return da.from_array(X, chunks=whole, name=False, asarray=True, fancy=False)


def frame_to_array(frame: Any) -> Any:
    """Return a Dask dataframe as an array; chunks may be of unknown size."""
    kinds = [numeric_type(kind) for kind in frame.dtypes]
    wrong = [str(name) for name, kind in zip(frame.columns, kinds, strict=True) if kind is None]
    if wrong:
        raise ValueError(f"X must hold real numbers only, but has other columns: {wrong[:5]}.")
    if not kinds:
        raise ValueError("X has no columns; at least one is needed.")
    narrow = all(kind == np.float32 for kind in kinds)
    return frame.astype(np.float32 if narrow else np.float64).to_dask_array()


def numeric_type(kind: Any) -> np.dtype[Any] | None:
    """Return the NumPy type of a column or an array, None if it does not hold real numbers."""
    kind = getattr(kind, "numpy_dtype", kind)
    return kind if isinstance(kind, np.dtype) and kind.kind in "fiub" else None


def counted(X: Any, name: str = "X") -> Any:
    """Count the rows of every chunk, if that is not known."""
    if not any(math.isnan(rows) for rows in X.chunks[0]):
        return X
    log.warning(
        "%s has chunks of unknown size: their rows are counted, in a pass over the data.", name
    )
    X = X.copy().compute_chunk_sizes()
    if X.shape[0] == 0:
        raise ValueError(f"{name} has no rows.")
    return X


def in_chunks(X: Any, weights: Any) -> Any:
    """Return weights, or the one weight of all samples, as a Dask array in the chunks of ``X``."""
    da = import_dask_array()
    chunks = (X.chunks[0],)
    if isinstance(weights, da.Array):
        return weights.rechunk(chunks)
    if weights.ndim == 0:
        return da.full(X.shape[0], weights[()], chunks=chunks)
    # Cut up here: every block gets its own weights, not all of them.
    return da.from_array(weights, chunks=chunks)


@dataclass(frozen=True)
class FileRows:
    """An array in a file, mapped only while a part of it is copied.

    Of a memory map, ``dask.array.from_array`` makes a copy in memory, and sends that to workers.
    """

    path: str
    offset: int
    """Where in the file the first value of the first row is."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """As of an array."""
        return len(self.shape)

    @classmethod
    def of(cls, X: np.memmap[Any, Any]) -> FileRows | None:
        """Return the rows of a memory map, None if there is no file behind it: it is a copy."""
        mapped = getattr(X, "_mmap", None)
        if mapped is None or not X.size:
            return None
        name = getattr(X, "filename", None)
        if name is None or X.mode == "c":
            what = "of a file without a name" if name is None else "with changes that no file has"
            raise ValueError(
                f"X is a memory map {what} (mode={X.mode!r}), which workers cannot read. Map a "
                "file with mode='r', or give a Dask array."
            )
        # A slice of a map remembers the offset of the whole: look where it really is.
        begin = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
        mapped_from = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
        offset = mapped_from + X.__array_interface__["data"][0] - begin
        return cls(str(Path(name).absolute()), offset, X.shape, X.strides, X.dtype)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        mapped = np.memmap(self.path, np.uint8, "r")
        whole = np.ndarray(self.shape, self.dtype, mapped.data, self.offset, self.strides)
        return np.array(whole[key], order="C")


# Chunks larger than this are split, so that a worker can hold a few; a sixteenth of the data is
# large enough too, so that a machine has work for all its cores.
LARGEST_BLOCK = 2**24
SMALLEST_LIMIT = 2**22
PARTS = 16
# Runs of chunks that are smaller than this together become one block: every block costs some time.
SMALLEST_BLOCK = 2**18

NOT_FINITE = "K-means needs finite numbers. Leave such rows out or fill them in first."
BAD_WEIGHT = "weights must be finite and not negative."


@dataclass(frozen=True)
class Summary:
    """What one pass over a block finds out; ``finest`` is its smallest absolute value but zero."""

    extremes: Extremes
    weight: float = 0.0
    finest: float = math.inf
    bad_row: int = -1
    """The first row with a value that cannot be used, −1 if there is none."""
    complaint: str = ""
    """What is wrong there, and what to do; with ``{place}`` for the block and the row."""

    def check(self, block: int, row: int) -> None:
        """Complain of the bad row, if there is one, by the names that the user knows."""
        if self.bad_row >= 0:
            place = f"block {block}, row {row} of it"
            raise ValueError(self.complaint.format(place=place))


@dataclass(frozen=True)
class Survey:
    """The summaries of all blocks that have rows."""

    extremes: Extremes
    finest: float
    sizes: NDArray[np.int64]
    """Rows of each block."""
    cumulated: FloatArray
    """The weight of all blocks up to and including each."""
    equal_weights: bool
    """Whether every sample weighs 1, none having been given a weight."""

    @property
    def total_weight(self) -> float:
        """Weight of all samples."""
        return float(self.cumulated[-1])


def row_chunks(chunks: Sequence[int], row_bytes: int) -> tuple[int, ...]:
    """Return the numbers of rows of blocks that follow the chunks of an array."""
    total = sum(chunks) * row_bytes
    limit = min(LARGEST_BLOCK, max(SMALLEST_LIMIT, total // PARTS))
    blocks: list[int] = []
    waiting = 0
    for rows in chunks:
        if waiting and (waiting + rows) * row_bytes > SMALLEST_BLOCK:
            blocks.append(waiting)
            waiting = 0
        if rows * row_bytes > limit:
            blocks += even_parts(rows, -(-rows * row_bytes // limit))
        else:
            waiting += rows
    if waiting or not blocks:
        blocks.append(waiting)
    return tuple(blocks)


def even_parts(count: int, parts: int) -> list[int]:
    """Divide a number of rows into parts that differ by one row at most."""
    parts = max(1, min(parts, count))
    return [(i + 1) * count // parts - i * count // parts for i in range(parts)]


def summarize(X: NDArray[Any], sample_weight: NDArray[Any] | None) -> Summary:
    """Look through a block once."""
    X = np.asarray(X)
    if sample_weight is not None and len(sample_weight) != len(X):
        raise ValueError(
            f"sample_weight has {len(sample_weight)} values for a block of X with {len(X)} rows: "
            "the chunks of one of them are not as large as it says. Let Dask count them: "
            "compute_chunk_sizes()."
        )
    if len(X) == 0:
        none = np.zeros(X.shape[1], X.dtype)
        return Summary(Extremes(none, none, math.inf, 0.0, 0))
    low, high = X.min(axis=0), X.max(axis=0)
    if not (is_usable(low).all() and is_usable(high).all()):
        return _unusable("X", X, ~is_usable(X))
    if sample_weight is None:
        return Summary(Extremes(low, high, 1.0, 1.0, len(X)), float(len(X)), smallest(X))
    weights = np.asarray(sample_weight, dtype=np.float64)
    if not np.isfinite(weights).all() or weights.min() < 0.0:
        return _unusable("sample_weight", weights, ~(np.isfinite(weights) & (weights >= 0.0)))
    extremes = Extremes(low, high, smallest(weights), float(weights.max()), len(X))
    return Summary(extremes, float(np.cumsum(weights)[-1]), smallest(X))


def is_usable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell numbers that can be summed from those that cannot, and from NaN."""
    usable: NDArray[np.bool_] = np.abs(values) <= np.float64(LARGEST_VALUE)
    return usable


def _unusable(name: str, values: NDArray[Any], bad: NDArray[np.bool_]) -> Summary:
    """Return the summary of a block that has bad values."""
    row, *columns = np.argwhere(bad)[0].tolist()
    value = values[(row, *columns)]
    column = f", column {columns[0]}" if columns else ""
    remedy = OVERFLOW if np.isfinite(value) else NOT_FINITE
    complaint = f"{name} has {value} in {{place}}{column}: {remedy if columns else BAD_WEIGHT}"
    none = np.zeros(0)
    extremes = Extremes(none, none, math.inf, 0.0, len(values))
    return Summary(extremes, bad_row=row, complaint=complaint)


def combine(
    summaries: Sequence[Summary], rows: Sequence[int], chunks: Sequence[int], *, weighted: bool
) -> Survey:
    """Put the summaries of blocks together, which should have these numbers of ``rows``.

    The first block is refused that has another number, or a value that cannot be used. Errors name
    the ``chunks`` that the user knows.
    """
    ends, first = np.cumsum(chunks), 0
    for summary, expected in zip(summaries, rows, strict=True):
        row = first + max(0, summary.bad_row)
        chunk = int(np.searchsorted(ends[:-1], row, side="right"))
        if summary.extremes.n_samples != expected:
            raise ValueError(
                f"X has {summary.extremes.n_samples} rows instead of {expected} at chunk {chunk}: "
                "X.chunks are not its true sizes. Let Dask count them: X.compute_chunk_sizes()."
            )
        summary.check(chunk, row - int(ends[chunk] - chunks[chunk]))
        first += expected
    held = [summary for summary in summaries if summary.extremes.n_samples]
    cumulated = np.cumsum([summary.weight for summary in held])
    if weighted:
        check_total_weight(float(cumulated[-1]))
    low, high, lightest, heaviest, sizes = zip(*(summary.extremes for summary in held), strict=True)
    ends_of_columns = np.min(low, axis=0), np.max(high, axis=0)
    return Survey(
        Extremes(*ends_of_columns, min(lightest), max(heaviest), sum(sizes)),
        finest=min(summary.finest for summary in held),
        sizes=np.array(sizes, np.int64),
        cumulated=cumulated,
        equal_weights=not weighted,
    )


# ---- what samples are asked about given centres, which are (k, d) arrays in the frame ------------


def lazy_labels(X: Any, centers: FloatArray, frame: Frame) -> Any:
    """Return the closest centre of every row, a Dask array in the chunks of ``X``."""
    none = np.empty(0, np.int32)
    given = {"find": nearest.labels, "none": none, "centers": centers, "frame": frame}
    return X.map_blocks(_of_chunk, drop_axis=1, meta=none, **given)


def lazy_distances(X: Any, centers: FloatArray, frame: Frame) -> Any:
    """Return the distances of every row to every centre, a Dask array in the dtype of ``X``."""
    chunks, none = (X.chunks[0], (len(centers),)), np.empty((0, len(centers)), X.dtype)
    given = {"find": nearest.distances, "none": none, "centers": centers, "frame": frame}
    return X.map_blocks(_of_chunk, chunks=chunks, meta=none, **given)


def inertia(X: Any, sample_weight: Any, centers: FloatArray, frame: Frame) -> float:
    """Compute the weighted sum of squared distances to the closest centres, in data units.

    ``sample_weight`` is a Dask array in the chunks of ``X``, or None for equal weights.
    """
    results = by_chunk(_inertia_of_chunk, X, sample_weight, centers, frame)
    if sample_weight is not None:
        check_total_weight(sum(weight for _, weight in results))
    return math.fsum(inertia for inertia, _ in results)


def by_chunk(function: Callable[..., Any], X: Any, sample_weight: Any, *given: Any) -> list[Any]:
    """Compute a function of the rows of each chunk, their weights or None, its number, and more."""
    from dask import compute, delayed

    chunks = X.to_delayed()[:, 0]
    weights = [None] * len(chunks) if sample_weight is None else sample_weight.to_delayed()
    call, pairs = delayed(function), enumerate(zip(chunks, weights, strict=True))
    return list(compute(*(call(*pair, number, *given) for number, pair in pairs)))


def _of_chunk(
    X: NDArray[Any], find: Any, none: NDArray[Any], block_id: tuple[int, ...], **given: Any
) -> NDArray[Any]:
    """Return what is found of a chunk, and ``none`` of one without rows."""
    if len(X) == 0:
        return none
    _checked(X, None, block_id[0])
    found: NDArray[Any] = find(X, **given)
    return found


def _inertia_of_chunk(
    X: NDArray[Any], sample_weight: Any, number: int, centers: FloatArray, frame: Frame
) -> tuple[float, float]:
    """Return inertia and weight."""
    summary = _checked(X, sample_weight, number)
    if summary.weight == 0.0 or not math.isfinite(summary.weight):
        return 0.0, summary.weight
    return nearest.inertia(X, sample_weight, centers, frame), summary.weight


def _checked(X: NDArray[Any], sample_weight: Any, number: int) -> Summary:
    summary = summarize(X, sample_weight)
    summary.check(number, summary.bad_row)
    return summary
