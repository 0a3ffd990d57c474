"""How Python enters kernels, and how kernels call others that are compiled on their own.

Where the compiler layer is trusted, by addresses of bundles and of machine code. Otherwise the
plain way: Python passes the bundles themselves, and kernels call functions in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evomeans.compiled.bundle import written_at
from evomeans.compiled.check import is_trusted
from evomeans.compiled.numba_private import call_kernel
from evomeans.compiled.plain import PlainEntry, call_function

call_at: Any = call_kernel if is_trusted() else call_function
"""Calls a kernel that returns nothing, for kernels: ``call_at(kernel.address(...), ...)``.

The arguments have to be of exactly the types that the address was asked for.
"""


def entry(kernel: Any, *arguments: Any) -> Callable[..., None]:
    """Return what calls a kernel with what :func:`address_of` returns of bundles, and with numbers.

    Parameters
    ----------
    kernel : kernel
        One that returns nothing.
    *arguments : bundles and numbers
        Of the types that calls will have. In place of a bundle that the kernel will not use, a
        call may have 0.
    """
    if not is_trusted():
        return PlainEntry(kernel, *arguments)
    # Imported here: it needs names that Numba may not have.
    from evomeans.compiled.kernel import AddressEntry

    return AddressEntry(kernel, *arguments)


def address_of(value: Any) -> Any:
    """Return a bundle as an entry takes it: its address, or itself the plain way."""
    return written_at(value) if is_trusted() else value
