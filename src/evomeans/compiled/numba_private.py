"""All names of Numba outside its documented interface, and what each of them is for.

They may change with any release. So ``pyproject.toml`` has an upper bound, and
:mod:`evomeans.compiled.check` looks whether what is below is as we know it before any of it is
used. The plain way of :mod:`evomeans.compiled.plain` needs the first group only.

A kernel that another kernel calls is a *part*: it is only translated to LLVM's language, and
optimised with the *whole*, a kernel that Python calls (docs/background/cpu-engine.md).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

# What types and intrinsics of our own are made of; Numba's own guides to extending it use these.
from llvmlite import ir  # instructions and types of LLVM
from numba import types
from numba.core import cgutils  # memory of functions, and tuples in them
from numba.core.typing.templates import AttributeTemplate  # which attributes a type has
from numba.extending import intrinsic

# What is passed on; all else is defined here.
__all__ = ["AttributeTemplate", "CPUDispatcher", "cgutils", "ir"]

# What the compiler of our own is made of. A Numba without one of them is used the plain way.
MISSING: str | None = None
try:
    from numba.core.codegen import (
        JITCodeLibrary,  # the code of a function, from translation to machine code
        ll,  # LLVM itself: reads the list of names that a cache file holds
    )
    from numba.core.compiler import (
        Compiler,  # translates and optimises a function
        CompileResult,  # what compilation returns, and what a cache file holds
    )
    from numba.core.registry import CPUDispatcher  # what Python calls
except ImportError as error:
    MISSING = str(error)
    # So that what follows can be defined, although nothing will use it.
    JITCodeLibrary = Compiler = CPUDispatcher = object


# ---- what we rely on -----------------------------------------------------------------------------

# Fields of an array as kernels see it, which :func:`evomeans.compiled.bundle.words_of` writes.
ARRAY_FIELDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")
ARRAY_OF_TWO = "{i8*, i8*, i64, i64, double*, [2 x i64], [2 x i64]}"
# How a kernel without a result takes a whole and a floating-point number: after places for a result
# and for an error. :meth:`evomeans.compiled.kernel.Kernel.entry` calls it so.
CALL = "i32 (i8**, {i8*, i32, i8*, i8*, i32}**, i64, double)"


def unexpected(context: Any) -> str | None:
    """Return what of Numba's code generator is not as we know it; None if all is."""
    array = types.Array(types.float64, 2, "A")
    model = context.data_model_manager[array]
    found: tuple[tuple[Any, Any], ...] = (
        (tuple(model._fields), ARRAY_FIELDS),
        (str(model.get_value_type()), ARRAY_OF_TWO),
        (str(calling_type(context, (types.int64, types.float64))), CALL),
    )
    return next((f"{one} instead of {other}" for one, other in found if one != other), None)


def calling_type(context: Any, kinds: Any) -> Any:
    """Return LLVM's type of a kernel that takes these types and returns nothing."""
    return context.call_conv.get_function_type(types.none, kinds)


def calling(call: Callable[..., None]) -> Any:
    """Return what kernels call another one by its address with: ``call`` says how that is done."""

    @intrinsic(prefer_literal=False)
    def call_at(typing_context, address, *arguments):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
            kinds = signature.args[1]
            rest = cgutils.unpack_tuple(builder, values[1], len(kinds))
            call(context, builder, values[0], kinds, rest)
            return context.get_dummy_value()

        return types.none(types.int64, types.StarArgTuple(arguments)), codegen

    return call_at


@calling
def call_kernel(context: Any, builder: Any, address: Any, kinds: Any, values: Any) -> None:
    """Call a kernel that returns nothing."""
    callee = builder.inttoptr(address, calling_type(context, kinds).as_pointer())
    context.call_conv.call_function(builder, callee, types.none, kinds, values)


def processor_of(context: Any) -> tuple[Any, ...]:
    """Return what machine code is made for: system, processor and its features."""
    known: tuple[Any, ...] = context.codegen().magic_tuple()
    return known


def address_of_code(result: Any) -> int:
    """Return where the machine code that was compiled lies."""
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


def packed(result: Any) -> bytes:
    """Return the bytes of what was compiled."""
    return pickle.dumps(result._reduce())


def unpacked(context: Any, payload: bytes) -> Any:
    """Return what was compiled from its bytes."""
    return CompileResult._rebuild(context, *pickle.loads(payload))


class Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that is part of others: neither optimised as a whole nor emitted."""

    def finalize(self) -> None:
        """Leave the code as it is; :class:`Whole` does what remains to be done."""
        self._finalized = True


class Whole(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that Python calls, with all of its parts."""

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return machine code and its names for the cache, without Numba's bitcode."""
        self._ensure_finalized()
        functions, variables = self._final_module.functions, self._final_module.global_variables
        form, own = 'define void @"{}"() {{ ret void }}', '@"{}" = global i8 0'
        named = [form.format(one.name) for one in functions if not one.is_declaration]
        named += [own.format(one.name) for one in variables if not one.is_declaration]
        names = ll.parse_assembly("\n".join(named)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), names)

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
        self.state.flags.no_cfunc_wrapper = True
        return super().compile_extra(function)


class PartCompiler(WholeCompiler):
    """Translates a kernel that other kernels call."""

    library_class = Part

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Translate a function, and let others call it."""
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = True
        result = super().compile_extra(function)
        if not flags.forceinline:
            # Otherwise LLVM inlines it where it sees fit.
            name = result.fndesc.llvm_func_name
            result.library._final_module.get_function(name).add_function_attribute("noinline")
        # Numba finds the code of a function by its entry point, of which there is none.
        result = result._replace(entry_point=result.library)
        self.state.targetctx.insert_user_function(
            result.entry_point, result.fndesc, [result.library]
        )
        return result


class PartDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel as other kernels see it: translated once, since all integers are of one type."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=PartCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call."""
        return super().get_call_template(tuple(map(widened, args)), kws)

    def add_overload(self, result: Any) -> None:
        """Note a translation, which Python cannot call."""
        self.overloads[tuple(result.signature.args)] = result


def widened(kind: Any) -> Any:
    """Return int64 for the integers that fit into it, and other types as they are."""
    if isinstance(kind, types.Integer | types.IntegerLiteral) and kind != types.uint64:
        return types.int64
    return kind
