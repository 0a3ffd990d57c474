"""The disk cache of compiled kernels: shared by processes, keyed by what the sources say.

A damaged file of Numba's own cache makes every fit fail, or the process crash. It also looks at the
modification time of a kernel's own file only. Here, a file holds the stamp of all that it was
compiled from, a checksum, and the machine code for one kernel, types of its arguments and kind of
processor. The stamp has the content of the kernel's file and of every module of its package and of
this one that it imports, since machine code also contains the kernels that a kernel calls.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import secrets
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba

from evomeans.compiled.numba_private import packed, processor_of, unpacked

PACKAGE = Path(__file__).parents[1]
IMPORTS = re.compile(r"^\s*(?:from|import)\s+(\w+)\.([\w.]+)", re.MULTILINE)
SUFFIX = ".kernel"
# Of a SHA-256.
N_BYTES = 32


class SharedCache:
    """What Numba asks for machine code before it compiles a kernel.

    It is looked for in the ``folders``: in none with ``EVOMEANS_CACHE=0`` in the environment.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._code = kernel.__code__
        # Windows does not want the brackets of <locals> in names of files.
        self._name = re.sub("[<>]", "", f"{kernel.__module__}.{kernel.__qualname__}")
        # What a closure holds is part of the machine code, and in no source file.
        is_wanted = os.environ.get("EVOMEANS_CACHE", "1") != "0"
        self._is_kept = is_wanted and kernel.__closure__ is None

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """Where machine code is looked for; () if none is kept."""
        return folders_for(Path(self._code.co_filename)) if self._is_kept else ()

    @property
    def folder(self) -> Path | None:
        """Where machine code is written; None if nothing can be."""
        return next(filter(is_writable, self.folders), None)

    @cached_property
    def stamp(self) -> bytes:
        """The SHA-256 of all that machine code depends on, but for its types and the processor."""
        source = source_digest(Path(self._code.co_filename))
        versions = numba.__version__, llvmlite.__version__
        # Numba's switch for debugging, which changes the machine code.
        options = numba.config.BOUNDSCHECK
        known = repr((source, self._code.co_firstlineno, versions, options))
        return hashlib.sha256(known.encode()).digest()

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Whether there is machine code for these types of arguments; it is not loaded."""
        return self._read(self._file_name(sig, target_context)) is not None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for these types of arguments, or None."""
        name = self._file_name(sig, target_context)
        payload = self._read(name)
        if payload is None:
            return None
        try:
            return unpacked(target_context, payload)
        except Exception as error:
            # What was written, but not what this process understands.
            warn_once(f"The compiled kernel {name} cannot be used and is compiled again: {error!r}")
            return None

    def save_overload(self, sig: Any, result: Any) -> None:
        """Keep machine code for other processes."""
        if not self._is_kept or result.library.has_dynamic_globals:
            return
        folder = self.folder
        if folder is None:
            why = "there are no source files to know them by"
            if self.folders:
                why = "no folder can be written; NUMBA_CACHE_DIR names one"
            warn_once(f"Compiled kernels are not kept, so every process compiles them: {why}.")
            return
        name = self._file_name(sig, result.target_context)
        try:
            write_entry(folder / name, self.stamp, packed(result))
        except OSError as error:
            warn_once(
                f"Compiled kernels could not be kept in {folder}: {error.strerror}. The next "
                "process will compile them again; NUMBA_CACHE_DIR names another folder."
            )

    def remembers(self, note: str) -> bool:
        """Whether a process with the same sources and the same Numba has left a note."""
        return self._read(f"{self._name}-{note}{SUFFIX}") is not None

    def remember(self, note: str) -> None:
        """Leave a note for other processes, where that is possible."""
        if self.folder is not None:
            with contextlib.suppress(OSError):
                write_entry(self.folder / f"{self._name}-{note}{SUFFIX}", self.stamp, b"")

    @contextlib.contextmanager
    def claimed(self, sig: Any, target_context: Any, timeout: float) -> Iterator[bool]:
        """Keep other processes from compiling the same; yield whether that worked."""
        # Without a folder, or on a full disk, or one that cannot lock: two processes may do the
        # same, no more.
        is_held = timeout > 0.0
        with contextlib.ExitStack() as stack:
            if self.folder is not None:
                lock = self.folder / f"{self._file_name(sig, target_context)}.lock"
                with contextlib.suppress(OSError):
                    is_held = stack.enter_context(exclusive(lock, timeout))
            yield is_held

    def _file_name(self, sig: Any, target_context: Any) -> str:
        """Return the name of the file for types of arguments, on this processor and Python."""
        processor = processor_of(target_context)
        known = repr((sig, processor, sys.implementation.cache_tag))
        return f"{self._name}-{hashlib.sha256(known.encode()).hexdigest()[:20]}{SUFFIX}"

    def _read(self, name: str) -> bytes | None:
        found = (read_entry(folder / name, self.stamp) for folder in self.folders)
        return next((payload for payload in found if payload is not None), None)


