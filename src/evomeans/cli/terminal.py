"""The command as it was typed, and what it shows."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from evomeans.cli.failures import join
from evomeans.cli.options import OUTPUT, Flag
from evomeans.wording import printable

ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("ARGUMENTS", default=())


def as_typed(more: Sequence[str] = ()) -> str:
    """Return the command, ready to be pasted into a shell; ``more`` is added if it is not there."""
    typed = ARGUMENTS.get()
    return join(["evomeans", *typed, *(word for word in more if word not in typed)])


def is_typed(option: str) -> bool:
    """Whether the command has this name of an option, which may have several."""
    return any(word.partition("=")[0] == option for word in ARGUMENTS.get())


class Notes(logging.Handler):
    """Shows what the package logs, such as that it is compiling, unless all shall be quiet."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one message."""
        if not is_typed("--quiet") and not is_typed("-q"):
            print(printable(record.getMessage()), file=sys.stderr, flush=True)


def note_messages() -> None:
    """Let messages of the package appear on standard error."""
    log = logging.getLogger("evomeans")
    if not any(isinstance(one, Notes) for one in log.handlers):
        log.addHandler(Notes())


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
