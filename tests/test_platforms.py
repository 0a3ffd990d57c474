"""Differences on Windows and macOS, simulated on this system."""

from __future__ import annotations

import ast
import errno
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import evomeans
from evomeans import files
from evomeans.cli import terminal
from evomeans.cli.run_folder import write_run
from evomeans.cli.tables.readers import open_source
from evomeans.cli.terminal import CommandError, ExitCode, guarded
from evomeans.compiled import ready
from evomeans.engines import free_memory
from evomeans.files import write_atomically

PACKAGE = Path(evomeans.__file__).parent


class Busy:
    """A file that another program has open, for the first few attempts to replace it."""

    def __init__(self, attempts: float) -> None:
        self.attempts = attempts
        self.n_seen = 0
        self._replace = Path.replace

    def __call__(self, source: Path, target: Path) -> Path:
        self.n_seen += 1
        if self.n_seen <= self.attempts:
            raise PermissionError(errno.EACCES, "Access is denied", str(source), 5, str(target))
        return self._replace(source, target)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Busy]:
    """Windows, where every replacement fails at first."""
    one = Busy(2)
    monkeypatch.setattr(Path, "replace", lambda self, target: one(self, target))
    monkeypatch.setattr(files, "os", fake_os("nt"))
    monkeypatch.setattr(files, "PAUSES", (0.0, 0.0, 0.0))
    return one


def fake_os(name: str) -> types.SimpleNamespace:
    """Return the module os under the name of another system."""
    return types.SimpleNamespace(**{**vars(os), "name": name})


def test_a_file_that_a_scanner_has_open_is_replaced_soon(tmp_path: Path, busy: Busy) -> None:
    path = tmp_path / "model"
    write_atomically(path, b"first")
    assert path.read_bytes() == b"first"
    assert busy.n_seen == 3
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


def test_a_file_that_stays_open_is_named_and_nothing_is_lost(tmp_path: Path, busy: Busy) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(b"old")
    busy.attempts = float("inf")
    with pytest.raises(PermissionError, match="close it if it is open in another program") as error:
        write_atomically(path, b"new")
    assert error.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["labels.csv"]


def test_elsewhere_a_refusal_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Busy(1)
    monkeypatch.setattr(Path, "replace", lambda self, target: one(self, target))
    monkeypatch.setattr(files, "os", fake_os("posix"))
    with pytest.raises(PermissionError, match="Access is denied"):
        write_atomically(tmp_path / "file", b"")
    assert one.n_seen == 1


def test_a_run_survives_a_scanner(tmp_path: Path, busy: Busy) -> None:
    """New folders are renamed, files of existing ones replaced: both are tried again."""
    write_run(tmp_path / "run", {"labels.csv": b"1", "run.json": b"{}"})
    busy.n_seen = 0
    write_run(tmp_path / "run", {"labels.csv": b"2", "run.json": b"{}"})
    assert (tmp_path / "run" / "labels.csv").read_bytes() == b"2"


@pytest.mark.parametrize("is_known", [True, False])
def test_macos_empties_the_memory_of_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """Where the file system knows how; else fsync has to do."""
    asked: list[int] = []

    def control(descriptor: int, command: int) -> int:
        asked.append(command)
        if not is_known:
            raise OSError(errno.ENOTSUP, "Operation not supported")
        return 0

    fcntl = types.SimpleNamespace(fcntl=control, F_FULLFSYNC=51)
    synchronised: list[int] = []
    monkeypatch.setitem(sys.modules, "fcntl", fcntl)
    monkeypatch.setattr(files.sys, "platform", "darwin")
    monkeypatch.setattr(files, "_synchronise_folder", lambda folder: None)
    monkeypatch.setattr(files.os, "fsync", synchronised.append)
    write_atomically(tmp_path / "file", b"content")
    assert asked == [51]
    assert len(synchronised) == (0 if is_known else 1)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGUSR1")
def test_ctrl_break_ends_a_command_like_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has SIGBREAK; here another signal has its name."""
    monkeypatch.setattr(terminal.signal, "SIGBREAK", signal.SIGUSR1, raising=False)

    def action() -> int:
        os.kill(os.getpid(), signal.SIGUSR1)
        return ExitCode.DONE

    assert guarded(action) == ExitCode.TERMINATED
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_closed_pipe_is_an_invalid_argument_on_windows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def action() -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    assert guarded(action) == ExitCode.DATA
    replaced: list[int] = []
    monkeypatch.setattr(terminal, "os", fake_os("nt"))
    monkeypatch.setattr(terminal.os, "dup2", lambda old, new: replaced.append(old))
    monkeypatch.setattr(terminal.sys, "stdout", types.SimpleNamespace(fileno=lambda: 1))
    assert guarded(action) == ExitCode.BROKEN_PIPE
    assert len(replaced) == 1
    os.close(replaced[0])


def test_a_drive_letter_is_not_an_array_of_an_npz_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no file C:\\data\\x\.npz\."):
        open_source("C:\\data\\x.npz")


def test_commands_to_copy_are_quoted_for_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.join(["fit", "my table.csv"]) == "fit 'my table.csv'"
    monkeypatch.setattr(terminal, "os", fake_os("nt"))
    assert terminal.join(["fit", "my table.csv"]) == 'fit "my table.csv"'
    assert terminal.quote("plain") == "plain"


def test_helpers_that_compile_do_not_hear_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of their own, and on Windows in a group of their own."""
    started: list[dict[str, object]] = []

    class Process:
        stdin = subprocess.DEVNULL

        def __init__(self, command: object, **options: object) -> None:
            started.append(options)
            raise OSError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(ready.subprocess, "Popen", Process)
    monkeypatch.setattr(ready, "OWN_GROUP", 0x200)
    with ready.helpers([], 2):
        pass
    assert started[0]["start_new_session"] is True
    assert started[0]["creationflags"] == 0x200


def test_free_memory_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither macOS nor Windows has /proc; psutil knows, and without it nobody does."""
    monkeypatch.setattr(free_memory, "_read", lambda path: "")
    monkeypatch.setattr(free_memory, "find_spec", lambda name: None)
    assert free_memory.free_memory() is None
    psutil = types.SimpleNamespace(virtual_memory=lambda: types.SimpleNamespace(available=123))
    monkeypatch.setattr(free_memory, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "psutil", psutil)
    assert free_memory.free_memory() == 123


def test_cores_are_counted_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Linux has it."""
    without = {name: value for name, value in vars(os).items() if name != "sched_getaffinity"}
    monkeypatch.setattr(ready, "os", types.SimpleNamespace(**without))
    assert ready.count_cores() == os.cpu_count()


def test_text_files_have_an_encoding() -> None:
    """Windows would take its own."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            named, place = {keyword.arg for keyword in node.keywords}, f"{path}:{node.lineno}"
            if node.func.attr in {"read_text", "write_text"}:
                assert "encoding" in named, place
            if node.func.attr == "open" and node.args and isinstance(node.args[0], ast.Constant):
                mode = str(node.args[0].value)
                assert "b" in mode or "encoding" in named, place


def test_modules_of_posix_are_imported_late_or_guarded() -> None:
    """Importing any module must work where there is no fcntl, resource, pwd or termios."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
                if names & {"fcntl", "resource", "pwd", "grp", "termios", "pty"}:
                    found.append(path.name)
    assert found == []
