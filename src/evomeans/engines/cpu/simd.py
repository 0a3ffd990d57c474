"""64 float32 numbers as one value: the vector type of kernels that work on whole tiles.

Compilers vectorise a loop over 64 samples only sometimes. With values of this type, ``a + b``
always adds 64 numbers, and a result stays in registers until it is stored.

For kernels only, and for finite numbers only. There are ``load`` and ``store`` for rows of
(m, WIDTH) arrays, ``+``, ``-`` and ``*`` (also with a single number on the right), and:

    lower, higher            minimum and maximum, lane by lane
    lowest, highest          minimum and maximum over all lanes, one number
    where_less, where_equal  a choice between two vectors, lane by lane
    less, unequal            the lanes for which a comparison holds, as the bits of a uint64
    first_lane               the first of such lanes
    repeat, root, multiply_add

:func:`float_bits` helps in loops of other lengths: compilers vectorise minima and maxima of
integers, but not of floating-point numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from evomeans.compiled.numba_private import cgutils, ir

# Lanes of a vector, and samples of a tile.
WIDTH = 64
EVERY_LANE = np.uint64(2**WIDTH - 1)
FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, WIDTH)
REDUCE = "llvm.vector.reduce."
# All numbers are finite, and LLVM may reorder operations.
FAST = ("fast",)


class LanesType(types.Type):  # type: ignore[misc]
    """The Numba type of 64 float32 numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


LANES = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """Represented by one LLVM vector."""

    def __init__(self, manager: Any, lanes: Any) -> None:
        super().__init__(manager, lanes, VECTOR)


def _call(builder: Any, name: str, result: Any, vectors: Any) -> Any:
    """Call one of LLVM's own functions of vectors."""
    kind = ir.FunctionType(result, [VECTOR] * len(vectors))
    function = cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{WIDTH}f32")
    return builder.call(function, vectors, fastmath=FAST)


def _row_address(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    first = builder.gep(data, [builder.mul(row, row.type(WIDTH))])
    lanes = ir.VectorType(context.get_data_type(array_type.dtype), WIDTH)
    return builder.bitcast(first, lanes.as_pointer())


@intrinsic
def load(typing_context, array, row):  # type: ignore[no-untyped-def]
    """``array[row]`` of a C-ordered (m, WIDTH) array of float32 or unsigned integers."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        address = _row_address(context, builder, signature.args[0], *arguments)
        value = builder.load(address, align=signature.args[0].dtype.bitwidth // 8)
        is_integer = isinstance(signature.args[0].dtype, types.Integer)
        return builder.uitofp(value, VECTOR) if is_integer else value

    return LANES(array, types.intp), codegen


@intrinsic
def store(typing_context, array, row, lanes):  # type: ignore[no-untyped-def]
    """Set ``array[row]`` of a C-ordered (m, WIDTH) array of float32."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        address = _row_address(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


def _spread(builder: Any, number: Any) -> Any:
    first = ir.Constant(ir.IntType(32), 0)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, first)
    return builder.shuffle_vector(one, one, everywhere)


def _operation(name: str, result: Any, kinds: list[Any], instruction: Callable[..., Any]) -> Any:
    """Make an intrinsic of values of these types."""

    def function(typing_context, *values):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return instruction(builder, *arguments)

        return result(*kinds), codegen

    names = ["typing_context", *"abcd"[: len(kinds)]]
    parameters = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in names]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = name
    return intrinsic(function)


def _pick(builder: Any, comparison: str, a: Any, b: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(comparison, a, b, flags=FAST), x, y)


PAIR = [LANES, LANES]
lower = _operation("lower", LANES, PAIR, lambda builder, a, b: _pick(builder, "<", a, b, a, b))
higher = _operation("higher", LANES, PAIR, lambda builder, a, b: _pick(builder, ">", a, b, a, b))
where_less = _operation(
    "where_less", LANES, 2 * PAIR, lambda builder, *four: _pick(builder, "<", *four)
)
where_equal = _operation(
    "where_equal", LANES, 2 * PAIR, lambda builder, *four: _pick(builder, "==", *four)
)
# The same number in all lanes.
repeat = _operation("repeat", LANES, [types.float32], _spread)
# No lane may be negative.
root = _operation(
    "root", LANES, [LANES], lambda builder, a: _call(builder, "llvm.sqrt", VECTOR, [a])
)
# a·b + c, in one operation if the machine has it.
multiply_add = _operation(
    "multiply_add",
    LANES,
    [LANES, *PAIR],
    lambda builder, *three: _call(builder, "llvm.fmuladd", VECTOR, three),
)


def _define_operator(symbol: Any, name: str) -> None:
    """Let an operator take two vectors, or a vector and a number."""

    @type_callable(symbol)  # type: ignore[untyped-decorator]
    def type_of_operator(context: Any) -> Callable[[Any, Any], Any]:
        def typer(a: Any, b: Any) -> Any:
            if isinstance(a, LanesType) and isinstance(b, LanesType):
                return LANES
            is_number = isinstance(a, LanesType) and isinstance(b, types.Float)
            return LANES(LANES, types.float32) if is_number else None

        return typer

    def of_two(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return getattr(builder, name)(*arguments, flags=FAST)

    def of_number(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        lanes, number = arguments
        return getattr(builder, name)(lanes, _spread(builder, number), flags=FAST)

    lower_builtin(symbol, LanesType, LanesType)(of_two)
    lower_builtin(symbol, LanesType, types.Float)(of_number)


_define_operator(operator.add, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")


def _as_bits(builder: Any, lanes: Any) -> Any:
    return builder.bitcast(lanes, ir.IntType(WIDTH))


# The lanes in which two vectors differ, or in which the first is less, one bit for each.
unequal = _operation(
    "unequal",
    types.uint64,
    PAIR,
    lambda builder, a, b: _as_bits(builder, builder.fcmp_unordered("!=", a, b)),
)
less = _operation(
    "less",
    types.uint64,
    PAIR,
    lambda builder, a, b: _as_bits(builder, builder.fcmp_ordered("<", a, b)),
)
# The first lane whose bit is set; there has to be one.
first_lane = _operation(
    "first_lane",
    types.int64,
    [types.uint64],
    lambda builder, bits: builder.cttz(bits, ir.Constant(ir.IntType(1), 1)),
)


lowest = _operation(
    "lowest", types.float32, [LANES], lambda builder, a: _call(builder, REDUCE + "fmin", FLOAT, [a])
)
highest = _operation(
    "highest",
    types.float32,
    [LANES],
    lambda builder, a: _call(builder, REDUCE + "fmax", FLOAT, [a]),
)
# The bits of a float32 as an int32, with the same sign, and the same order if not negative; and
# the float32 with these bits.
float_bits = _operation(
    "float_bits",
    types.int32,
    [types.float32],
    lambda builder, a: builder.bitcast(a, ir.IntType(32)),
)
bits_float = _operation(
    "bits_float", types.float32, [types.int32], lambda builder, a: builder.bitcast(a, FLOAT)
)
