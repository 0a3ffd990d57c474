"""Vectors of 64 numbers: every operation, lane by lane, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import PAD
from evomeans.engines.cpu.simd import (
    WIDTH,
    bits_float,
    first_lane,
    float_bits,
    higher,
    highest,
    less,
    load,
    lower,
    lowest,
    multiply_add,
    root,
    store,
    unequal,
    where_equal,
    where_less,
)

UNIT = 2.0**-24


@st.composite
def lanes(draw, rows: int = 4):
    """Rows of finite float32 numbers of all sizes, or of few values, so that many are equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(["all sizes", "one size", "integers", "zeros"]))
    values = rng.normal(size=(rows, WIDTH))
    if kind == "all sizes":
        values *= 10.0 ** rng.integers(-15, 16, size=values.shape)
    elif kind == "integers":
        values = rng.integers(-2, 3, size=values.shape).astype(float)
    elif kind == "zeros":
        values *= rng.random(size=values.shape) < 0.1
    return values.astype(np.float32)


def mask(lanes_set) -> np.uint64:
    """One bit for each lane, the first one lowest."""
    return np.uint64(sum(1 << lane for lane in np.flatnonzero(lanes_set).tolist()))


# ---- memory --------------------------------------------------------------------------------------


@jit
def copy_rows(rows, out):
    for r in range(rows.shape[0]):
        store(out, rows.shape[0] - 1 - r, load(rows, r))


@given(lanes(rows=3), st.integers(0, 15))
def test_rows_are_loaded_and_stored_wherever_they_lie_in_memory(values, shift) -> None:
    """Also at addresses that no vector register likes; what is next to them is left alone."""
    memory = np.full((2, shift + 3 * WIDTH + 1), 7.0, np.float32)
    inside = slice(shift, shift + 3 * WIDTH)
    rows, out = (part[inside].reshape(3, WIDTH) for part in memory)
    rows[:] = values
    copy_rows(rows, out)
    assert_array_equal(out, values[::-1])
    assert (memory[1, :shift] == 7.0).all()
    assert memory[1, -1] == 7.0


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_unsigned_integers_become_the_same_numbers(dtype) -> None:
    """Up to 2²⁴, and beyond the range of a signed integer of their size."""
    rng = np.random.default_rng(0)
    largest = min(np.iinfo(dtype).max, 2**24)
    integers = rng.integers(0, largest, size=(4, WIDTH), endpoint=True).astype(dtype)
    integers[0, :3] = 0, largest, largest - 1
    if dtype is np.uint32:
        integers[1, 0] = 2**31 + 2**30
    out = np.empty((4, WIDTH), np.float32)
    copy_rows(integers, out)
    assert_array_equal(out[::-1].astype(np.int64), integers.astype(np.int64))


# ---- operations ----------------------------------------------------------------------------------


@jit
def compute(four, number, out, masks, ends):
    a, b, x, y = load(four, 0), load(four, 1), load(four, 2), load(four, 3)
    store(out, 0, a + b)
    store(out, 1, a - b)
    store(out, 2, a * b)
    store(out, 3, a + number)
    store(out, 4, a - number)
    store(out, 5, a * number)
    store(out, 6, lower(a, b))
    store(out, 7, higher(a, b))
    store(out, 8, where_less(a, b, x, y))
    store(out, 9, where_equal(a, b, x, y))
    store(out, 10, multiply_add(a, b, x))
    store(out, 11, root(higher(a, a - (a + a))))
    masks[0], masks[1], masks[2] = less(a, b), unequal(a, b), unequal(a, a)
    ends[0], ends[1] = lowest(a), highest(a)


@given(lanes(), st.floats(-(2.0**50), 2.0**50, width=32), st.integers(0, WIDTH - 1))
def test_operations_are_those_of_numpy_lane_by_lane(four, number, place) -> None:
    """Only roots and a·b + c may be rounded otherwise, and bounds allow for that."""
    number, out = np.float32(number), np.empty((12, WIDTH), np.float32)
    masks, ends = np.empty(3, np.uint64), np.empty(2, np.float32)
    for extreme in (0.0, -1e15, 1e15):
        four[0, place] += np.float32(extreme)
        a, b, x, y = four
        compute(four, number, out, masks, ends)
        expected = [a + b, a - b, a * b, a + number, a - number, a * number]
        expected += [np.minimum(a, b), np.maximum(a, b)]
        assert_array_equal(out[:10], [*expected, np.where(a < b, x, y), np.where(a == b, x, y)])
        assert_array_equal(masks, [mask(a < b), mask(a != b), 0])
        assert_array_equal(ends, [a.min(), a.max()])
        product, exact = a.astype(float) * b, a.astype(float) * b + x
        error = 1.01 * UNIT * (np.abs(product) + np.abs(exact)) + 1e-44
        assert (np.abs(out[10] - exact) <= error).all()
        roots = np.sqrt(np.abs(a).astype(float))
        assert (np.abs(out[11] - roots) <= PAD / 2 * roots).all()


@jit
def visit(bits, visited):
    """Write down the lanes of a mask as kernels go through them; return how many."""
    count = 0
    while bits != 0:
        visited[count] = first_lane(bits)
        bits &= bits - np.uint64(1)
        count += 1
    return count


@given(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 63).map(lambda lane: 1 << lane)))
def test_the_lanes_of_a_mask_are_visited_from_the_first_to_the_last(bits) -> None:
    visited = np.empty(WIDTH, np.int64)
    count = visit(np.uint64(bits), visited)
    assert_array_equal(visited[:count], [lane for lane in range(WIDTH) if bits >> lane & 1])


@jit
def to_bits(numbers, bits, back):
    for i in range(numbers.shape[0]):
        bits[i] = float_bits(numbers[i])
        back[i] = bits_float(bits[i])


@given(lanes(rows=1))
def test_bits_keep_the_number_its_sign_and_the_order_of_positive_ones(values) -> None:
    numbers = np.sort(values[0])
    bits, back = np.empty(WIDTH, np.int32), np.empty(WIDTH, np.float32)
    to_bits(numbers, bits, back)
    assert_array_equal(bits, numbers.view(np.int32))
    assert back.tobytes() == numbers.tobytes()
    assert_array_equal(bits < 0, np.signbit(numbers))
    positive = ~np.signbit(numbers)
    assert_array_equal(np.diff(bits[positive]) > 0, np.diff(numbers[positive]) > 0)
    assert (np.diff(bits[positive]) >= 0).all()
