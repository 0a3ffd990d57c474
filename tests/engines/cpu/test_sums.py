"""Fixed-point sums: exact, whatever the order, the scale and the weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from evomeans.compiled.jit import jit
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.cpu.sums import add_row, update_center
from evomeans.engines.frame import column_scales, limb_bits


@jit
def move(samples, sums, before, after, i):
    add_row(samples, sums, after, i, 1.0)
    if before >= 0:
        add_row(samples, sums, before, i, -1.0)


def samples_of(rows, weights, scales, limb):
    """Return samples as kernels read them, with scales of their own."""
    known = CpuEngine(rows, weights, searching=False).samples
    return known._replace(rows=rows, weights=weights, scales=scales, limb=limb)


def means(rows, weights, labels, order, k=2, detour=False):
    """Cluster means after adding the samples in some order, perhaps through another cluster."""
    bits = limb_bits(len(rows))
    scales = column_scales(np.abs(rows).max(axis=0), weights, bits)
    samples = samples_of(rows, weights, scales, float(2**bits))
    sums = np.zeros((1, k, 2, rows.shape[1] + 1), np.int64)
    for i in order:
        if detour:
            move(samples, sums[0], -1, k - 1 - labels[i], i)
        move(samples, sums[0], k - 1 - labels[i] if detour else -1, labels[i], i)
    centers, totals = np.zeros((k, rows.shape[1])), np.zeros(k)
    for j in range(k):
        update_center(samples, sums, centers, totals, j, sums[0, 0].copy())
    return centers, totals


@st.composite
def problems(draw):
    seed, n, d = draw(st.integers(0, 10**6)), draw(st.integers(2, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 1, size=(n, 1))
    weights = rng.exponential(size=n) if draw(st.booleans()) else np.ones(n)
    labels = rng.integers(2, size=n)
    labels[:2] = 0, 1
    return rows / np.abs(rows).max(), weights, labels, rng.permutation(n)


@given(problems())
def test_the_bits_of_a_mean_depend_on_the_members_alone(case) -> None:
    """Not on the order in which they came, nor on where they had been before."""
    rows, weights, labels, order = case
    plain = means(rows, weights, labels, range(len(rows)))
    for other in (
        means(rows, weights, labels, order),
        means(rows, weights, labels, order, detour=True),
    ):
        assert_array_equal(plain[0], other[0])
        assert_array_equal(plain[1], other[1])


@given(problems())
def test_means_are_right_to_the_last_digits(case) -> None:
    """Against exact fractions, in units of the column's largest value: 2⁻⁵³ and no more."""
    rows, weights, labels, order = case
    centers, totals = means(rows, weights, labels, order)
    for j in range(2):
        members = np.flatnonzero(labels == j)
        total = sum(Fraction(weights[i]) for i in members)
        assert abs(totals[j] - total) <= Fraction(4 * 2.0**-53) * total
        for t in range(rows.shape[1]):
            mean = sum(Fraction(weights[i]) * Fraction(rows[i, t]) for i in members) / total
            largest = Fraction(np.abs(rows[members, t]).max())
            assert abs(Fraction(centers[j, t]) - mean) <= Fraction(
                8 * 2.0**-53
            ) * largest + Fraction(2.0**-75)


def test_no_limb_overflows_when_all_terms_are_the_largest() -> None:
    n = 5000
    rows, weights = np.full((n, 1), -1.0), np.full(n, 3.7)
    centers, totals = means(rows, weights, np.zeros(n, int), range(n))
    assert centers[0, 0] == -1.0
    assert np.isclose(totals[0], 3.7 * n, rtol=1e-15)


def test_an_empty_cluster_keeps_its_centre_and_others_are_left_alone() -> None:
    sums = np.zeros((2, 3, 2, 3), np.int64)
    sums[0, 1, 0], sums[1, 1, 0] = (5, 7, 1), (1, -1, 2)
    centers, weights = np.full((3, 2), 9.0), np.full(3, 8.0)
    samples = samples_of(np.zeros((1, 2)), np.ones(1), np.ones(3), 2.0**40)
    for j in (0, 1):
        update_center(samples, sums, centers, weights, j, sums[0, 0].copy())
    assert_array_equal(centers, [[9.0, 9.0], [2.0, 2.0], [9.0, 9.0]])
    assert_array_equal(weights, [0.0, 3.0, 8.0])
