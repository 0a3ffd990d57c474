"""Kernels that kernels call are parts of these; bundles are passed by their address."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from evomeans.compiled import check
from evomeans.compiled.bundle import bundle
from evomeans.compiled.cache import SharedCache
from evomeans.compiled.check import Inner, Outer, sample
from evomeans.compiled.jit import address_of, call_at, jit


@jit
def square(x: float) -> float:
    return x * x


@jit(inline=False)
def shift(values: NDArray[np.float64], place: int, by: float) -> float:
    values[place] += by
    return values[place]


@jit
def total(values: NDArray[np.float64]) -> float:
    result = 0.0
    for i in range(values.shape[0]):
        result += square(values[i]) + shift(values, np.int32(i), 1.0)
    return result + shift(values, 0, 1.0)


def test_a_kernel_that_a_kernel_calls_is_not_emitted(monkeypatch) -> None:
    """It has no machine code, is translated once for all integers, and stays a function if asked.

    Other kernels are inlined, and so is one that is small unless ``inline=False``.
    """
    monkeypatch.setenv("EVOMEANS_CACHE", "0")
    monkeypatch.setattr(total, "_cache", SharedCache(total.py_func))
    assert total(np.array([1.0, 2.0])) == 1.0 + 2.0 + 4.0 + 3.0 + 3.0
    for kernel in (square, shift):
        assert not kernel.overloads
        (part,) = kernel.part_for(()).overloads.values()
        assert part.library._compiled_object is None
    (whole,) = total.overloads.values()
    assert whole.library._compiled_object is not None
    names = " ".join(one.name for one in whole.library.get_defined_functions())
    assert "shift" in names
    assert "square" not in names


by_size = jit(choose=lambda x: square if str(x) == "float64" else None)(lambda x: x)


def test_a_kernel_with_variants_is_called_by_kernels_only() -> None:
    with pytest.raises(TypeError, match="called by other kernels only"):
        by_size(1.0)


class Plain(NamedTuple):
    inner: NDArray[np.float64]


@bundle
class Filled(NamedTuple):
    numbers: NDArray[np.int64]
    factor: float
    inner: Inner


@jit(inline=False)
def fill(filled: Filled, start: int) -> None:
    for i in range(filled.numbers.shape[0]):
        filled.numbers[i] = start + i
        filled.inner.values[i] = filled.factor * filled.numbers[i]


@jit
def fill_twice(filled: Filled, start: int) -> float:
    fill(filled, start)
    fill(filled, start + 1)
    return filled.inner.values[1]


@pytest.mark.parametrize(("integer", "floating"), [("i8", "f8"), ("i4", "f4")])
def test_kernels_read_and_write_the_arrays_of_a_bundle(integer, floating) -> None:
    """Also of one within another; the type of a bundle has those of its fields."""
    filled = Filled(np.zeros(3, integer), 0.5, Inner(np.zeros(3, floating)))
    assert fill_twice(filled, 10) == 6.0
    assert filled.numbers.tolist() == [11, 12, 13]
    assert filled.inner.values.tolist() == [5.5, 6.0, 6.5]


def test_a_bundle_with_a_wrong_field_is_refused() -> None:
    """A type for which there is no code."""
    with pytest.raises(Exception, match="values"):
        fill_twice(Filled(np.zeros(1, np.int64), 1.0, Plain(np.zeros(1))), 1)  # type: ignore[arg-type]


@jit
def run_at(address: int, filled: Filled, start: int) -> None:
    if address != 0:
        call_at(address, filled, start)


def test_a_kernel_can_be_called_by_its_address() -> None:
    """It is compiled on its own, and not at all if nobody asks for the address."""
    filled = Filled(np.zeros(2, np.int64), 1.0, Inner(np.zeros(2)))
    run_at(0, filled, 5)
    assert filled.numbers.tolist() == [0, 0]
    run_at(fill.address(filled, 5), filled, 5)
    assert filled.numbers.tolist() == [5, 6]


def test_types_of_bundles_can_be_pickled() -> None:
    """They are sent to the processes that help to compile."""
    (kind,) = fill.types_of([sample()])
    assert pickle.loads(pickle.dumps(kind)) is kind


# ---- called from Python by addresses -------------------------------------------------------------

add_up: Any = jit(check.add_up)


@pytest.mark.parametrize("negative", [False, True])
def test_all_kinds_of_fields_arrive(negative) -> None:
    """Arrays with strides, numbers of four and eight bytes, and bundles in bundles."""
    expected, given = sample(), sample()
    add_up(expected, 0.5, 3, negative)
    enter = add_up.entry(given, 0.0, 0, False)
    enter(address_of(given), 0.5, 3, negative)
    assert given.result.tolist() == expected.result.tolist()
    assert given.result[1] == 12.0


@jit(by_address=True)
def triple(tree: Outer) -> None:
    tree.result[0] *= 3.0


def test_a_kernel_may_be_for_entries_only() -> None:
    given = sample()
    given.result[0] = 2.0
    with pytest.raises(TypeError, match="by its address only"):
        triple(given)
    triple.entry(given)(address_of(given))  # type: ignore[attr-defined]
    assert given.result[0] == 6.0


def test_a_bundle_stays_where_it_is_and_a_copy_lies_elsewhere() -> None:
    one = sample()
    assert address_of(one) > 0
    other = pickle.loads(pickle.dumps(one))
    assert address_of(one) == address_of(one)
    assert address_of(other) != address_of(one)
    assert address_of(one._replace(factor=2.0)) != address_of(one)
    assert type(other) is Outer
    enter = add_up.entry(one, 0.0, 0, False)
    enter(address_of(other), 1.0, 1, False)
    assert one.result[1] == 0.0
    assert other.result[1] == 12.0


def test_what_a_bundle_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="not <class 'str'>"):
        address_of(Inner("values"))  # type: ignore[arg-type]
