"""Which kernels are compiled, rather than loaded."""

from __future__ import annotations

from typing import Any

from numba.core import event


class Compilations(event.Listener):  # type: ignore[misc]
    """Names of the functions that are compiled."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, e: Any) -> None:
        self.names.append(e.data["dispatcher"].py_func.__name__)

    def on_end(self, e: Any) -> None:
        pass
