"""Mixtures of section 4.5: their parameters, their separation, their samples."""

from __future__ import annotations

import doctest
import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from lab import mixtures
from lab.mixtures import N_SAMPLES, SETUPS, Separation, gaussian_mixture, separation


def test_the_setups_of_the_paper():
    """20 pairs in the order of Table 8, 50,000 samples each."""
    assert N_SAMPLES == 50_000
    assert len(SETUPS) == len(set(SETUPS)) == 20
    assert SETUPS[:6] == ((20, 20), (20, 50), (20, 100), (20, 200), (20, 500), (50, 20))
    assert SETUPS[-1] == (200, 500)


@pytest.mark.parametrize(("m", "d"), SETUPS)
def test_every_setup_can_be_drawn(m, d):
    """Within the bounds, whole numbers, not 1-separated, 99 % of the pairs ½-separated."""
    mixture = gaussian_mixture(10, m, d, seed=0)
    assert mixture.X.shape == (10, d)
    assert mixture.means.shape == (m, d)
    assert mixture.variances.shape == (m,)
    assert mixture.n_draws == 1
    assert (mixture.means.min(), mixture.means.max()) == (0, 5)
    assert mixture.variances.min() >= 1
    assert mixture.variances.max() <= 10
    assert (mixture.means % 1 == 0).all()
    assert (mixture.variances % 1 == 0).all()
    assert mixture.separation == separation(mixture.means, mixture.variances)
    assert mixture.separation.half_separated >= 0.99
    assert mixture.separation.one_separated < 1


def test_real_values_are_the_other_reading():
    """They overlap more: means spread by 25/12 instead of 35/12; d=20 takes more than one draw."""
    mixture = gaussian_mixture(10, 100, 20, seed=0, values="real")
    assert mixture.n_draws > 1
    assert (mixture.means % 1 != 0).all()
    assert (mixture.variances % 1 != 0).all()
    assert mixture.means.min() >= 0
    assert mixture.means.max() <= 5
    assert np.var(mixture.means) == pytest.approx(25 / 12, rel=0.1)
    assert np.var(gaussian_mixture(10, 100, 20, seed=0).means) == pytest.approx(35 / 12, rel=0.1)
    assert mixture.separation.is_wanted


def test_separation_by_hand():
    """Dasgupta's c of three pairs in two dimensions; the larger variance counts."""
    means = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    variances = np.array([1.0, 2.0, 8.0])
    c = [
        np.linalg.norm(means[i] - means[j]) / np.sqrt(2 * max(variances[i], variances[j]))
        for i, j in combinations(range(3), 2)
    ]
    assert c == pytest.approx([2.5, 0.25, np.sqrt(18) / 4])
    measured = separation(means, variances)
    assert measured.weakest == pytest.approx(0.25)
    assert (measured.half_separated, measured.one_separated) == pytest.approx((2 / 3, 2 / 3))


def test_a_pair_exactly_at_the_border_is_separated():
    assert separation(np.array([[0.0], [1.0]]), np.array([1.0, 4.0])) == Separation(0.5, 1.0, 0.0)
    assert separation(np.array([[0.0], [2.0]]), np.array([1.0, 4.0])) == Separation(1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("half", "one", "wanted"), [(0.99, 0.5, True), (0.9899, 0.5, False), (1.0, 1.0, False)]
)
def test_what_is_wanted(half, one, wanted):
    assert Separation(0.1, half, one).is_wanted is wanted


def test_the_samples_follow_the_mixture():
    """Means and variances of the groups, shares of 1/m, and no group of the exact size."""
    n, m, d = 40_000, 10, 20
    mixture = gaussian_mixture(n, m, d, seed=3)
    sizes = np.bincount(mixture.labels, minlength=m)
    assert sizes.min() > n / m - 5 * np.sqrt(n / m)
    assert sizes.max() < n / m + 5 * np.sqrt(n / m)
    assert (sizes != n / m).any()
    for label, (mean, variance) in enumerate(zip(mixture.means, mixture.variances, strict=True)):
        own = mixture.X[mixture.labels == label]
        assert own.mean(axis=0) == pytest.approx(mean, abs=5 * np.sqrt(variance / len(own)))
        spread = np.mean((own - mean) ** 2)
        assert spread == pytest.approx(variance, rel=5 * np.sqrt(2 / own.size))


def test_the_same_seed_gives_the_same_bits():
    first, again = (gaussian_mixture(300, 5, 30, seed=7) for _ in range(2))
    for name in ("X", "labels", "means", "variances"):
        assert getattr(first, name).tobytes() == getattr(again, name).tobytes()
    other = gaussian_mixture(300, 5, 30, seed=8)
    assert not np.array_equal(first.means, other.means)
    assert not np.array_equal(first.labels, other.labels)


def test_fewer_samples_are_the_first_of_more():
    """The mixture does not depend on n; also across the blocks in which samples are made."""
    few, many = (gaussian_mixture(n, 20, 20, seed=1) for n in (33, 5000))
    assert np.array_equal(few.means, many.means)
    assert np.array_equal(few.labels, many.labels[:33])
    assert np.array_equal(few.X, many.X[:33])


def test_seeds_stay_what_they_were():
    """Whole numbers of one seed, written down: results of later versions can be compared."""
    mixture = gaussian_mixture(8, 20, 20, seed=0)
    assert mixture.variances[:10].tolist() == [6, 3, 4, 5, 4, 8, 5, 7, 5, 7]
    assert mixture.means[0, :10].tolist() == [0, 4, 4, 1, 2, 2, 3, 2, 2, 5]
    assert mixture.labels.tolist() == [17, 10, 16, 16, 16, 1, 4, 7]


def test_no_second_copy_of_the_samples():
    """Beyond X itself a draw needs little: blocks of rows, not another n × d."""
    n, d = 60_000, 50
    tracemalloc.start()
    try:
        gaussian_mixture(n, 20, d, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * n * d * 8


def test_it_gives_up_with_a_reason():
    """In one dimension most of 50 Gaussians overlap: no draw can do."""
    with pytest.raises(RuntimeError, match=r"None of max_draws=25 draws of m=50 .* in d=1 .*\d%"):
        gaussian_mixture(10, 50, 1, seed=0, max_draws=25)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 0}, "n=0 should be >= 1"),
        ({"m": 1}, "m=1 should be >= 2"),
        ({"d": 0}, "d=0 should be >= 1"),
        ({"seed": -1}, "seed=-1 should be >= 0"),
        ({"max_draws": 0}, "max_draws=0 should be >= 1"),
        ({"values": "complex"}, "values='complex' should be 'integer' or 'real'"),
    ],
)
def test_errors_name_the_value(wrong, message):
    with pytest.raises(ValueError, match=message):
        gaussian_mixture(**({"n": 10, "m": 5, "d": 20, "seed": 0} | wrong))


def test_examples_in_the_docstring():
    results = doctest.testmod(mixtures)
    assert results.attempted > 0
    assert results.failed == 0
