"""What kernels are translated to does what Python would do."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from evomeans.compiled.cache import SharedCache
from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import State


@jit
def extremes(values: NDArray[Any], whole: int, out: NDArray[np.float64]) -> None:
    out[0] = max(values[0], values[1])
    out[1] = min(values[0], values[1])
    out[2] = max(whole, values[0], 2.5)
    out[3] = min(np.int32(whole), whole + 1)
    out[4] = int(values[0]) + int(whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", [[1.5, -7.25], [-7.25, 1.5], [3.0, 3.0]])
def test_builtin_functions_are_those_of_python(dtype, values) -> None:
    """For numbers of one type and of several."""
    given, out = np.array(values, dtype), np.empty(5)
    extremes(given, 4, out)
    a, b = values
    assert out.tolist() == [max(a, b), min(a, b), max(4, a, 2.5), 4, int(a) + 4]


def test_what_is_not_a_number_never_replaces_one() -> None:
    """As in Python: the first argument stays unless another one is larger or smaller."""
    out = np.empty(5)
    extremes(np.array([1.0, math.nan]), 0, out)
    assert out[:2].tolist() == [1.0, 1.0]


@jit
def copy_elements(
    source: NDArray[Any], target: NDArray[Any], i: int, j: np.uint8, shape: NDArray[np.int64]
) -> None:
    target[i, j] = source[i, j]
    target[-1, 0] = source[0, -1]
    target[i][1] = source[i][1]
    shape[0], shape[1] = source.shape


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_elements_of_arrays_are_those_of_numpy(order, dtype) -> None:
    """Negative indices, indices of several types, rows, other orders, and conversions."""
    source = np.asarray(np.arange(12).reshape(3, 4), dtype, order=order)
    target, expected, shape = np.zeros((3, 4), np.float32), np.zeros((3, 4)), np.zeros(2, int)
    copy_elements(source, target, -2, np.uint8(3), shape)
    expected[-2, 3], expected[-1, 0], expected[-2, 1] = source[-2, 3], source[0, -1], source[-2, 1]
    assert_array_equal(target, expected)
    assert shape.tolist() == [3, 4]


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


def test_types_of_bundles_can_be_pickled_without_their_hash() -> None:
    """It would be wrong in another process, and what the cache holds could not be found."""
    kind = jit(lambda state: None).types_of([State.allocate(1, 1)])[0]
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert b"_hash" not in pickle.dumps(kind)
