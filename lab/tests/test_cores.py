"""The benchmarks of threads, on next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab import cores
from lab.revisions import ROOT


@pytest.mark.parametrize(
    ("most", "expected"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])]
)
def test_numbers_of_threads(most, expected) -> None:
    assert cores.powers_of_two(most) == expected


def test_a_search_is_timed_with_every_number_of_threads(monkeypatch) -> None:
    monkeypatch.setattr("evomeans.engines.cpu.engine.WORTH_A_WORKER", 0)
    row = cores.measure("mixture:300:2:4:10", 8, [1, 2, 3], rounds=2, separate=False)
    assert row["setup"] == "mixture:300:2:4:10"
    assert min(row["seconds"], row["2"], row["3"]) > 0.0


@pytest.mark.slow
def test_the_time_of_the_interpreter_is_measured() -> None:
    """In a process of its own, because it replaces functions that all kernels call."""
    command = [sys.executable, "-m", "lab", "interpreter", "mixture:300:2:4:20", "--rounds=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, kernels, _, python, _, calls, serial, _, limit = done.stdout.splitlines()[-1].split()
    assert 0.0 < float(kernels) < 100.0
    assert 1.0 < float(python) < 1e5
    assert 1.0 <= float(calls) < 10.0
    assert 0.0 < float(serial) < 100.0
    assert float(limit.rstrip("x")) >= 1.0
