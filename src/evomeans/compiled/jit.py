"""How kernels are compiled, how Python enters them, and how they call others by address.

Where the compiler layer is trusted, they are entered by addresses of bundles and of machine code.
Otherwise the plain way: Python passes the bundles themselves, and kernels call functions in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from evomeans.compiled.bundle import written_at
from evomeans.compiled.check import is_trusted
from evomeans.compiled.kernel import AddressedKernel, Kernel
from evomeans.compiled.numba_private import call_kernel
from evomeans.compiled.plain import PlainKernel, call_function

# Everything of fastmath except nnan and ninf, for kernels that may meet infinities.
REORDER = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})
# All of it. Only with this are minima and maxima of floating-point numbers vectorised.
FINITE = REORDER | {"nnan", "ninf"}
Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def jit(function: Function) -> Function: ...
@overload
def jit(
    *,
    fastmath: frozenset[str] = ...,
    inline: bool = ...,
    by_address: bool = ...,
    choose: Callable[..., Callable[..., Any]] | None = ...,
) -> Callable[[Function], Function]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    fastmath: frozenset[str] = frozenset(),
    inline: bool = True,
    by_address: bool = False,
    choose: Callable[..., Callable[..., Any]] | None = None,
) -> Any:
    """Compile a kernel on its first call, without the GIL, and keep the machine code on disk.

    * ``function``: the kernel; arrays, bundles and numbers in and out. It cannot allocate arrays.
    * ``fastmath``: what the compiler may do to floating-point arithmetic: REORDER lets it reorder
      sums, which is what vectorises them; FINITE also lets it assume that no number is infinite or
      none.
    * ``inline``: whether every kernel that calls it gets a copy of its own. A call costs some
      nanoseconds, and a copy some tenths of a second of compilation.
    * ``by_address``: whether it is only called by its address, by
      :func:`~evomeans.compiled.jit.call_at` or through what its method ``entry`` returns.
      What a call from Python needs takes a tenth of the compilation, if there are many arrays.
    * ``choose``: takes the types of the arguments, and returns the function to compile for them
      instead.
    """
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": set(fastmath),
        "forceinline": inline,
        "boundscheck": None,
    }

    def compiled(function: Callable[..., Any]) -> Any:
        if not is_trusted():
            return PlainKernel(function, options, choose)
        kind = AddressedKernel if by_address else Kernel
        return kind(function, {**options, "no_cpython_wrapper": by_address}, choose)

    return compiled if function is None else compiled(function)


call_at: Any = call_kernel if is_trusted() else call_function
"""Calls a kernel that returns nothing, for kernels: ``call_at(kernel.address(...), ...)``.

The arguments have to be of exactly the types that the address was asked for.
"""


address_of: Callable[[Any], Any] = written_at if is_trusted() else lambda value: value
"""Returns a bundle as an entry of a kernel takes it: its address, or itself the plain way."""
