"""64 float32 numbers as one value: the vector type of kernels that work on whole tiles.

Compilers vectorise a loop over 64 samples only sometimes, and do not keep its results in registers
for the next loop. With values of this type, ``a + b`` always adds 64 numbers, and a result stays in
registers until it is stored. LLVM splits the values into registers of the size of the machine.

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
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from evomeans.compiled.numba_private import cgutils, ir

# Lanes of a vector, and samples of a tile.
WIDTH = 64
EVERY_LANE = np.uint64(2**WIDTH - 1)
VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
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


def _unary(name: str, result: Any, kind: Any, instruction: Callable[..., Any]) -> Any:
    """Make an intrinsic of one value."""

    def function(typing_context, a):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return instruction(builder, *arguments)

        return result(kind), codegen

    function.__name__ = name
    return intrinsic(function)


def _binary(name: str, result: Any, instruction: Callable[..., Any]) -> Any:
    """Make an intrinsic of two vectors."""

    def function(typing_context, a, b):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return instruction(builder, *arguments)

        return result(LANES, LANES), codegen

    function.__name__ = name
    return intrinsic(function)


def _pick(builder: Any, comparison: str, a: Any, b: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(comparison, a, b, flags=FAST), x, y)


lower = _binary("lower", LANES, lambda builder, a, b: _pick(builder, "<", a, b, a, b))
higher = _binary("higher", LANES, lambda builder, a, b: _pick(builder, ">", a, b, a, b))
# The same number in all lanes.
repeat = _unary("repeat", LANES, types.float32, _spread)
# No lane may be negative.
root = _unary("root", LANES, LANES, lambda builder, a: _call(builder, "llvm.sqrt", VECTOR, [a]))


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


@intrinsic
def multiply_add(typing_context, a, b, c):  # type: ignore[no-untyped-def]
    """a·b + c, in one operation if the machine has it."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _call(builder, "llvm.fmuladd", VECTOR, arguments)

    return LANES(a, b, c), codegen


def _choice(name: str, comparison: str) -> Any:
    """Make an intrinsic that compares two vectors and picks from two others, lane by lane."""

    def function(typing_context, a, b, x, y):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return _pick(builder, comparison, *arguments)

        return LANES(a, b, x, y), codegen

    function.__name__ = name
    return intrinsic(function)


where_less = _choice("where_less", "<")
where_equal = _choice("where_equal", "==")


def _as_bits(builder: Any, lanes: Any) -> Any:
    return builder.bitcast(lanes, ir.IntType(WIDTH))


# The lanes in which two vectors differ, or in which the first is less, one bit for each.
unequal = _binary(
    "unequal",
    types.uint64,
    lambda builder, a, b: _as_bits(builder, builder.fcmp_unordered("!=", a, b)),
)
less = _binary(
    "less", types.uint64, lambda builder, a, b: _as_bits(builder, builder.fcmp_ordered("<", a, b))
)
# The first lane whose bit is set; there has to be one.
first_lane = _unary(
    "first_lane",
    types.int64,
    types.uint64,
    lambda builder, bits: builder.cttz(bits, ir.Constant(ir.IntType(1), 1)),
)


def _reduction(name: str, llvm_name: str) -> Any:
    """Make an intrinsic from a vector to a number."""
    number = ir.FloatType()
    return _unary(
        name, types.float32, LANES, lambda builder, a: _call(builder, llvm_name, number, [a])
    )


lowest = _reduction("lowest", "llvm.vector.reduce.fmin")
highest = _reduction("highest", "llvm.vector.reduce.fmax")

# The bits of a float32 as an int32, with the same sign, and the same order if not negative; and
# the float32 with these bits.
float_bits = _unary(
    "float_bits", types.int32, types.float32, lambda builder, a: builder.bitcast(a, ir.IntType(32))
)
bits_float = _unary(
    "bits_float", types.float32, types.int32, lambda builder, a: builder.bitcast(a, ir.FloatType())
)
