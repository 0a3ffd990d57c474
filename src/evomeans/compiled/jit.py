"""How kernels are compiled: one decorator with the flags."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

from evomeans.compiled.cache import SharedCache
from evomeans.compiled.kernel import Kernel

# Everything of fastmath except nnan and ninf, for kernels that may meet infinities.
REORDER = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})
# All of it. Only with this are minima and maxima of floating-point numbers vectorised.
FINITE = REORDER | {"nnan", "ninf"}


Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def jit(function: Function) -> Function: ...
@overload
def jit(*, fastmath: frozenset[str]) -> Callable[[Function], Function]: ...
def jit(
    function: Callable[..., Any] | None = None, *, fastmath: frozenset[str] = frozenset()
) -> Any:
    """Compile a kernel on its first call, without the GIL, and keep the machine code on disk.

    Parameters
    ----------
    function : callable
        The kernel; plain arrays and numbers in and out. It cannot allocate arrays.
    fastmath : frozenset of str
        What the compiler may do to floating-point arithmetic: REORDER lets it reorder sums, which
        is what vectorises them; FINITE also lets it assume that no number is infinite or none.

    Notes
    -----
    ``EVOMEANS_CACHE=0`` in the environment switches the disk cache off.
    """
    if function is None:
        return lambda kernel: _compile(kernel, fastmath)
    return _compile(function, fastmath)


def _compile(function: Callable[..., Any], fastmath: frozenset[str]) -> Any:
    # Without _nrt=False, Numba counts references to every array that a kernel passes on, by atomic
    # operations that take longer than the kernels and make threads wait for each other: so kernels
    # cannot allocate. And every array that is passed to a function that is not inlined is copied
    # field by field.
    options = {
        "nopython": True,
        "nogil": True,
        "error_model": "numpy",
        "fastmath": set(fastmath),
        "_nrt": False,
        "forceinline": True,
        "boundscheck": None,
    }
    dispatcher = Kernel(function, options)
    if os.environ.get("EVOMEANS_CACHE", "1") != "0":
        # RuntimeError: no folder is writable (a frozen container); compile in every process then.
        with contextlib.suppress(RuntimeError):
            dispatcher._cache = SharedCache(dispatcher.py_func)
    return dispatcher
