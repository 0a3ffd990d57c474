"""Ctrl-C and SIGTERM end a search between two offspring instead of in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# What Python does with them if nobody has asked for anything else.
USUAL_HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class DeferredInterrupt:
    """While entered, the first SIGINT or SIGTERM only sets :attr:`requested`.

    A second one is obeyed at once: SIGINT raises KeyboardInterrupt, SIGTERM ends the process. Only
    the main thread can receive signals; in other threads, and for a signal for which someone else
    has installed a handler of their own, this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            for number, usual in USUAL_HANDLERS.items():
                if signal.getsignal(number) is usual:
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if not self.requested:
            self.requested = True
        elif signum == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            signal.signal(signum, signal.SIG_DFL)
            signal.raise_signal(signum)
