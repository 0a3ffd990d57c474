"""Kernels: functions that Python and other kernels call, and that are compiled for the caller.

Numba optimises every function on its own, emits machine code for it, and does all of that again
within each caller that it is inlined into. Here, a kernel that another kernel calls is only
translated to LLVM's language, and optimised as a part of the caller. Machine code is made, and kept
on disk, for kernels that Python calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import _FunctionCompiler
from numba.core.registry import CPUDispatcher


class Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that is part of others: neither optimised as a whole nor emitted."""

    def finalize(self) -> None:
        """Leave the code as it is; :class:`Whole` does what remains to be done."""
        self._finalized = True


class Whole(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that Python calls, with all of its parts."""

    def add_linking_library(self, library: Any) -> None:
        """Link a part, and the parts of that part."""
        if library not in self._linking_libraries:
            super().add_linking_library(library)
            if isinstance(library, Part):
                for part in library._linking_libraries:
                    self.add_linking_library(part)


class WholeCompiler(Compiler):  # type: ignore[misc]
    """Compiles a kernel that Python calls."""

    library_class: type[JITCodeLibrary] = Whole

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a function, into a library of our own."""
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library_class(codegen, function.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


class PartCompiler(WholeCompiler):
    """Translates a kernel that other kernels call."""

    library_class = Part

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Translate a function, and let others call it."""
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        result = super().compile_extra(function)
        # Numba finds the code of a function by its entry point, of which there is none.
        result = result._replace(entry_point=result.library)
        self.state.targetctx.insert_user_function(
            result.entry_point, result.fndesc, [result.library]
        )
        return result


class PartDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel as other kernels see it."""

    def add_overload(self, result: Any) -> None:
        """Note a translation, which Python cannot call."""
        self.overloads[tuple(result.signature.args)] = result


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that is compiled on its first call from Python, or with the kernels that call it.

    Parameters
    ----------
    function : callable
    options : dict
        Of Numba.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=WholeCompiler)

    @cached_property
    def part(self) -> PartDispatcher:
        """This kernel as other kernels see it."""
        options = dict(self.targetoptions)
        return PartDispatcher(self.py_func, targetoptions=options, pipeline_class=PartCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call from another kernel."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, signature: Any) -> Any:
        """Return what another kernel calls."""
        return self.part.get_overload(signature)
