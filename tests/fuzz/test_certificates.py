"""A few of the random certificates; `python -m tests.fuzz.certificates` runs many."""

from __future__ import annotations

import numpy as np

from tests.fuzz.certificates import Problem, Rationals, run


def test_no_claim_is_false() -> None:
    report = run(seed=11, n_cases=60)
    assert not report.findings, str(report)
    assert report.n_cases == 60
    assert report.counts["direct optimal"] > 20


def test_the_optimum_in_rational_numbers() -> None:
    """Two pairs that are one apart, and a sample that is worth two."""
    X = np.array([[0.0], [1], [10], [11], [20]])
    exact = Rationals(Problem("", "", X, np.array([1.0, 1, 1, 1, 2]), 3))
    assert exact.optimum == 1
    assert exact.of_labels(exact.labels()) == 1
    assert Rationals(Problem("", "", X[:2], None, 1)).optimum == 0.5
