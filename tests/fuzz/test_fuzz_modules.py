"""A few cases of each fuzzer; ``make fuzz`` runs them for as long as you like."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fuzz import arrays, files, kills, running

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


def test_cases_need_neither_pytest_nor_hypothesis():
    # They also run on borrowed machines, where nothing can be installed.
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pytest', 'hypothesis', 'cyclopts']));"
        "from tests.fuzz.__main__ import module_names; print(len(module_names()))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=running.ROOT, capture_output=True, text=True, timeout=120)
    assert found.stdout == "6\n", found.stderr
