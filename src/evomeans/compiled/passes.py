"""How kernels become LLVM's language: passes of the compiler where Numba's own write too much.

* Numba writes the whole description of an array to memory for every access to an element, and reads
  back what it needs. LLVM gets rid of that, but most of what it had to read was that.
* Numba compiles ``max``, ``min`` and ``int`` to functions of their own, for every mixture of types.

Only processes that compile import this module.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from evomeans.compiled.numba_private import (
    Assign,
    BaseNativeLowering,
    FunctionPass,
    Global,
    Lower,
    cgutils,
    do_minmax,
    fix_integer_index,
    load_item,
    register_pass,
    store_item,
)

# ---- elements of arrays --------------------------------------------------------------------------


class KernelLower(Lower):  # type: ignore[misc]
    """Translates a kernel: single elements and shapes of arrays here, all else by Numba."""

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Translate an expression."""
        if expr.op in ("getattr", "static_getitem"):
            kind = self.typeof(expr.value.name)
            if expr.op == "getattr" and expr.attr == "shape" and is_plain(kind):
                return self._field(kind, self.loadvar(expr.value.name), "shape")
            if expr.op == "static_getitem" and is_plain(kind) and expr.index_var is not None:
                signature = self.fndesc.calltypes[expr]
                return self.lower_getitem(resty, expr, expr.value, expr.index_var, signature)
        return super().lower_expr(resty, expr)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Translate ``value[index]``."""
        pointer = self._pointer(value, index, signature)
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        item = load_item(self.context, self.builder, self.typeof(value.name), pointer)
        return self.context.cast(self.builder, item, signature.return_type, resty)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> None:
        """Translate ``target[index] = value``."""
        pointer = self._pointer(target, index, signature)
        if pointer is None:
            super().lower_setitem(target, index, value, signature)
            return
        kind, given = self.typeof(target.name), self.typeof(value.name)
        item = self.loadvar(value.name)
        for wanted in (signature.args[2], kind.dtype):
            item, given = self.context.cast(self.builder, item, given, wanted), wanted
        store_item(self.context, self.builder, kind, item, pointer)

    def _pointer(self, array: Any, index: Any, signature: Any) -> Any:
        """Return the address of an element; None if the index does not name a single one."""
        kind, wanted = self.typeof(array.name), signature.args[1]
        kinds = wanted.types if isinstance(wanted, types.BaseTuple) else (wanted,)
        if (
            not is_plain(kind)
            or len(kinds) != kind.ndim
            or not all(isinstance(one, types.Integer) for one in kinds)
            or self.context.enable_boundscheck
        ):
            return None
        context, builder = self.context, self.builder
        value = self.loadvar(array.name)
        given = self.loadvar(index.name)
        given = context.cast(builder, given, self.typeof(index.name), wanted)
        indices = cgutils.unpack_tuple(builder, given) if kinds != (wanted,) else [given]
        shape, strides = (
            cgutils.unpack_tuple(builder, self._field(kind, value, name), kind.ndim)
            for name in ("shape", "strides")
        )
        fixed = [
            fix_integer_index(context, builder, one, place, size)
            for one, place, size in zip(kinds, indices, shape, strict=True)
        ]
        data = self._field(kind, value, "data")
        return cgutils.get_item_pointer2(
            context, builder, data, shape, strides, kind.layout, fixed, wraparound=False
        )

    def _field(self, kind: Any, value: Any, name: str) -> Any:
        """Return a field of the description of an array."""
        place = self.context.data_model_manager[kind].get_field_position(name)
        return self.builder.extract_value(value, place)


def is_plain(kind: Any) -> bool:
    """Whether this is the type of NumPy's arrays, and of nothing derived from them."""
    return type(kind) is types.Array


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(BaseNativeLowering):  # type: ignore[misc]
    """The pass that translates a kernel."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What does it."""
        return KernelLower


# ---- builtin functions ---------------------------------------------------------------------------


def _extreme(compare: Callable[[Any, Any], Any]) -> Any:
    @intrinsic
    def extreme(typing_context, *numbers):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
            kinds = signature.args[0]
            return do_minmax(
                context, builder, kinds, cgutils.unpack_tuple(builder, values[0]), compare
            )

        return typing_context.unify_types(*numbers)(types.StarArgTuple(numbers)), codegen

    return extreme


@intrinsic
def _integer(typing_context, number):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
        return context.cast(builder, values[0], signature.args[0], signature.return_type)

    return (number if isinstance(number, types.Integer) else types.intp)(number), codegen


INTRINSICS: dict[Any, Any] = {
    max: _extreme(operator.gt),
    min: _extreme(operator.lt),
    int: _integer,
}


@register_pass(mutates_CFG=False, analysis_only=False)
class ReplaceBuiltins(FunctionPass):  # type: ignore[misc]
    """Puts the same arithmetic in place of ``max``, ``min`` and ``int``, without a function."""

    _name = "replace_builtins"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Replace them."""
        for block in state.func_ir.blocks.values():
            for assignment in block.find_insts(Assign):
                value = assignment.value
                if isinstance(value, Global) and value.value in (max, min, int):
                    value.value = INTRINSICS[value.value]
        return True
