"""The coordinates in which engines compute."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from evomeans.engines.frame import Frame
from problems import KINDS, make_samples


@given(st.sampled_from(KINDS), st.integers(1, 40), st.integers(1, 4), st.integers(0, 999))
def test_in_the_frame_the_data_has_extent_one(dtype, kind, n, d, seed) -> None:
    """Largest coordinate in [1/2, 1], in the data's own precision and in C order."""
    X = make_samples(kind, n, d, dtype, np.random.default_rng(seed))
    Z = Frame.around(X).encode(X)
    assert Z.dtype == dtype
    assert Z.flags.c_contiguous
    assert np.isfinite(Z).all()
    if (np.ptp(X, axis=0) > 0).any():
        assert 0.5 <= np.abs(Z).max() <= 1.0


@given(st.sampled_from(KINDS), st.integers(1, 40), st.integers(1, 4), st.integers(0, 999))
def test_the_frame_loses_no_digit(dtype, kind, n, d, seed) -> None:
    """There and back again gives the same bits, on all kinds of samples."""
    X = make_samples(kind, n, d, dtype, np.random.default_rng(seed))
    frame = Frame.around(X)
    assert_array_equal(frame.decode(frame.encode(X).astype(float)).astype(dtype), X)
    assert math.frexp(frame.scale)[0] == 0.5


EXTREME = [
    *(np.array([[0.1], [0.2], [0.7], [outlier]]) for outlier in (1e6, 1e17, -1e100)),
    *(np.full((7, 2), value) for value in (1e-140, 1e-300, 0.0, -3.7, 1e140)),
    *(np.array([[0.0], [tiny], [tiny / 2]], np.float32) for tiny in (1e-36, 1e-39, 1e-44)),
    # Their difference fits into no float32.
    *(np.array([[-3e38]] * count + [[3e38]], np.float32) for count in (1, 9)),
]


@pytest.mark.parametrize("X", EXTREME, ids=range(len(EXTREME)))
def test_outliers_and_samples_of_any_size_cost_no_digit(X) -> None:
    """2**exponent must fit into the precision of the samples, down to denormal numbers."""
    frame = Frame.around(X)
    assert np.isfinite(frame.encode(X)).all()
    assert_array_equal(frame.decode(frame.encode(X).astype(float)).astype(X.dtype), X)


def test_a_large_offset_is_removed_and_a_small_one_is_not() -> None:
    X = np.array([[1e8, 1.0], [1e8 + 1.0, 2.0]])
    assert_array_equal(Frame.around(X).shift, [1e8, 0.0])


def test_huge_offsets_keep_every_digit(dtype) -> None:
    """1e8 + integers: differences come out exactly."""
    steps = np.array([[0.0], [8.0], [16.0], [64.0], [120.0]])
    X = (1e8 + steps).astype(dtype)
    frame = Frame.around(X)
    Z = frame.encode(X).astype(float)
    assert_array_equal(np.ldexp(Z - Z[0], -frame.exponent), steps)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1.0, 1e30, 1e150])
def test_inertia_is_in_units_of_the_data(scale) -> None:
    """Squared distances scale back by the square, at the ends of the range too."""
    X = np.array([[-0.3], [0.1], [0.3]]) * scale
    frame = Frame.around(X)
    Z = frame.encode(X)
    total = frame.inertia_in_data_units(float(np.sum((Z - Z.mean()) ** 2)))
    expected = float(np.sum(((X - X.mean()) / scale) ** 2)) * scale**2
    assert total == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("extent", "remedy"),
    [(e, r"extend over .*e\+.*e\+152.*Divide X by a constant") for e in (1e153, 1e200, 1e300)]
    + [(1e-160, r"extend over 1e-160.*e-153.*Multiply X by a constant")],
)
def test_samples_whose_squares_are_no_numbers_are_refused_with_a_remedy(extent, remedy) -> None:
    with pytest.raises(ValueError, match=remedy):
        Frame.around(np.array([[-extent], [extent]]))


def test_constant_columns_and_single_samples_are_fine(dtype) -> None:
    """All zeros in the frame, and the value itself comes back."""
    for X in (np.full((5, 2), 0.1, dtype), np.array([[3.25, -7.5]], dtype)):
        frame = Frame.around(X)
        assert_array_equal(frame.encode(X), np.zeros_like(X))
        assert_array_equal(frame.decode(np.zeros((1, 2)))[0], X[0])


def test_sparse_samples_are_scaled_but_not_shifted() -> None:
    values = np.array([3.0, -12.0, 0.5])
    frame = Frame.scaling(values, n_features=4)
    assert_array_equal(frame.shift, np.zeros(4))
    assert 0.5 <= np.abs(values * frame.scale).max() < 1.0
    assert Frame.scaling(np.array([]), n_features=2).scale == 1.0
