"""Kernels: functions that Python and other kernels call, and that are compiled for the caller.

Numba optimises every function on its own, emits machine code for it, and does all of that again
within each caller that it is inlined into. Here, a kernel that another kernel calls is only
translated to LLVM's language, and optimised as a part of the caller. Machine code is made, and kept
on disk, for kernels that Python calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import (
    IRLegalization,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)
from numba.extending import intrinsic

from evomeans.compiled.cache import SharedCache
from evomeans.compiled.collecting import uncollected
from evomeans.compiled.declarations import remembered
from evomeans.compiled.library import Part, Whole

# Seconds after which we do not wait any longer for another process that compiles the same kernel.
LONGEST = 120.0


class WholeCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles a kernel that Python calls.

    Numba's other passes deal with what kernels do not have: closures, generators, array expressions
    and code that depends on literal values.
    """

    library_class: type[JITCodeLibrary] = Whole

    def __init__(self, *arguments: Any) -> None:
        # Imported here, because other processes do without it. And before Numba looks for new
        # declarations, because it has some.
        from evomeans.compiled import passes

        self._own = passes
        super().__init__(*arguments)

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes that kernels need."""
        passes = PassManager("kernel")
        for one in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            self._own.ReplaceBuiltins,
            GenericRewrites,
            ReconstructSSA,
            NopythonTypeInference,
            PreLowerStripPhis,
            IRLegalization,
            self._own.KernelLowering,
            NoPythonBackend,
        ):
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]

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


def widened(kind: Any) -> Any:
    """Return int64 for the integers that fit into it, and other types as they are."""
    if isinstance(kind, types.Integer | types.IntegerLiteral) and kind != types.uint64:
        return types.int64
    return kind


class PartDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel as other kernels see it.

    All integers it takes are of one type, so that it is translated once, and not again for every
    mixture of integers that it is called with.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call."""
        _, args = self._compiler.fold_argument_types(args, kws)
        return super().get_call_template(tuple(map(widened, args)), {})

    def add_overload(self, result: Any) -> None:
        """Note a translation, which Python cannot call."""
        self.overloads[tuple(result.signature.args)] = result


class VariantCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Compiles the variant of a function that is made for the types of its arguments."""

    choose: Callable[..., Callable[..., Any]]

    def _get_implementation(self, args: Any, kws: Any) -> Callable[..., Any]:
        return self.choose(*args)


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that is compiled on its first call from Python, or with the kernels that call it.

    Parameters
    ----------
    function : callable
    options : dict
        Of Numba.
    choose : callable, optional
        Returns the function to compile instead, for these types of the arguments.
    is_kept : bool
        Whether machine code is kept on disk.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        choose: Callable[..., Callable[..., Any]] | None = None,
        *,
        is_kept: bool = True,
    ) -> None:
        self._is_kept = is_kept
        super().__init__(function, targetoptions=options, pipeline_class=WholeCompiler)
        # What Numba has set.
        del self._cache
        self._choose = choose
        self._set_compiler(self, WholeCompiler)

    def _set_compiler(self, dispatcher: CPUDispatcher, pipeline: type[WholeCompiler]) -> None:
        if self._choose is not None:
            dispatcher._compiler = VariantCompiler(
                self.py_func, self.targetdescr, self.targetoptions, {}, pipeline
            )
            dispatcher._compiler.choose = self._choose

    @cached_property
    def _cache(self) -> SharedCache:
        # Made when it is needed: most kernels are only called by others.
        return SharedCache(self.py_func, self._is_kept)

    @cached_property
    def part(self) -> PartDispatcher:
        """The same function as other kernels see it."""
        options = dict(self.targetoptions)
        part = PartDispatcher(self.py_func, targetoptions=options, pipeline_class=PartCompiler)
        self._set_compiler(part, PartCompiler)
        return part

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call from another kernel."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, signature: Any) -> Any:
        """Return what another kernel calls."""
        return self.part.get_overload(signature)

    def compile(self, sig: Any) -> Any:
        """Compile for types of arguments, or load what this or another process has compiled."""
        self.compile_unless_claimed(sig, timeout=LONGEST)
        with uncollected(), remembered():
            return super().compile(sig)

    def compile_unless_claimed(self, sig: Any, timeout: float = 0.0) -> None:
        """Compile, unless another process is doing so and is not done after ``timeout`` seconds."""
        if self.is_compiled(sig):
            return
        with self._cache.claimed(sig, self.targetctx, timeout) as is_ours:
            if is_ours:
                with uncollected(), remembered():
                    super().compile(sig)

    def is_compiled(self, sig: Any) -> bool:
        """Whether nothing has to be compiled: it is at hand, or in the cache on disk."""
        return sig in self.overloads or self._cache.holds(sig, self.targetctx)

    @property
    def can_share(self) -> bool:
        """Whether other processes find what this one compiles, and the other way round."""
        return self._cache.folder is not None

    def types_of(self, arguments: Iterable[Any]) -> tuple[Any, ...]:
        """Return the types for which a call with these arguments is compiled."""
        return tuple(map(self.typeof_pyval, arguments))

    def address(self, *arguments: Any) -> int:
        """Return where the machine code for these arguments is, for :func:`call_at`."""
        kinds = self.types_of(arguments)
        self.compile(kinds)
        result = self.overloads[kinds]
        return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


class AddressedKernel(Kernel):
    """A kernel that Python calls through an entry only: there is nothing else to call."""

    def __call__(self, *arguments: Any) -> None:
        """Refuse to be called."""
        raise TypeError(f"{self.py_func.__name__!r} is called by its address only; see Entry.")


@intrinsic(prefer_literal=False)
def call_at(typing_context, address, *arguments):  # type: ignore[no-untyped-def]
    """Call a kernel that returns nothing by its address.

    Its arguments have to be of exactly the types that the address was asked for.
    """

    def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
        kinds = signature.args[1]
        function = context.call_conv.get_function_type(types.none, kinds)
        callee = builder.inttoptr(values[0], function.as_pointer())
        rest = cgutils.unpack_tuple(builder, values[1], len(kinds))
        context.call_conv.call_function(builder, callee, types.none, kinds, rest)
        return context.get_dummy_value()

    return types.none(types.int64, types.StarArgTuple(arguments)), codegen
