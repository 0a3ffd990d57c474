"""What Numba knows of operators and builtin functions, looked up once and not again and again.

Numba finds out what ``a + b`` means by trying dozens of declarations, for every addition of every
kernel and again when it is translated. It looks for new declarations in all of its modules whenever
one is missing, and compiles ``max``, ``min`` and ``int`` to functions of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core import cgutils, ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic


@contextmanager
def remembered() -> Iterator[None]:
    """Let Numba remember declarations that it has found, while a kernel is compiled."""
    contexts = cpu_target.typing_context, cpu_target.target_context
    with global_compiler_lock:
        if any("refresh" in vars(context) for context in contexts):
            # For a kernel that this one is a part of.
            yield
            return
        find = BaseFunction.get_call_type
        refreshes = [Refresh(context) for context in contexts]
        BaseFunction.get_call_type = lambda *arguments: _SIGNATURES.of(find, *arguments)
        for context, refresh in zip(contexts, refreshes, strict=True):
            context.refresh = refresh
        try:
            yield
        finally:
            BaseFunction.get_call_type = find
            for context, refresh in zip(contexts, refreshes, strict=True):
                del context.refresh
                refresh.is_compiling = False


class Signatures:
    """Signatures of calls, by function, types of arguments, and flags of the compiler."""

    def __init__(self) -> None:
        self._by_flags: dict[Any, dict[Any, Any]] = {}
        self._flags: Any = None
        self._known: dict[Any, Any] = {}

    def of(
        self,
        find: Callable[..., Any],
        function: BaseFunction,
        context: Any,
        args: tuple[Any, ...],
        kws: dict[str, Any],
    ) -> Any:
        """Return the signature of a call, found by Numba unless it is known."""
        flags = ConfigStack.top_or_none()
        if flags is not self._flags:
            # An overload, as Numba calls it, is compiled for the flags of its caller.
            key = None if flags is None else repr(flags)
            self._flags, self._known = flags, self._by_flags.setdefault(key, {})
        # Functions of the same name are equal; what is known of one is in its own memory.
        call = id(function), context, args, tuple(kws.items())
        if call not in self._known:
            # Kept as well, or another function might get its number.
            self._known[call] = find(function, context, args, kws), function
        return self._known[call][0]


_SIGNATURES = Signatures()


class Refresh:
    """Looks for new declarations: the first time in all of Numba, then only in known registries.

    Numba's own begins by importing all modules that might have some, and does so again for each of
    hundreds of declarations that it finds. Copies of the context keep this one; when the kernel is
    compiled, it does what Numba's own does.
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self.is_compiling = True
        self.is_known = False

    def __call__(self) -> None:
        """Look for them."""
        context = self.context
        if self.is_known and self.is_compiling:
            for registry in list(context._registries):
                context.install_registry(registry)
            return
        self.is_known = True
        type(context).refresh(context)


# ---- builtin functions ---------------------------------------------------------------------------


def _extreme(compare: Callable[[Any, Any], Any]) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def extreme(typing_context, *numbers):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
            kinds = signature.args[0]
            return do_minmax(
                context, builder, kinds, cgutils.unpack_tuple(builder, values[0]), compare
            )

        return typing_context.unify_types(*numbers)(types.StarArgTuple(numbers)), codegen

    return extreme


@intrinsic  # type: ignore[untyped-decorator]
def _integer(typing_context, number):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
        return context.cast(builder, values[0], signature.args[0], signature.return_type)

    return (number if isinstance(number, types.Integer) else types.intp)(number), codegen


INTRINSICS: dict[Any, Any] = {
    max: _extreme(operator.gt),
    min: _extreme(operator.lt),
    int: _integer,
}


@register_pass(mutates_CFG=False, analysis_only=False)  # type: ignore[untyped-decorator]
class ReplaceBuiltins(FunctionPass):  # type: ignore[misc]
    """Puts the same arithmetic in place of ``max``, ``min`` and ``int``, without a function."""

    _name = "replace_builtins"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Replace them."""
        for block in state.func_ir.blocks.values():
            for assignment in block.find_insts(ir.Assign):
                value = assignment.value
                if isinstance(value, ir.Global) and value.value in (max, min, int):
                    value.value = INTRINSICS[value.value]
        return True
