"""A few cases of each fuzzer, and that fuzzers and their oracles notice what they should.

``make fuzz`` runs them for as long as you like.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import evomeans
from tests.fuzz import arrays, certificate_files, certificates, files, kills, running
from tests.fuzz.certificates import Problem, Rationals

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")
X = np.array([[0.0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 7]])


@posix
@pytest.mark.parametrize(
    ("module", "n_cases", "kinds"),
    [
        (files, 40, {"model used", "checkpoint refused"}),
        (arrays, 25, set()),
        (certificates, 60, {"direct optimal"}),
        (certificate_files, 150, {"true", "refused by verify", "file refused"}),
        pytest.param(files, 400, set(), marks=pytest.mark.slow),
        pytest.param(arrays, 150, set(), marks=pytest.mark.slow),
        pytest.param(kills, 5, set(), marks=pytest.mark.slow),
    ],
)
def test_no_case_finds_anything(module, n_cases, kinds) -> None:
    report = running.run(module.__name__, n_cases=n_cases, seed=11)
    assert not report.findings, str(report)
    assert report.n_cases == n_cases
    assert kinds <= report.counts.keys()


def test_cases_need_neither_pytest_nor_hypothesis() -> None:
    # They also run on borrowed machines, where nothing can be installed.
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pytest', 'hypothesis', 'cyclopts']));"
        "from tests.fuzz.__main__ import module_names; print(len(module_names()))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=running.ROOT, capture_output=True, text=True, timeout=120)
    assert found.stdout == "6\n", found.stderr


CASES = """
import ctypes, time

CASE_SECONDS = 1.0

def case(rng):
    print("not an answer")
    match rng.bit_generator.seed_seq.entropy[1]:
        case 1:
            ctypes.string_at(0)
        case 2:
            time.sleep(60)
        case 3:
            raise ValueError("something false")
        case 4:
            bytearray(10**12)
    return "fine"
"""


@posix
def test_crashes_hangs_errors_and_memory_are_findings(tmp_path, monkeypatch) -> None:
    """Each is reported with its case, and the cases after it run all the same."""
    (tmp_path / "hostile_cases.py").write_text(CASES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    report = running.run("hostile_cases", n_cases=6, processes=2)
    assert report.counts == {"fine": 2, "SIGSEGV": 1, "hang": 1, "ValueError": 1, "MemoryError": 1}
    assert [one.number for one in report.findings] == [1, 2, 3, 4]
    assert "something false" in str(report)
    assert "python -m tests.fuzz hostile_cases --seed 0 --case 1" in str(report)


def test_the_oracle_notices_what_is_false() -> None:
    """Each claim by itself."""
    proven = evomeans.certify(X, [0, 0, 0, 1, 1, 1])
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


def test_the_optimum_in_rational_numbers() -> None:
    """Two pairs that are one apart and a sample that is worth two; and by another method."""
    line = np.array([[0.0], [1], [10], [11], [20]])
    exact = Rationals(Problem("", "", line, np.array([1.0, 1, 1, 1, 2]), 3))
    assert exact.optimum == 1
    assert exact.of_labels(exact.labels()) == 1
    assert Rationals(Problem("", "", line[:2], None, 1)).optimum == 0.5
    for k in (1, 2, 3, 6):
        found = evomeans.ExactKMeans(k, random_state=0).fit(X).inertia_
        optimum = float(Rationals(Problem("", "", X, None, k)).optimum)
        assert optimum == pytest.approx(found, rel=1e-12, abs=1e-15)
