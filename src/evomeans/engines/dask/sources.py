"""From whatever Dask can read to Dask arrays whose chunks are read where they are used."""

from __future__ import annotations

import logging
import math
import mmap
from dataclasses import astuple, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.dask.blocks import even_parts, row_chunks
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
    row_bytes = int(np.prod(X.shape[1:])) * np.dtype(X.dtype).itemsize
    stored = getattr(X, "chunks", None)
    begin = stored[0] if stored else rows
    chunks = row_chunks(even_parts(rows, -(-rows // max(1, begin))), row_bytes)
    whole = (chunks, *((length,) for length in X.shape[1:]))
    if isinstance(X, np.memmap):
        source = FileRows.of(X)
        if source is not None:
            return da.from_array(source, chunks=whole, asarray=True, fancy=False)
        # A copy of rows or columns, that is, an array in memory: Dask cuts it up as such.
        X = np.asarray(X)
    return da.from_array(X, chunks=whole, name=False, asarray=True)


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
    version: tuple[int, int]
    """When the file was last changed, and its size."""

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
        path = Path(name).absolute()
        version = path.stat().st_mtime_ns, path.stat().st_size
        return cls(str(path), offset, X.shape, X.strides, X.dtype, version)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        mapped = np.memmap(self.path, np.uint8, "r")
        whole = np.ndarray(self.shape, self.dtype, mapped.data, self.offset, self.strides)
        return np.array(whole[key], order="C")

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, *astuple(self)
