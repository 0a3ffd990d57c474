"""Kernels that a fit needs are compiled before it begins, by several processes, and only once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads
from typing import Any

import numpy as np
import pytest
from numba.core import event
from scipy.sparse import csr_array

from compilations import Compilations
from evomeans import HGMeans, SphericalHGMeans
from evomeans.compiled import ready as module
from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call, helpers, in_background, missing_calls, ready

SLOW = """
from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call, ready

@jit
def one(x):
    return x + 1.0

@jit
def other(x):
    return x - 1.0
"""

MAIN = """
import kernels
from kernels import *
from numba.core import event
from compilations import Compilations

compiled = Compilations()
event.register("numba:compile", compiled)
ready([Call(one, (1.0,), 3.0), Call(other, (1.0,), 2.0)])
print(one(1.0), other(1.0), sorted(compiled.names), flush=True)
"""


@pytest.fixture
def scripts(tmp_path) -> Path:
    (tmp_path / "kernels.py").write_text(SLOW)
    (tmp_path / "main.py").write_text(MAIN)
    return tmp_path / "main.py"


def start(script: Path, **environment: str) -> subprocess.Popen[str]:
    folders = {
        "NUMBA_CACHE_DIR": str(script.parent / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    return subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, **folders, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output, errors


@pytest.mark.slow
def test_a_second_process_finds_all_in_the_cache_and_says_nothing(scripts) -> None:
    output, errors = ended(start(scripts))
    assert output.startswith("2.0 0.0 ")
    assert errors.count("compiling for this machine, once") == 1
    assert len(errors.splitlines()) == 1
    assert ended(start(scripts)) == ("2.0 0.0 []\n", "")


@pytest.mark.slow
def test_processes_that_start_together_share_the_work(scripts) -> None:
    """Every kernel is compiled by at most one of them, whether it is helped or not."""
    outputs = [ended(process)[0] for process in [start(scripts) for _ in range(3)]]
    assert sum(output.count("'one'") for output in outputs) <= 1
    assert sum(output.count("'other'") for output in outputs) <= 1


@pytest.mark.slow
def test_without_a_cache_one_process_does_it_all(scripts) -> None:
    output, errors = ended(start(scripts, EVOMEANS_CACHE="0"))
    assert output == "2.0 0.0 ['one', 'other']\n"
    assert errors.count("compiling") == 1
    assert not (scripts.parent / "cache").exists()


def test_without_a_folder_for_the_cache_one_sentence_says_so(scripts) -> None:
    """And that for all kernels together."""
    nowhere = "from evomeans.compiled import cache\ncache.is_writable = lambda folder: False\n"
    scripts.write_text(nowhere + MAIN)
    output, errors = ended(start(scripts))
    assert output == "2.0 0.0 ['one', 'other']\n"
    assert errors.count("no folder") == 1


def test_a_full_disk_is_mentioned_once(scripts) -> None:
    """Not again for every kernel."""
    full = (
        "from evomeans.compiled import cache, check\n"
        "check.is_trusted()\n"
        "def fail(*_): raise OSError(28, 'No space left on device')\n"
        "cache.write_entry = fail\n"
    )
    scripts.write_text(full + MAIN.replace("3.0)", "0.1)").replace("2.0)", "0.1)"))
    _, errors = ended(start(scripts))
    assert errors.count("No space left on device") == 1


@jit
def slowest(x: float) -> float:
    return 3.0 * x


@jit
def quickest(x: float) -> float:
    return 4.0 * x


def test_what_is_missing_comes_longest_first() -> None:
    quickest(np.float32(1.0))
    calls = [
        Call(quickest, (np.float32(1.0),), 5.0),
        Call(quickest, (np.int16(1),), 1.0),
        Call(slowest, (np.int16(1),), 2.0),
    ]
    assert [one.kernel.py_func.__name__ for one in missing_calls(calls)] == ["slowest", "quickest"]


@pytest.fixture
def started(monkeypatch) -> list[Any]:
    """Return a list of the processes that are started."""
    begin, processes = subprocess.Popen, []

    def remembered(*arguments: Any, **named: Any) -> Any:
        processes.append(begin(*arguments, **named))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", remembered)
    return processes


def test_a_helper_that_is_killed_blocks_nobody(monkeypatch, started) -> None:
    """What it had claimed is compiled here."""
    for kernel in (slowest, quickest):
        # Also if an earlier run of the tests has left them in the cache.
        monkeypatch.setattr(kernel._cache, "holds", lambda *_: False)
    calls = [Call(slowest, (np.int8(1),), 1.0), Call(quickest, (np.int8(1),), 1.0)]
    ready(calls, n_processes=2, done=lambda _: started[0].kill())
    assert len(started) == 1
    assert not missing_calls(calls)


def test_helpers_end_with_the_block(started) -> None:
    """Also if it ends by Ctrl-C."""
    calls = missing_calls([Call(slowest, (np.uint16(1),), 1.0)])
    with pytest.raises(KeyboardInterrupt), helpers(calls, 2):
        raise KeyboardInterrupt
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.slow
def test_ctrl_c_during_compilation_ends_soon(tmp_path) -> None:
    script = tmp_path / "fit.py"
    script.write_text(
        "import numpy as np\nfrom evomeans import HGMeans\n"
        "HGMeans(3).fit(np.random.default_rng(0).normal(size=(150, 4)))\n"
    )
    process = start(script, EVOMEANS_CACHE="0")
    assert process.stderr is not None
    assert "compiling" in process.stderr.readline()
    time.sleep(1.0)
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    # A fraction of a second on an idle machine.
    assert time.perf_counter() - began < 4.0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_does_not_wait_for_a_step_of_the_compiler() -> None:
    """And no other step follows."""
    is_over, taken = Event(), []

    def steps() -> Iterator[Any]:
        yield taken.append("first")
        os.kill(os.getpid(), signal.SIGINT)
        is_over.wait(60.0)
        yield taken.append("second")
        taken.append("third")

    with pytest.raises(KeyboardInterrupt):
        in_background(steps())
    (compiler,) = [one for one in enumerate_threads() if one.name == "evomeans compiler"]
    is_over.set()
    compiler.join(60.0)
    assert taken == ["first", "second"]


def test_errors_of_the_compiler_are_raised() -> None:
    def steps() -> Iterator[Any]:
        yield None
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_background(steps())


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        *((kind, "deep") for kind in ("float64", "float32", "csr", "weights", "column")),
        *(("momentum", "deep"), ("momentum", "paper"), ("float64", "paper")),
        ("directions", "deep"),
    ],
)
def test_a_fit_compiles_nothing_after_the_preparation(kind, strategy, monkeypatch) -> None:
    """So none of it counts as time of the search; and "paper" needs neither moves nor swaps."""
    n_samples = {"momentum": 6000, "directions": 40_000}.get(kind, 60)
    kind_of_search = SphericalHGMeans if kind == "directions" else HGMeans
    X: Any = np.random.default_rng(0).normal(size=(n_samples, 1 if kind == "column" else 3))
    weights = np.arange(1.0, 61.0) if kind == "weights" else None
    if kind in ("float32", "directions"):
        X = X.astype(np.float32)
    elif kind == "csr":
        X = csr_array(X)
    late = Compilations()
    prepared: list[str] = []
    prepare = module.ready

    def watched(calls: Any, *arguments: Any) -> None:
        prepared.extend(one.kernel.py_func.__name__ for one in calls)
        prepare(calls, *arguments)
        for one in calls:
            one.kernel.compile(one.kernel.types_of(one.arguments))
        # A model prepares twice: for crossovers, and for its engine.
        late.names.clear()

    monkeypatch.setattr(module, "ready", watched)
    monkeypatch.setattr("evomeans.engines._prepared", set())
    event.register("numba:compile", late)
    try:
        kind_of_search(3, strategy=strategy, max_offspring=40, random_state=0).fit(
            X, sample_weight=weights
        )
    finally:
        event.unregister("numba:compile", late)
    # The solver for one column has no clock.
    assert kind == "column" or late.names == []
    assert "refine" not in late.names
    assert ("move_singles" in prepared) == (strategy == "deep" and kind != "column")
    assert ("try_swaps" in prepared) == (strategy == "deep" and kind != "column")
    assert ("lead" in prepared) == (strategy == "deep" and kind == "momentum")
