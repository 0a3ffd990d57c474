"""A few cases of each fuzzer; ``make fuzz`` runs them for as long as you like."""

from __future__ import annotations

import os

import pytest

from tests.fuzz import arrays, files, kills

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")


@pytest.mark.parametrize(("module", "n_cases"), [(files, 40), (arrays, 25)])
def test_a_few_cases(module, n_cases):
    report = module.run(n_cases=n_cases, seed=11)
    assert not report.findings, str(report)
    assert report.n_cases == n_cases


@pytest.mark.slow
@pytest.mark.parametrize(("module", "n_cases"), [(files, 400), (arrays, 150), (kills, 3)])
def test_more_cases(module, n_cases):
    report = module.run(n_cases=n_cases, seed=12)
    assert not report.findings, str(report)
