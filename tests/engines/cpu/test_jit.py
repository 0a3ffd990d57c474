"""The cache of compiled kernels is shared by processes without harm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evomeans.engines.cpu import jit as module

FIT = """
import numpy as np
from evomeans.engines.cpu.jit import jit

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
    """Eight processes fill one cache with four signatures in different orders, then use it."""
    script = tmp_path / "kernel.py"
    types = ["'f4'", "'f8'", "'i4'", "'i8'"]
    scripts = []
    for turn in range(4):
        order = "[" + ", ".join(types[turn:] + types[:turn]) + "]"
        folder = tmp_path / str(turn)
        folder.mkdir()
        scripts.append(folder / "kernel.py")
        scripts[-1].write_text(FIT.format(order=order))
    script.write_text(FIT.format(order="[" + ", ".join(types) + "]"))
    run_all([script] * 4 + scripts, tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*.nbi"))
    run_all([script] * 2, tmp_path / "cache")


def test_the_lock_lets_one_process_in_at_a_time(tmp_path) -> None:
    held = (
        "import sys, time\nfrom pathlib import Path\n"
        "from evomeans.engines.cpu.jit import exclusive\n"
        "with exclusive(Path(sys.argv[1])):\n"
        "    print('in', flush=True); time.sleep(0.7)\n"
    )
    lock = tmp_path / "lock"
    other = subprocess.Popen([sys.executable, "-c", held, str(lock)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline().strip() == b"in"
    began = time.perf_counter()
    with module.exclusive(lock):
        waited = time.perf_counter() - began
    other.communicate()
    assert waited > 0.3


def test_the_key_of_the_cache_covers_all_kernel_sources() -> None:
    """Machine code contains the kernels that a kernel calls, also from other files."""
    names = {name for name, _, _ in module.kernel_sources()}
    assert {"refine.py", "tiles.py", "rules.py", "line_kernels.py"} <= names


def test_without_a_cache_kernels_still_work(tmp_path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(FIT.format(order="['f8']"))
    environment = {**os.environ, "EVOMEANS_CACHE": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, timeout=60)
    assert not (tmp_path / "cache").exists()
