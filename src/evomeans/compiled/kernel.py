"""Kernels: functions that Python and other kernels call, by name or by the address of their code.

Machine code is made, and kept on disk, for kernels that Python calls. How Numba is brought to that
is in :mod:`evomeans.compiled.numba_private`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from numba import types

from evomeans.compiled.bundle import BundleType
from evomeans.compiled.cache import SharedCache
from evomeans.compiled.numba_private import (
    CPUDispatcher,
    PartDispatcher,
    WholeCompiler,
    address_of_code,
)

# Seconds to wait for another process that compiles the same kernel.
LONGEST_WAIT = 120.0
# No reference counting, whose atomic operations would make threads wait for each other: so kernels
# cannot allocate.
OWN_OPTIONS = {"nopython": True, "_nrt": False}
C_TYPES: dict[Any, Any] = {
    types.int64: ctypes.c_int64,
    types.float64: ctypes.c_double,
    types.boolean: ctypes.c_bool,
}


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that is compiled on its first call from Python, or with the kernels that call it.

    * ``options``: of Numba.
    * ``choose``: returns the function to compile instead, for these types of the arguments. Such a
      kernel is called by other kernels only.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        choose: Callable[..., Callable[..., Any]] | None = None,
    ) -> None:
        own = {**options, **OWN_OPTIONS}
        super().__init__(function, targetoptions=own, pipeline_class=WholeCompiler)
        # Numba asks it.
        self._cache = SharedCache(function)
        self._choose = choose
        self._parts: dict[Callable[..., Any], PartDispatcher] = {}

    def part_for(self, kinds: tuple[Any, ...]) -> PartDispatcher:
        """Return the same function as other kernels see it, or the one for these types."""
        function = self.py_func if self._choose is None else self._choose(*kinds)
        if function not in self._parts:
            self._parts[function] = PartDispatcher(function, dict(self.targetoptions))
        return self._parts[function]

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call from another kernel."""
        return self.part_for(args).get_call_template(args, kws)

    def get_overload(self, kinds: tuple[Any, ...]) -> Any:
        """Return what another kernel calls."""
        return self.part_for(kinds).get_overload(kinds)

    def compile(self, sig: Any) -> Any:
        """Compile for types of arguments, or load what this or another process has compiled."""
        if self._choose is not None:
            raise TypeError(f"{self.py_func.__name__!r} is called by other kernels only.")
        self.compile_unless_claimed(sig, timeout=LONGEST_WAIT)
        return super().compile(sig)

    def compile_unless_claimed(self, sig: Any, timeout: float = 0.0) -> None:
        """Compile, unless another process is doing so and is not done after ``timeout`` seconds."""
        if self.is_compiled(sig):
            return
        with self._cache.claimed(sig, self.targetctx, timeout) as is_ours:
            if is_ours:
                super().compile(sig)

    def is_compiled(self, sig: Any) -> bool:
        """Whether nothing has to be compiled: it is in memory, or in the cache on disk."""
        return sig in self.overloads or self._cache.holds(sig, self.targetctx)

    @property
    def can_share(self) -> bool:
        """Whether other processes find what this one compiles, and the other way round."""
        return self._cache.folder is not None

    def types_of(self, arguments: Iterable[Any]) -> tuple[Any, ...]:
        """Return the types for which a call with these arguments is compiled."""
        return tuple(map(self.typeof_pyval, arguments))

    def address(self, *arguments: Any) -> int:
        """Return where the machine code for these arguments is, see ``call_at``."""
        kinds = self.types_of(arguments)
        self.compile(kinds)
        return address_of_code(self.overloads[kinds])

    def entry(self, *arguments: Any) -> Callable[..., None]:
        """Return what calls it with addresses of bundles and with numbers; it returns nothing.

        Unlike in a call through Numba, nothing is checked: ``arguments`` are of the types that
        calls will have. A call may have 0 in place of a bundle that the kernel will not use, and
        lets other threads use the interpreter.
        """
        pointer = ctypes.c_void_p
        kinds = [
            pointer if isinstance(kind, BundleType) else C_TYPES[kind]
            for kind in self.types_of(arguments)
        ]

        def check(status: int, *called: Any) -> None:
            if status:
                raise RuntimeError(f"The kernel {self.py_func.__name__!r} has failed.")

        # Numba puts a result and an error before the arguments, and returns a status.
        call = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *kinds)(self.address(*arguments))
        call.errcheck = check  # type: ignore[assignment]
        unused = (ctypes.c_int64 * 2)()
        return partial(call, unused, unused)


class AddressedKernel(Kernel):
    """A kernel that Python calls through an entry only: there is nothing else to call."""

    def __call__(self, *arguments: Any) -> None:
        """Refuse to be called."""
        raise TypeError(
            f"{self.py_func.__name__!r} is called by its address only, see Kernel.entry."
        )
