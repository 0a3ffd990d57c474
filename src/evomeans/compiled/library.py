"""Code of kernels as LLVM sees it: parts, and the wholes that they are linked into.

Numba optimises every function on its own, emits machine code for it, and does all of that again
within each caller that it is inlined into. Here, only wholes are optimised and emitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba.core.codegen import JITCodeLibrary, ll


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of a kernel."""

    def _optimize_functions(self, module: Any) -> None:
        """Simplify the functions of a module, before any are inlined.

        Numba makes a new set of passes for each of them, including those that are only declared.
        """
        if not hasattr(ll, "create_pass_builder"):
            # Numba 0.61 has other passes.
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in defined(module.functions):
            passes.run(function, builder)


class Part(KernelLibrary):
    """The code of a kernel that is part of others: neither optimised as a whole nor emitted."""

    def finalize(self) -> None:
        """Leave the code as it is; :class:`Whole` does what remains to be done."""
        self._finalized = True


class Whole(KernelLibrary):
    """The code of a kernel that Python calls, with all of its parts."""

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return what the cache keeps: machine code, and the names that it defines.

        Numba keeps all of the bitcode as well, to link it to others, and reads it whenever it loads
        the machine code.
        """
        self._ensure_finalized()
        module = self._final_module
        named = [f'define void @"{one.name}"() {{ ret void }}' for one in defined(module.functions)]
        named += [f'@"{one.name}" = global i8 0' for one in defined(module.global_variables)]
        names = ll.parse_assembly("\n".join(named)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), names)

    def add_linking_library(self, library: Any) -> None:
        """Link a part, and the parts of that part."""
        if library not in self._linking_libraries:
            super().add_linking_library(library)
            if isinstance(library, Part):
                for part in library._linking_libraries:
                    self.add_linking_library(part)


def defined(symbols: Iterable[Any]) -> list[Any]:
    """Return the symbols of a module that it does not leave to others."""
    return [symbol for symbol in symbols if not symbol.is_declaration]
