"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

Content = bytes | Callable[[BinaryIO], object]
PAUSES = (0.01, 0.03, 0.1, 0.3, 0.6)  # seconds, between attempts to rename a file


def write_atomically(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file so that readers see the old content or the new one, never a part of it.

    If anything fails, such as a full disk, the old file stays as it was. Only a process that is
    killed leaves a ``.evomeans-*.tmp`` behind. An existing file keeps its permissions. Of a
    symbolic link, the file that it points to is written.
    """
    target = Path(os.path.realpath(path))
    permissions = _permissions(target)
    temporary = target.parent / f".evomeans-{secrets.token_hex(6)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except OSError as error:
        # Under the name that the caller knows.
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            _synchronise(file.fileno())
        if permissions is not None:
            temporary.chmod(permissions)
        replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            # Windows does not remove files that are read-only.
            temporary.chmod(stat.S_IRUSR | stat.S_IWUSR)
            temporary.unlink()
        raise
    _synchronise_folder(target.parent)


def replace(source: Path, target: Path) -> None:
    """Rename a file or a folder; a file takes the place of another one.

    On Windows this fails while another program, often a virus scanner, has either of them open.
    Then it is tried again for a second, before the error says so.
    """
    for pause in (*PAUSES, None):
        try:
            source.replace(target)
            return
        except PermissionError as error:
            if os.name != "nt":
                raise
            if pause is None:
                reason = f"{error.strerror}; close it if it is open in another program"
                raise PermissionError(error.errno, reason, str(target)) from error
            time.sleep(pause)


def _permissions(target: Path) -> int | None:
    """Return the permissions of the file to replace, None if there is no file."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file, which is not replaced", str(target))
    return stat.S_IMODE(mode)


def _synchronise(descriptor: int) -> None:
    """Bring a file to the disk. On macOS, fsync alone leaves it in the memory of the drive."""
    if sys.platform == "darwin":
        import fcntl

        with contextlib.suppress(OSError):  # not every file system has it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _synchronise_folder(folder: Path) -> None:
    """Bring the new name to the disk too, on systems where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
