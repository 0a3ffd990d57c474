"""Kernels are called with addresses of bundles as they are with the bundles themselves."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from evomeans.compiled import check
from evomeans.compiled.check import Inner, Outer, sample
from evomeans.compiled.jit import address_of, jit

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
