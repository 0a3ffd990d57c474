"""The fuzzers notice what they are made to notice."""

from __future__ import annotations

import os

import pytest

from tests.fuzz import running

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")

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


def test_crashes_hangs_errors_and_memory_are_findings(tmp_path, monkeypatch):
    """Each is reported with its case, and the cases after it run all the same."""
    (tmp_path / "hostile_cases.py").write_text(CASES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    report = running.run("hostile_cases", n_cases=6, processes=2)
    assert report.counts == {"fine": 2, "SIGSEGV": 1, "hang": 1, "ValueError": 1, "MemoryError": 1}
    assert [one.number for one in report.findings] == [1, 2, 3, 4]
    assert "something false" in str(report)
    assert "python -m hostile_cases --seed 0 --case 1" in str(report)
