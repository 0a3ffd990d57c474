"""A few random cases of tampered certificates, and the oracle that judges them."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import evomeans
from tests.fuzz import certificate_files

X = np.array([[0.0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 7]])


def certificate() -> evomeans.Certificate:
    return evomeans.certify(X, [0, 0, 0, 1, 1, 1])


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")
def test_tampered_certificates_neither_crash_nor_deceive() -> None:
    report = certificate_files.run(seed=1, n_cases=150)
    assert not report.findings, report
    assert {"true", "refused by verify", "file refused"} <= report.counts.keys()


def test_the_oracle_notices_what_is_false() -> None:
    """Each claim by itself."""
    proven = certificate()
    bound = proven.lower_bound
    certificate_files.check_truth(proven, bound, X, None)
    for change in (
        {"lower_bound": 1.001 * bound},
        {"upper_bound": 1.001 * proven.upper_bound},
        {"labels": np.array([0, 0, 1, 1, 1, 1], np.int32)},
        {"n_samples": 7},
    ):
        with pytest.raises(AssertionError):
            certificate_files.check_truth(replace(proven, **change), bound, X, None)
    with pytest.raises(AssertionError):
        certificate_files.check_truth(proven, 1.001 * bound, X, None)


def test_the_oracle_finds_the_optimum() -> None:
    costs = certificate_files.subset_costs(X, np.ones(6))
    for k in (1, 2, 3, 6):
        optimum = certificate_files.least_cost(costs, k)
        found = evomeans.ExactKMeans(k, random_state=0).fit(X).inertia_
        assert float(optimum) == pytest.approx(found, rel=1e-12, abs=1e-15)
