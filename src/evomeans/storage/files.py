"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

Content = bytes | Callable[[BinaryIO], object]
"""What to write, or a function that writes it into an open file."""


def write_atomically(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file so that readers see the old content or the new one, never a part of it.

    The content goes into a temporary file in the same folder, which replaces the old file once it
    is on the disk. If anything fails, such as a full disk, the old file stays as it was and the
    temporary one is removed. Only a process that is killed leaves a ``.evomeans-*.tmp`` behind.

    Parameters
    ----------
    path : path-like
        A new file gets the permissions that the umask leaves, an existing one keeps its own. If it
        is a symbolic link, the file that it points to is written.
    content : bytes or callable
        A callable gets the open binary file.
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
            os.fsync(file.fileno())
        if permissions is not None:
            temporary.chmod(permissions)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _synchronise_folder(target.parent)


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


def _synchronise_folder(folder: Path) -> None:
    """Bring the new name to the disk too, on systems where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
