"""Ctrl-C ends a search where it chooses to look, instead of anywhere."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class DeferredInterrupt:
    """While entered, the first SIGINT only sets :attr:`requested`; a second one raises.

    Only the main thread can receive signals; in other threads, and where the program has a handler
    of its own, this does nothing. A program that ignores SIGINT still does, but may call the
    handler itself, with another signal, to end the search.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            current = signal.getsignal(signal.SIGINT)
            if current in (signal.default_int_handler, signal.SIG_IGN):
                self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGINT and self._previous is signal.SIG_IGN:
            return
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
