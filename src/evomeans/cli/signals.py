"""Which signal ended a search."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from types import TracebackType

from evomeans.cli.failures import ExitCode


class SignalWatch:
    """While entered, remembers the signals that arrive; who handles them is not its business.

    Only the main thread receives signals; in others this does nothing.
    """

    def __init__(self) -> None:
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._previous = -1
        self._arrived = b""

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            self._sockets = reader, writer = socket.socketpair()
            reader.setblocking(False)
            writer.setblocking(False)
            self._previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._sockets is None:
            return
        reader, writer = self._sockets
        signal.set_wakeup_fd(self._previous)
        with contextlib.suppress(BlockingIOError):
            self._arrived = reader.recv(4096)
        reader.close()
        writer.close()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a search that was interrupted; known after the end."""
        return ExitCode.TERMINATED if signal.SIGTERM in self._arrived else ExitCode.INTERRUPTED
