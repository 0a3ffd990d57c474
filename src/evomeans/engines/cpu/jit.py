"""How kernels are compiled: one decorator with the flags, and a cache that processes can share."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core.caching import FunctionCache

# Everything of fastmath except nnan and ninf, for kernels that may meet infinities.
REORDER = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})
# All of it. Only with this are minima and maxima of floating-point numbers vectorised.
FINITE = REORDER | {"nnan", "ninf"}


Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@overload
def jit(function: Kernel) -> Kernel: ...
@overload
def jit(*, fastmath: frozenset[str]) -> Callable[[Kernel], Kernel]: ...
def jit(
    function: Callable[..., Any] | None = None, *, fastmath: frozenset[str] = frozenset()
) -> Any:
    """Compile a kernel on its first call, without the GIL, and keep the machine code on disk.

    Parameters
    ----------
    function : callable
        The kernel; plain arrays and numbers in and out. It cannot allocate arrays.
    fastmath : frozenset of str
        What the compiler may do to floating-point arithmetic: REORDER lets it reorder sums, which
        is what vectorises them; FINITE also lets it assume that no number is infinite or none.

    Notes
    -----
    ``EVOMEANS_CACHE=0`` in the environment switches the disk cache off.
    """
    if function is None:
        return lambda kernel: _compile(kernel, fastmath)
    return _compile(function, fastmath)


def _compile(function: Callable[..., Any], fastmath: frozenset[str]) -> Any:
    # Without _nrt=False, Numba counts references to every array that a kernel passes on, by atomic
    # operations that take longer than the kernels and make threads wait for each other: so kernels
    # cannot allocate. And every array that is passed to a function that is not inlined is copied
    # field by field.
    dispatcher = numba.njit(
        nogil=True, error_model="numpy", fastmath=set(fastmath), _nrt=False, forceinline=True
    )(function)
    if os.environ.get("EVOMEANS_CACHE", "1") != "0":
        # RuntimeError: no folder is writable (a frozen container); compile in every process then.
        with contextlib.suppress(RuntimeError):
            dispatcher._cache = SharedCache(dispatcher.py_func)
    return dispatcher


class SharedCache(FunctionCache):  # type: ignore[misc]
    """Numba's disk cache, made safe for processes that compile at once and for edited callees.

    Numba picks the name of a new entry from the index it read before: two processes that save
    different signatures at the same moment can end up with an index that points at the other's
    machine code. And it looks for changes only in the kernel's own file, while machine code also
    contains the kernels that it calls.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save under a lock, so that index and entries always belong together."""
        folder = Path(self.cache_path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with exclusive(folder / "evomeans.lock"):
                super().save_overload(sig, data)
        except OSError as error:
            warnings.warn(
                f"Compiled kernels could not be kept in {folder}: {error}. The next process will "
                "compile them again; NUMBA_CACHE_DIR names another folder.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), kernel_sources())


@cache
def kernel_sources() -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of all source files from which kernels are built."""
    package = Path(__file__).parents[2]
    folders = ("engines", "engines/cpu", "exact", "centers")
    files = sorted(file for folder in folders for file in package.glob(f"{folder}/*.py"))
    return tuple((f.name, (s := f.stat()).st_size, s.st_mtime_ns) for f in files)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; other processes wait."""
    with path.open("ab") as file:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if os.name == "nt":
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
            else:
                fcntl.flock(file, fcntl.LOCK_UN)
