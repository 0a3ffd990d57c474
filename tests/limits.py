"""A guard against tests that hang."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

# Where kernels are compiled while a test runs, all limits are longer by this factor.
FACTOR = 1.0


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Turn a hang into a failure, where the platform has timers and we are in the main thread."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    seconds *= FACTOR

    def fail(signum: int, frame: object) -> None:
        raise TimeoutError(f"still running after {seconds} seconds")

    previous = signal.signal(signal.SIGALRM, fail)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, left)
