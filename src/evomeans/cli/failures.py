"""How a command ends other than well, and with which exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    DATA = 1
    USAGE = 2
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


EXIT_CODES = """\
Exit codes
    0  done
    1  a table, a model or a folder cannot be used
    2  the command is wrong
  130  interrupted by Ctrl-C, 143 by SIGTERM; the best so far is kept
  141  nobody reads the output on"""


class CommandError(Exception):
    """A table, a model or a folder cannot be used; the text says why and what to do."""

    code = ExitCode.DATA


class UsageError(CommandError):
    """The command asks for something that cannot be."""

    code = ExitCode.USAGE


def guarded(action: Callable[[], int]) -> int:
    """Run a command; a user's mistake becomes a message and an exit code, never a traceback."""
    try:
        code = action()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would fail once more when it flushes standard output at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        return _told("interrupted; nothing was written", ExitCode.INTERRUPTED)
    except CommandError as error:
        return _told(str(error), error.code)
    except Exception as error:
        known = _code_of(error)
        if known is None:
            raise
        return _told(str(error) or type(error).__name__, known)
    return code


def _told(text: str, code: ExitCode) -> ExitCode:
    sys.stdout.flush()
    print(f"evomeans: {text}", file=sys.stderr)
    return code


def _code_of(error: Exception) -> ExitCode | None:
    """Return the exit code of an error that is not ours to fix, None for a bug."""
    if isinstance(error, OSError | MemoryError | ImportError):
        return ExitCode.DATA
    # By name: importing them all would load what most commands do not need.
    names = {kind.__name__ for kind in type(error).__mro__}
    if "TableOptionError" in names:
        return ExitCode.USAGE
    known = {"TableError", "CheckpointError", "ModelFileError", "GpuNotAvailableError"}
    return ExitCode.DATA if names & known else None
