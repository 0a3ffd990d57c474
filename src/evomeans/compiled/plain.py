"""Kernels compiled the plain way, by Numba's documented interface alone.

The same functions with the same results, where :mod:`evomeans.compiled.check` does not trust the
compiler layer with the Numba that is installed. It takes much longer to compile them, and nothing
is kept on disk: Numba's own cache does not notice changes of other modules, nor damaged files.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numba
from numba import types
from numba.extending import overload, typeof_impl

from evomeans.compiled.numba_private import calling, ir


class PlainKernel:
    """A function that Numba compiles when it is called, or the variant that ``choose`` returns."""

    # Another process cannot help.
    can_share = False

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        choose: Callable[..., Callable[..., Any]] | None = None,
    ) -> None:
        self.py_func = function
        self._options = options
        self._addresses: dict[Any, Any] = {}
        if choose is not None:
            function = variant_of(function, options, choose)
        self.dispatcher = numba.njit(**options)(function)
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self.dispatcher(*arguments)

    @property
    def overloads(self) -> Any:
        """What is compiled, by types of arguments."""
        return self.dispatcher.overloads

    def compile(self, sig: Any) -> None:
        """Compile for types of arguments."""
        self.dispatcher.compile(sig)

    def compile_unless_claimed(self, sig: Any, timeout: float = 0.0) -> None:
        """Compile: no other process does it for this one."""
        self.compile(sig)

    def is_compiled(self, sig: Any) -> bool:
        """Whether it is available."""
        return sig in self.dispatcher.overloads

    def types_of(self, arguments: Iterable[Any]) -> tuple[Any, ...]:
        """Return the types for which a call with these arguments is compiled."""
        return tuple(map(numba.typeof, arguments))

    def address(self, *arguments: Any) -> int:
        """Return where a function in C for these arguments is, for :func:`call_function`."""
        kinds = self.types_of(arguments)
        if kinds not in self._addresses:
            options = {name: value for name, value in self._options.items() if name != "nogil"}
            self._addresses[kinds] = numba.cfunc(types.none(*kinds), **options)(self._function)
        return int(self._addresses[kinds].address)

    def entry(self, *arguments: Any) -> Callable[..., None]:
        """Return what calls it; ``arguments`` stand in for unused bundles, and have the types."""
        self.compile(self.types_of(arguments))
        return lambda *given: self(*map(converted, given, arguments))


@typeof_impl.register(PlainKernel)  # type: ignore[untyped-decorator]
def type_of_kernel(kernel: PlainKernel, context: Any) -> Any:
    """Return the type by which Numba knows what other kernels call."""
    return typeof_impl(kernel.dispatcher, context)


def converted(given: Any, known: Any) -> Any:
    """Return an argument of the type that the kernel is compiled for."""
    if isinstance(known, tuple):
        return given if isinstance(given, tuple) else known
    return type(known)(given)


def variant_of(
    function: Callable[..., Any], options: dict[str, Any], choose: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that calls the variant for the types of its arguments."""

    def variant(*kinds: Any) -> Callable[..., Any]:
        return choose(*kinds)

    variant.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    # Not strict: variants have other annotations.
    overload(function, jit_options=options, strict=False)(variant)

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


@calling
def call_function(context: Any, builder: Any, address: Any, kinds: Any, values: Any) -> None:
    """Call a function in C that returns nothing."""
    form = ir.FunctionType(
        context.get_value_type(types.none), list(map(context.get_value_type, kinds))
    )
    builder.call(builder.inttoptr(address, form.as_pointer()), values)
