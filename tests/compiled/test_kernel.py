"""Kernels that kernels call are parts of these; bundles are passed by their address."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.cache import SharedCache
from evomeans.compiled.jit import call_at, jit
from evomeans.engines.cpu.layout import State


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
    """Its library has no machine code, and it is translated once for all integers."""
    monkeypatch.setattr(total, "_cache", SharedCache(total.py_func, is_kept=False))
    assert total(np.array([1.0, 2.0])) == 1.0 + 2.0 + 4.0 + 3.0 + 3.0
    for kernel in (square, shift):
        assert not kernel.overloads
        (part,) = kernel.part_for(()).overloads.values()
        assert part.library._compiled_object is None
    (whole,) = total.overloads.values()
    assert whole.library._compiled_object is not None


by_size = jit(choose=lambda x: square if str(x) == "float64" else None)(lambda x: x)


def test_a_kernel_with_variants_is_called_by_kernels_only() -> None:
    with pytest.raises(TypeError, match="called by other kernels only"):
        by_size(1.0)


class Plain(NamedTuple):
    inner: NDArray[np.float64]


@bundle
class Inner(NamedTuple):
    values: NDArray[np.float64]


@bundle
class Outer(NamedTuple):
    numbers: NDArray[np.int64]
    factor: float
    inner: Inner


@jit(inline=False)
def fill(outer: Outer, start: int) -> None:
    for i in range(outer.numbers.shape[0]):
        outer.numbers[i] = start + i
        outer.inner.values[i] = outer.factor * outer.numbers[i]


@jit
def fill_twice(outer: Outer, start: int) -> float:
    fill(outer, start)
    fill(outer, start + 1)
    return outer.inner.values[1]


def test_kernels_read_and_write_the_arrays_of_a_bundle() -> None:
    """Also of one within another."""
    outer = Outer(np.zeros(3, np.int64), 0.5, Inner(np.zeros(3)))
    assert fill_twice(outer, 10) == 6.0
    assert outer.numbers.tolist() == [11, 12, 13]
    assert outer.inner.values.tolist() == [5.5, 6.0, 6.5]


def test_bundles_of_other_types_are_compiled_for() -> None:
    """The type of a bundle has those of its fields."""
    outer = Outer(np.zeros(2, np.int32), 1.0, Inner(np.zeros(2, np.float32)))
    assert fill_twice(outer, 1) == 3.0


def test_a_bundle_with_a_wrong_field_is_refused() -> None:
    """A type for which there is no code."""
    with pytest.raises(Exception, match="values"):
        fill_twice(Outer(np.zeros(1, np.int64), 1.0, Plain(np.zeros(1))), 1)  # type: ignore[arg-type]


@jit
def run_at(address: int, outer: Outer, start: int) -> None:
    if address != 0:
        call_at(address, outer, start)


def test_a_kernel_can_be_called_by_its_address() -> None:
    """It is compiled on its own, and not at all if nobody asks for the address."""
    outer = Outer(np.zeros(2, np.int64), 1.0, Inner(np.zeros(2)))
    run_at(0, outer, 5)
    assert outer.numbers.tolist() == [0, 0]
    run_at(fill.address(outer, 5), outer, 5)
    assert outer.numbers.tolist() == [5, 6]


@jit(inline=False)
def outside(x: float) -> float:
    return x + 1.0


@jit
def inside(x: float) -> float:
    return x + 2.0


@jit
def calls_both(x: float) -> float:
    return outside(x) * inside(x)


def test_only_kernels_that_are_not_to_be_inlined_remain_functions(monkeypatch) -> None:
    """However small they are."""
    monkeypatch.setattr(calls_both, "_cache", SharedCache(calls_both.py_func, is_kept=False))
    assert calls_both(1.0) == 6.0
    (whole,) = calls_both.overloads.values()
    names = " ".join(one.name for one in whole.library.get_defined_functions())
    assert "outside" in names
    assert "inside" not in names


def test_types_of_bundles_can_be_pickled() -> None:
    """They are sent to the processes that help to compile."""
    (kind,) = jit(lambda state: None).types_of([State.allocate(1, 1)])
    assert pickle.loads(pickle.dumps(kind)) is kind
