"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evomeans.files import write_atomically

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and limits of POSIX")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_bytes_and_callables_are_written(tmp_path):
    """New files and replaced ones; nothing else is left in the folder."""
    path = tmp_path / "file"
    write_atomically(path, b"first")
    assert path.read_bytes() == b"first"
    write_atomically(str(path), lambda file: file.write(b"second"))
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == ["file"]


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask):
    previous = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(previous)
    assert permissions(tmp_path / "file") == 0o666 & ~umask


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), permissions(path)) == (b"new", mode)


@posix
def test_a_symbolic_link_stays_one(tmp_path):
    """What it points to is written, also if that does not exist yet."""
    link = tmp_path / "link"
    link.symlink_to("file")
    for content in (b"new", b"newer"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert (tmp_path / "file").read_bytes() == content


@pytest.mark.parametrize("step", ["write", "os.fsync", "os.replace"])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_failure_leaves_everything_as_it_was(tmp_path, monkeypatch, step, exists, error):
    """Whichever step fails: the error arrives, the old file stays, no temporary one does."""
    path = tmp_path / "file"
    if exists:
        path.write_bytes(b"old")

    def fail(*arguments):
        raise error

    def half(file):
        file.write(b"half of it")
        fail()

    if step != "write":
        monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)):
        write_atomically(path, half if step == "write" else b"new")
    assert names(tmp_path) == (["file"] if exists else [])
    assert not exists or path.read_bytes() == b"old"


def test_what_is_no_file_is_not_replaced(tmp_path):
    """Folders and pipes stay what they are; a missing folder is not made."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"")
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "file", b"")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="Not a regular file"):
            write_atomically(tmp_path / "pipe", b"")
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert "file" not in names(tmp_path)


LIMITED = """
    import resource, sys
    from evomeans.files import write_atomically

    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        write_atomically(sys.argv[1], b"new" * 1000)
    except OSError as error:
        print(type(error).__name__, error.errno)
"""


@posix
def test_a_real_limit_on_the_size_of_files(tmp_path):
    """The system refuses the second kilobyte: an OSError, and the old file is whole."""
    path = tmp_path / "file"
    path.write_bytes(b"old" * 1000)
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.split() == ["OSError", str(errno.EFBIG)]
    assert path.read_bytes() == b"old" * 1000
    assert names(tmp_path) == ["file"]
