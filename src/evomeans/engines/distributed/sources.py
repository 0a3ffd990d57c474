"""From whatever Dask can read to a Dask array whose chunks are read where they are used."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.distributed.blocks import even_parts, row_chunks


def import_dask_array() -> ModuleType:
    """Return ``dask.array``, or say which extra brings it."""
    try:
        import dask.array
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "engine='dask' needs Dask, which is not installed: pip install 'evomeans[dask]'"
        ) from error
    module: ModuleType = dask.array
    return module


def as_dask_array(X: Any) -> Any:
    """Return samples as a Dask array with all columns in one chunk.

    Parameters
    ----------
    X : array-like of two dimensions
        A Dask array, a NumPy array or memory map, or anything else with shape, dtype and slices
        that ``dask.array.from_array`` takes.
    """
    da = import_dask_array()
    if isinstance(X, da.Array):
        return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
    if not all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__")):
        X = np.asarray(X)
    rows = X.shape[0]
    row_bytes = int(np.prod(X.shape[1:])) * np.dtype(X.dtype).itemsize
    stored = getattr(X, "chunks", None)
    begin = stored[0] if stored else rows
    chunks = row_chunks(even_parts(rows, -(-rows // max(1, begin))), row_bytes)
    source = FileRows.of(X) if isinstance(X, np.memmap) else None
    name = False if source is None else None
    whole = (chunks, *((length,) for length in X.shape[1:]))
    return da.from_array(X if source is None else source, chunks=whole, name=name, asarray=True)


class FileRows:
    """Rows of a binary file, read when they are sliced, not mapped into memory.

    Of a memory map, ``dask.array.from_array`` makes a copy in memory, and sends that to workers.

    Parameters
    ----------
    path : str
    offset : int
        Where in the file the first row begins.
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, path: str, offset: int, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.path = path
        self.offset = offset
        self.shape = tuple(shape)
        self.ndim = len(self.shape)
        self.dtype = dtype
        state = Path(path).stat()
        self._version = state.st_mtime_ns, state.st_size

    @classmethod
    def of(cls, X: np.memmap[Any, Any]) -> FileRows | None:
        """Return the rows of a memory map, None if they do not stand in its file as they are."""
        mapped = getattr(X, "_mmap", None)
        name = getattr(X, "filename", None)
        if (
            mapped is None
            or name is None
            or X.mode == "c"
            or not X.flags.c_contiguous
            or not X.size
        ):
            return None
        # A slice of a map remembers the offset of the whole: look where it really is.
        begin = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
        mapped_from = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
        offset = mapped_from + X.__array_interface__["data"][0] - begin
        return cls(str(Path(name).absolute()), offset, X.shape, X.dtype)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        key = key if isinstance(key, tuple) else (key,)
        first, last, step = key[0].indices(self.shape[0])
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        begin = self.offset + first * width * self.dtype.itemsize
        count = max(0, last - first) * width
        values = np.fromfile(self.path, self.dtype, count, offset=begin)
        rows: NDArray[Any] = values.reshape(-1, *self.shape[1:])[
            (slice(None, None, step), *key[1:])
        ]
        return rows

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, self.path, self.offset, self.shape, self.dtype, self._version
