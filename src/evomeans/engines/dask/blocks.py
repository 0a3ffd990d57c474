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
class Defect:
    """A value that cannot be used.

    Parameters
    ----------
    name : str
        "X" or "sample_weight".
    value : str
    row : int
        In the block.
    column : str
        ", column 3", or empty.
    remedy : str
        What to do about it.
    """

    name: str
    value: str
    row: int
    column: str
    remedy: str

    def text(self, block: int, row: int) -> str:
        """Say where it is, and what to do."""
        place = f"block {block}, row {row} of it{self.column}"
        return f"{self.name} has {self.value} in {place}: {self.remedy}"


@dataclass(frozen=True)
class Summary:
    """What one pass over a block finds out.

    Parameters
    ----------
    n_samples : int
    low, high : (d,) arrays
        The smallest and largest value of every column.
    weight, heaviest : float
        Total and largest weight of the samples.
    finest, lightest : float
        The smallest absolute value and the smallest weight that are not zero.
    defect : Defect, optional
        What is wrong with the block.
    """

    n_samples: int
    low: NDArray[Any]
    high: NDArray[Any]
    weight: float
    heaviest: float
    finest: float = math.inf
    lightest: float = math.inf
    defect: Defect | None = None


@dataclass(frozen=True)
class Survey:
    """The summaries of all blocks that have rows.

    Parameters
    ----------
    sizes : (b,) array of int64
        Rows of each block.
    low, high : (d,) arrays
    cumulated : (b,) array of float64
        The weight of all blocks up to and including each.
    heaviest, finest, lightest : float
    equal_weights : bool
        Whether every sample weighs 1, none having been given a weight.
    """

    sizes: NDArray[np.int64]
    low: NDArray[Any]
    high: NDArray[Any]
    cumulated: FloatArray
    heaviest: float
    finest: float
    lightest: float
    equal_weights: bool

    @property
    def n_samples(self) -> int:
        """Rows in all."""
        return int(self.sizes.sum())

    @property
    def total_weight(self) -> float:
        """Weight of all samples."""
        return float(self.cumulated[-1])


def row_chunks(chunks: Sequence[int], row_bytes: int) -> tuple[int, ...]:
    """Return the sizes of blocks that follow the chunks of an array.

    Parameters
    ----------
    chunks : sequence of int
        Rows of the chunks.
    row_bytes : int
        Bytes of a row.
    """
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
    none = np.zeros(X.shape[1], X.dtype)
    if len(X) == 0:
        return Summary(0, none, none, 0.0, 0.0)
    low, high = X.min(axis=0), X.max(axis=0)
    if not (is_usable(low).all() and is_usable(high).all()):
        return Summary(len(X), none, none, 0.0, 0.0, defect=defect_of("X", X))
    finest = smallest(X)
    if sample_weight is None:
        return Summary(len(X), low, high, float(len(X)), 1.0, finest, 1.0)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if not np.isfinite(weights).all() or weights.min() < 0.0:
        defect = defect_of("sample_weight", weights)
        return Summary(len(X), none, none, 0.0, 0.0, defect=defect)
    total, heaviest = float(np.cumsum(weights)[-1]), float(weights.max())
    return Summary(len(X), low, high, total, heaviest, finest, smallest(weights))


def is_usable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell numbers that can be summed from those that cannot, and from what is no number."""
    usable: NDArray[np.bool_] = np.abs(values) <= np.float64(LARGEST_VALUE)
    return usable


def defect_of(name: str, values: NDArray[Any]) -> Defect:
    """Find the first value that cannot be used."""
    weights = name == "sample_weight"
    bad = ~np.isfinite(values) | (values < 0.0) if weights else ~is_usable(values)
    place = np.argwhere(bad)[0].tolist()
    column = f", column {place[1]}" if len(place) > 1 else ""
    value = values[tuple(place)]
    remedy = BAD_WEIGHT if weights else OVERFLOW if np.isfinite(value) else NOT_FINITE
    return Defect(name, str(value), place[0], column, remedy)


def check_counts(summaries: Sequence[Summary], rows: Sequence[int], chunks: Sequence[int]) -> None:
    """Reject an array whose chunks do not have the sizes that it says they have.

    Parameters
    ----------
    summaries : sequence of Summary
    rows : sequence of int
        Rows that the blocks should have.
    chunks : sequence of int
        Rows that the chunks of the user should have; errors name these.
    """
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

    Parameters
    ----------
    summaries : sequence of Summary
    chunks : sequence of int
        Rows of the chunks that the user knows; errors name these.
    weighted : bool
    """
    first = 0
    for summary in summaries:
        if summary.defect is not None:
            row, ends = first + summary.defect.row, np.cumsum(chunks)
            chunk = int(np.searchsorted(ends, row, side="right"))
            raise ValueError(summary.defect.text(chunk, row - int(ends[chunk] - chunks[chunk])))
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
