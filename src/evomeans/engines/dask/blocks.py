"""How a Dask array is divided into blocks. That belongs to the data, never to the cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import FloatArray
from evomeans.engines.resolution import smallest
from evomeans.engines.rules import LARGEST_VALUE
from evomeans.engines.values import OVERFLOW, check_total_weight

# Chunks larger than this are split, so that a worker can hold a few; a sixteenth of the data is
# large enough too, so that a machine has work for all its cores.
LARGEST_BLOCK = 2**24
SMALLEST_LIMIT = 2**22
PARTS = 16
# Chunks are loaded whole before they are split: beyond this a thread needs much memory for one.
LARGE_CHUNK = 2**26
# Runs of chunks that are smaller than this together become one block: every block costs some time.
SMALLEST_BLOCK = 2**18

NOT_FINITE = "K-means needs finite numbers. Leave such rows out or fill them in first."
BAD_WEIGHT = "weights must be finite and not negative."


@dataclass(frozen=True)
class Summary:
    """What one pass over a block finds out.

    ``low`` and ``high`` are the smallest and largest value of every column. ``finest`` and
    ``lightest`` are the smallest absolute value and the smallest weight that are not zero.
    """

    n_samples: int
    low: NDArray[Any]
    high: NDArray[Any]
    weight: float
    heaviest: float
    finest: float = math.inf
    lightest: float = math.inf
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

    sizes: NDArray[np.int64]
    """Rows of each block."""
    low: NDArray[Any]
    high: NDArray[Any]
    cumulated: FloatArray
    """The weight of all blocks up to and including each."""
    heaviest: float
    finest: float
    lightest: float
    equal_weights: bool
    """Whether every sample weighs 1, none having been given a weight."""

    @property
    def n_samples(self) -> int:
        """Rows in all."""
        return int(self.sizes.sum())

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
        return Summary(0, none, none, 0.0, 0.0)
    low, high = X.min(axis=0), X.max(axis=0)
    if not (is_usable(low).all() and is_usable(high).all()):
        return _unusable("X", X, ~is_usable(X))
    finest = smallest(X)
    if sample_weight is None:
        return Summary(len(X), low, high, float(len(X)), 1.0, finest, 1.0)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if not np.isfinite(weights).all() or weights.min() < 0.0:
        return _unusable("sample_weight", weights, ~(np.isfinite(weights) & (weights >= 0.0)))
    total, heaviest = float(np.cumsum(weights)[-1]), float(weights.max())
    return Summary(len(X), low, high, total, heaviest, finest, smallest(weights))


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
    return Summary(len(values), none, none, 0.0, 0.0, bad_row=row, complaint=complaint)


def check_counts(summaries: Sequence[Summary], rows: Sequence[int], chunks: Sequence[int]) -> None:
    """Reject an array whose blocks do not have the ``rows`` that its chunks say they have."""
    ends = np.cumsum(chunks)
    first = 0
    for summary, expected in zip(summaries, rows, strict=True):
        if summary.n_samples != expected:
            chunk = int(np.searchsorted(ends, first, side="right"))
            raise ValueError(
                f"X has {summary.n_samples} rows instead of {expected} at chunk {chunk}: X.chunks "
                "are not its true sizes. Let Dask count them: X.compute_chunk_sizes()."
            )
        first += expected


def combine(summaries: Sequence[Summary], chunks: Sequence[int], *, weighted: bool) -> Survey:
    """Put the summaries together; complain about the first value that cannot be used.

    Errors name the ``chunks`` that the user knows.
    """
    ends, first = np.cumsum(chunks), 0
    for summary in summaries:
        if summary.bad_row >= 0:
            row = first + summary.bad_row
            chunk = int(np.searchsorted(ends, row, side="right"))
            summary.check(chunk, row - int(ends[chunk] - chunks[chunk]))
        first += summary.n_samples
    held = [summary for summary in summaries if summary.n_samples]
    cumulated = np.cumsum([summary.weight for summary in held])
    if weighted:
        check_total_weight(float(cumulated[-1]))
    return Survey(
        sizes=np.array([summary.n_samples for summary in held], np.int64),
        low=np.min([summary.low for summary in held], axis=0),
        high=np.max([summary.high for summary in held], axis=0),
        cumulated=cumulated,
        heaviest=max(summary.heaviest for summary in held),
        finest=min(summary.finest for summary in held),
        lightest=min(summary.lightest for summary in held),
        equal_weights=not weighted,
    )
