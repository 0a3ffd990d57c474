"""The command line as it was typed, for what tells how to repeat or continue it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from shlex import join

ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("ARGUMENTS", default=())


def as_typed(more: Sequence[str] = ()) -> str:
    """Return the command, ready to be pasted into a shell; ``more`` is added if it is not there."""
    typed = ARGUMENTS.get()
    return join(["evomeans", *typed, *(word for word in more if word not in typed)])
