"""The cache of compiled kernels is shared by processes without harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIT = """
import numpy as np
from evomeans.compiled.jit import jit

@jit
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s

for dtype in {order}:
    assert total(np.arange(5, dtype=dtype)) == 10.0, dtype
"""


def run_all(scripts: list[Path], cache: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    started = [
        subprocess.Popen([sys.executable, str(s)], env=environment, stderr=subprocess.PIPE)
        for s in scripts
    ]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()


@pytest.mark.slow
def test_processes_that_compile_at_once_get_their_own_code(tmp_path) -> None:
    """Four processes fill one cache with three signatures in different orders, then use it."""
    script = tmp_path / "kernel.py"
    types = ["'f4'", "'f8'", "'i8'"]
    scripts = []
    for turn in (1, 2):
        order = "[" + ", ".join(types[turn:] + types[:turn]) + "]"
        folder = tmp_path / str(turn)
        folder.mkdir()
        scripts.append(folder / "kernel.py")
        scripts[-1].write_text(FIT.format(order=order))
    script.write_text(FIT.format(order="[" + ", ".join(types) + "]"))
    run_all([script] * 2 + scripts, tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*.kernel"))
    run_all([script], tmp_path / "cache")


def test_without_a_cache_kernels_still_work(tmp_path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(FIT.format(order="['f8']"))
    environment = {**os.environ, "EVOMEANS_CACHE": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, timeout=60)
    assert not (tmp_path / "cache").exists()
