"""The disk cache of compiled kernels: shared by processes, keyed by what the sources say.

Numba looks at the modification time of a kernel's own file. Here the key is the content of that
file and of every module of its package and of this one that it imports, since machine code also
contains the kernels that a kernel calls. A copied, packed or freshly checked out package therefore
stays warm.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

PACKAGE = Path(__file__).parents[1]
IMPORTS = re.compile(r"^\s*(?:from|import)\s+(\w+)\.([\w.]+)", re.MULTILINE)


class SharedCache(FunctionCache):  # type: ignore[misc]
    """Numba's disk cache, made safe for processes that compile at the same time.

    Numba picks the name of a new entry from the index it read before: two processes that save
    different signatures at the same moment can end up with an index that points at the other's
    machine code.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        super().__init__(kernel)
        digest = source_digest(Path(kernel.__code__.co_filename))
        file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, digest)
        # Numba compares the digest only after it has unpickled an index, which fails if the index
        # names a class that no longer exists. It compares the version before.
        file._version = f"{file._version} {digest}"
        self._cache_file = file

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Whether there is machine code for a signature; it is not loaded."""
        name = self._cache_file._load_index().get(self._index_key(sig, target_context.codegen()))
        return name is not None and Path(self._cache_file._data_path(name)).exists()

    @contextlib.contextmanager
    def claimed(self, sig: Any, timeout: float) -> Iterator[bool]:
        """Keep other processes from compiling the same; yield whether that worked."""
        name = hashlib.sha256(f"{self._impl.filename_base} {sig}".encode()).hexdigest()[:16]
        with contextlib.ExitStack() as stack:
            try:
                folder = Path(self.cache_path)
                folder.mkdir(parents=True, exist_ok=True)
                lock = exclusive(folder / f"evomeans-{name}.lock", timeout)
                is_held = stack.enter_context(lock)
            except OSError:
                # A full disk, or one that cannot lock: two processes may do the same, no more.
                is_held = timeout > 0.0
            yield is_held

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load machine code.

        Numba prepares the compiler before, which takes longer than to load all kernels of a fit.
        """
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save under a lock, so that index and entries always belong together."""
        folder = Path(self.cache_path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with exclusive(folder / "evomeans.lock"):
                super().save_overload(sig, data)
        except OSError as error:
            warn_once(
                f"Compiled kernels could not be kept in {folder}: {error}. The next process will "
                "compile them again; NUMBA_CACHE_DIR names another folder."
            )


@cache
def warn_once(text: str) -> None:
    """Warn, but only the first time."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


@cache
def source_digest(file: Path) -> str:
    """Return the SHA-256 of a source file and of all modules of its and our package it imports."""
    pending, seen = [file], {file}
    while pending:
        for module in _imported(pending.pop()) - seen:
            seen.add(module)
            pending.append(module)
    total = hashlib.sha256()
    for digest in sorted(hashlib.sha256(_source(module)).digest() for module in seen):
        total.update(digest)
    return total.hexdigest()


@cache
def _source(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imported(file: Path) -> frozenset[Path]:
    """Files of packages that a module imports; of a subpackage all that lie in its folder."""
    found: set[Path] = set()
    own = _package_of(file)
    packages = {own.name: own, "evomeans": PACKAGE}
    for package, name in IMPORTS.findall(_source(file).decode("utf-8")):
        if package not in packages:
            continue
        module = packages[package].joinpath(*name.split("."))
        found.update(module.glob("*.py") if module.is_dir() else [module.with_suffix(".py")])
    return frozenset(found)


def _package_of(file: Path) -> Path:
    """Return the outermost package that a module lies in; this one for a script."""
    folders = takewhile(lambda folder: (folder / "__init__.py").exists(), file.parents)
    return [PACKAGE, *folders][-1]


@contextlib.contextmanager
def exclusive(path: Path, timeout: float = math.inf) -> Iterator[bool]:
    """Hold the lock file ``path``. The system releases it when a process ends, however it ends.

    Yields
    ------
    is_held : bool
        Whether it is held; false if another process still has it after ``timeout`` seconds.
    """
    with path.open("ab") as file:
        last = time.monotonic() + timeout
        while not (is_held := _lock(file)) and time.monotonic() < last:
            time.sleep(0.02)
        try:
            yield is_held
        finally:
            if is_held:
                _unlock(file)


if os.name == "nt":
    import msvcrt

    def _lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]

else:
    import fcntl

    def _lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