def folders_for(source: Path) -> tuple[Path, ...]:
    """Return where machine code of a source file may lie, first choice first; () for nowhere.

    In the folder that NUMBA_CACHE_DIR names, next to the sources, and among the user's caches: the
    first of them that can be written gets what is new, but all of them are read.
    """
    if not source.is_file():
        # Part of an archive or a frozen program, or typed in.
        return ()
    sources = PACKAGE if source.is_relative_to(PACKAGE) else source.parent
    # Several copies of the package may use one folder.
    place = hashlib.sha256(str(sources.absolute()).encode()).hexdigest()[:20]
    folders = [sources / "__pycache__"]
    if numba.config.CACHE_DIR:
        folders.insert(0, Path(numba.config.CACHE_DIR) / f"{sources.name}_{place}")
    # There may be no home.
    with contextlib.suppress(RuntimeError):
        folders.append(user_caches() / "evomeans" / f"{sources.name}_{place}")
    return tuple(folders)


def user_caches() -> Path:
    """Return the folder of the user's caches."""
    if sys.platform == "win32":  # pragma: no cover
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":  # pragma: no cover
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def read_entry(file: Path, stamp: bytes) -> bytes | None:
    """Return what a file holds for a stamp; None if it cannot be read, or is damaged."""
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        warn_once(f"Compiled kernels in {file.parent} cannot be read: {error.strerror}.")
        return None
    found, checksum = content[:N_BYTES], content[N_BYTES : 2 * N_BYTES]
    payload = content[2 * N_BYTES :]
    if checksum != checksum_of(file.name, found, payload):
        warn_once(f"Compiled kernels in {file.parent} were damaged; they are compiled again.")
        return None
    return payload if found == stamp else None


def write_entry(file: Path, stamp: bytes, payload: bytes) -> None:
    """Write a file, or replace it, at once: other processes see it whole or not at all."""
    # It may have been removed since we tried whether it can be written.
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}.tmp")
    try:
        draft.write_bytes(stamp + checksum_of(file.name, stamp, payload) + payload)
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def checksum_of(name: str, stamp: bytes, payload: bytes) -> bytes:
    """Return the SHA-256 of a file: also one under another name, or cut off, is damaged."""
    return hashlib.sha256(name.encode() + stamp + payload).digest()


@cache
def warn_once(text: str) -> None:
    """Warn, but only the first time."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


@cache
def source_digest(file: Path) -> str:
    """Return the SHA-256 of a source file and of all modules of its and our package it imports."""
    pending, digests = [file], {}
    while pending:
        module = pending.pop()
        if module not in digests:
            digests[module], imported = _scanned(module)
            pending += imported
    return hashlib.sha256(b"".join(sorted(digests.values()))).hexdigest()


@cache
def _scanned(file: Path) -> tuple[bytes, frozenset[Path]]:
    """Return the SHA-256 of a module, and the files of its and our package that it imports.

    Of a subpackage, these are all that lie in its folder.
    """
    source, own = file.read_bytes(), _package_of(file)
    found: set[Path] = set()
    packages = {own.name: own, "evomeans": PACKAGE}
    for package, name in IMPORTS.findall(source.decode("utf-8")):
        if package in packages:
            module = packages[package].joinpath(*name.split("."))
            found.update(module.glob("*.py") if module.is_dir() else [module.with_suffix(".py")])
    return hashlib.sha256(source).digest(), frozenset(found)


def _package_of(file: Path) -> Path:
    """Return the outermost package that a module lies in; this one for a script."""
    folders = takewhile(lambda folder: (folder / "__init__.py").exists(), file.parents)
    return [PACKAGE, *folders][-1]


@contextlib.contextmanager
def exclusive(path: Path, timeout: float = math.inf) -> Iterator[bool]:
    """Hold the lock file ``path``. The system releases it when a process ends, however it ends.

    Yields whether it is held; false if another process still has it after ``timeout`` seconds.
    """
    with path.open("ab") as file:
        last = time.monotonic() + timeout
        while not (is_held := _lock(file)) and time.monotonic() < last:
            time.sleep(0.02)
        try:
            yield is_held
        finally:
            # Closing the file is not enough: a child of this process may have it open, too.
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
