"""Calls of machine code without Numba in between.

Before Numba calls a kernel, it looks at the types and the contents of all arguments: some fifty
arrays for a refinement. That takes little time, but all threads have to wait for it, because they
share the interpreter.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba import types

from evomeans.compiled.bundle import BundleType

C_TYPES = {
    types.int64: ctypes.c_int64,
    types.float64: ctypes.c_double,
    types.boolean: ctypes.c_bool,
}


class AddressEntry:
    """Calls a kernel that returns nothing, with addresses of bundles and with numbers.

    Like a call through Numba, a call lets other threads use the interpreter. Nothing is checked:
    the bundles have to be those for whose types the kernel was compiled.

    Parameters
    ----------
    kernel : Kernel
    *arguments : bundles and numbers
        Of the types that calls will have.
    """

    __slots__ = ("_call", "_name", "_unused")

    def __init__(self, kernel: Any, *arguments: Any) -> None:
        kinds = [c_type_of(kind) for kind in kernel.types_of(arguments)]
        # Numba puts a result and an error before the arguments, and returns a status.
        pointer = ctypes.c_void_p
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *kinds)
        self._call = prototype(kernel.address(*arguments))
        self._name = kernel.py_func.__name__
        self._unused = (ctypes.c_int64 * 2)()

    def __call__(self, *arguments: float) -> None:
        """Call the kernel."""
        if self._call(self._unused, self._unused, *arguments):
            raise RuntimeError(f"The kernel {self._name!r} has failed.")


def c_type_of(kind: Any) -> Any:
    """Return how a function in C takes a number, or the address of a bundle."""
    return ctypes.c_void_p if isinstance(kind, BundleType) else C_TYPES[kind]
