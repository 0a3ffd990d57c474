"""Samples are recognised in any order, and others are refused."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lab.data import Dataset, WrongContentsError
from lab.data.verification import check_value, digest, verify

TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 3)),
    elements=st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0]),
)


def toy(**fields):
    return Dataset("toy", "Toy", 3, 2, "A1", "nothing", **fields)


def digest_by_sorting(X):
    """Rows as tuples, sorted by Python."""
    rows = sorted(tuple(value + 0.0 for value in row) for row in X.tolist())
    return hashlib.sha256(np.array(rows, dtype="<f8").tobytes()).hexdigest()


@given(TABLES, st.randoms(use_true_random=False))
def test_the_digest_knows_no_order(X, random):
    """Of rows, of memory, of types; zeros have no sign."""
    expected = digest_by_sorting(X)
    shuffled = X[random.sample(range(len(X)), len(X))]
    assert digest(X) == expected
    assert digest(shuffled) == expected
    assert digest(np.asfortranarray(X)) == expected
    assert digest(X.astype(np.float32)) == expected
    assert digest(X.astype(">f8")) == expected


def test_the_digest_sees_every_value():
    X = np.arange(6.0).reshape(3, 2)
    changed = X.copy()
    changed[1, 1] = np.nextafter(changed[1, 1], 9)
    swapped = X[:, ::-1]
    assert len({digest(X), digest(changed), digest(swapped)}) == 3


def test_what_is_right_passes():
    X = np.arange(6.0).reshape(3, 2)
    verify(toy(digest=digest(X)), X[::-1], "here")
    verify(toy(), X, "here")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 3)), r"here is not toy: expected 3 samples of 2 .* shape \(3, 3\)"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        (np.zeros(6), r"shape \(6,\)"),
        (np.full((3, 2), np.nan), "here is not toy: it has NaN"),
        (np.zeros((3, 2)), "here is not toy: the SHA-256 .* is [0-9a-f]{64}, and 123 was expected"),
    ],
)
def test_what_is_wrong_is_refused(X, message):
    """With what was expected, and what came."""
    with pytest.raises(WrongContentsError, match=message):
        verify(toy(digest="123"), X, "here")


def test_the_published_value_for_two_clusters():
    """A wrong column or row shows in it; without one, nothing is checked."""
    X = np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 0.0]])
    check_value(toy(value_of_2=2.00001), X, "here")
    check_value(toy(), X * 7, "here")
    with pytest.raises(WrongContentsError, match=r"here is not toy .* m=2 is 2.5, .* finds 2\."):
        check_value(toy(value_of_2=2.5), X, "here")
