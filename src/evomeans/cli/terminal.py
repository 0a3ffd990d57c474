"""Errors and exit codes of the command line, the command as it was typed, and what it shows."""

from __future__ import annotations

import errno
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any

from cyclopts import Group, Parameter

from evomeans.wording import how_to_install, printable


class ExitCode(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    DATA = 1
    USAGE = 2
    HUNG_UP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


EXIT_CODES = """\
Exit codes
    0  done
    1  a table, a model or a folder cannot be used
    2  the command is wrong
  129  interrupted: the terminal was closed (SIGHUP); fit keeps the best so far
  130  by Ctrl-C, 143 by SIGTERM; likewise
  141  the reader of standard output has gone"""


# Windows has none.
HANGUP = getattr(signal, "SIGHUP", None)


class CommandError(Exception):
    """A table, a model or a folder cannot be used; the text says why and what to do."""

    code = ExitCode.DATA


class UsageError(CommandError):
    """The command asks for something impossible."""

    code = ExitCode.USAGE


LONGEST = 1000
"""No name in a message is longer."""


def join(words: Iterable[str]) -> str:
    """Return the command line of some words."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def quote(word: str) -> str:
    """Return a word as it must be typed; an ellipsis if it cannot be typed or copied."""
    return join([word]) if word.isprintable() and len(word) <= LONGEST else "…"


ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("ARGUMENTS", default=())


def as_typed(*more: str) -> str:
    """Return the command, ready to be pasted into a shell; ``more`` is added if it is not there."""
    typed = ARGUMENTS.get()
    return join(["evomeans", *typed, *(word for word in more if word not in typed)])


class Notes(logging.Handler):
    """Shows what the package logs, such as that it is compiling, unless all shall be quiet."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one message."""
        if not {"--quiet", "-q"} & set(ARGUMENTS.get()):
            print(printable(record.getMessage()), file=sys.stderr, flush=True)


OUTPUT = Group("Output", sort_key=4)
Flag = Annotated[bool, Parameter(negative="", show_default=False)]


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Terminal:
    """What is shown: notes on standard error, results on standard output."""

    quiet: Annotated[Flag, Parameter(name=["--quiet", "-q"])] = False
    """Show nothing but errors."""

    json: Flag = False
    """Print one JSON object on standard output; all else goes to standard error."""

    @property
    def is_live(self) -> bool:
        """Whether something that moves can be shown."""
        capable = os.environ.get("TERM", "") not in ("dumb", "unknown")
        return not self.quiet and capable and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Show something that is not the result."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Show what the user must know, even if all else is quiet."""
        print(printable(text), file=sys.stderr, flush=True)

    def result(self, record: Mapping[str, Any], summary: str) -> None:
        """Show the result."""
        if not self.quiet:
            print(printable(summary), file=sys.stderr if self.json else sys.stdout, flush=True)
        if self.json:
            print(json.dumps(record, allow_nan=False), flush=True)

    @contextmanager
    def noting_warnings(self, *ignored: str) -> Iterator[None]:
        """Show warnings as notes, but for those that contain an ``ignored`` text."""

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            if not any(text in str(message) for text in ignored):
                self.note(f"note: {message}")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            yield


def guarded(action: Callable[[], int], arguments: Sequence[str] = ()) -> int:
    """Run a command; a user's mistake becomes a message and an exit code, never a traceback."""
    ARGUMENTS.set(tuple(arguments))
    log = logging.getLogger("evomeans")
    if not any(isinstance(one, Notes) for one in log.handlers):
        log.addHandler(Notes())
    for stream in (sys.stdout, sys.stderr):
        # File names may hold characters that the terminal cannot show.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with _signals_interrupt() as received:
        try:
            code = action()
            sys.stdout.flush()
        except KeyboardInterrupt:
            code = _failed("interrupted; nothing was written", ExitCode.INTERRUPTED)
        except CommandError as error:
            return _failed(str(error), error.code)
        except OSError as error:
            # Windows calls it an invalid argument if the reader of standard output has gone.
            is_odd = os.name == "nt" and error.errno == errno.EINVAL and error.filename is None
            if not (isinstance(error, BrokenPipeError) or is_odd):
                return _failed(reason_of(error), ExitCode.DATA)
            # Python would fail once more when it flushes standard output at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.BROKEN_PIPE
        except (MemoryError, ImportError) as error:
            text = str(error) or type(error).__name__
            if getattr(error, "name", None) == "polars":
                text = f"Tables need polars, which is not installed: {how_to_install('cli')}."
            return _failed(text, ExitCode.DATA)
    if not received or code != ExitCode.INTERRUPTED:
        return code
    return ExitCode.HUNG_UP if received[0] == HANGUP else ExitCode.TERMINATED


def reason_of(error: Exception) -> str:
    """Return the text of an error, without the number that the system gives it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error).rstrip(".")
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _failed(text: str, code: ExitCode) -> ExitCode:
    sys.stdout.flush()
    print(printable(f"evomeans: {text}"), file=sys.stderr)
    return code


@contextmanager
def _signals_interrupt() -> Iterator[list[int]]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, and remember that they came.

    On Windows, Ctrl-Break is the only one. With nohup, SIGHUP is ignored and stays so.
    """
    received: list[int] = []
    terminals = [number for number in (1, 2) if os.isatty(number)]

    def terminate(signum: int, frame: FrameType | None) -> None:
        received.append(signum)
        if signum == HANGUP:
            # To write to a terminal that is gone is an error, and would end the search.
            for number in terminals:
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        interrupt = signal.getsignal(signal.SIGINT)
        # Called, not raised: in a background job SIGINT itself is ignored.
        if not callable(interrupt):
            raise KeyboardInterrupt
        interrupt(signum, frame)

    in_main = threading.current_thread() is threading.main_thread()
    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    known = [getattr(signal, name) for name in names if hasattr(signal, name)]
    ours = [one for one in known if in_main and signal.getsignal(one) is signal.SIG_DFL]
    for one in ours:
        signal.signal(one, terminate)
    try:
        yield received
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)
