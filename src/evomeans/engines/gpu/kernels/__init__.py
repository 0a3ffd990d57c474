"""Triton kernels, and the one way in which they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton

# Numbers for which Triton would compile a kernel once more if they are 1 or a multiple of 16.
# It would do so while a graph is recorded, too.
ANY_NUMBER = ("bound", "n", "k", "n_tiles", "programs")


def jit(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel when it is launched first; interpret it if TRITON_INTERPRET=1."""
    arguments = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    return triton.jit(kernel, do_not_specialize=[name for name in ANY_NUMBER if name in arguments])
