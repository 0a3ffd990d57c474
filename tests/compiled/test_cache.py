"""The cache of compiled kernels depends on what the sources say, and on nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evomeans.compiled import cache
from evomeans.compiled.cache import PACKAGE, exclusive, source_digest

KERNEL = """
import numpy as np
from evomeans.compiled.jit import jit

@jit
def double(x):
    return 2.0 * x

print(double(21.0))
"""


def run(script: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def entries(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "__pycache__").glob("*.nb[ci]")}


@pytest.mark.slow
def test_a_copied_kernel_stays_warm_and_an_edited_one_does_not(tmp_path) -> None:
    """Other modification times change nothing; another source gives another answer."""
    script = tmp_path / "here" / "kernel.py"
    script.parent.mkdir()
    script.write_text(KERNEL)
    assert run(script) == "42.0"
    compiled = entries(script.parent)
    assert compiled
    shutil.copytree(script.parent, tmp_path / "there", copy_function=shutil.copyfile)
    copy = tmp_path / "there" / "kernel.py"
    os.utime(copy, (1.0, 1.0))
    assert run(copy) == "42.0"
    assert entries(copy.parent) == compiled
    copy.write_text(KERNEL.replace("2.0 * x", "3.0 * x"))
    assert run(copy) == "63.0"
    assert entries(copy.parent) != compiled


@pytest.mark.slow
def test_a_kernel_whose_argument_types_were_renamed_is_compiled_again(tmp_path) -> None:
    """The old index names a class that cannot be found any more."""
    script, kernel = tmp_path / "script.py", tmp_path / "kernel.py"
    script.write_text("from kernel import answer\nprint(answer())\n")
    text = """
from typing import NamedTuple
from evomeans.compiled.jit import jit

class Pair(NamedTuple):
    first: float
    second: float

@jit
def add(pair):
    return pair.first + pair.second

def answer():
    return add(Pair(20.0, 22.0))
"""
    for name in ("Pair", "Couple"):
        kernel.write_text(text.replace("Pair", name))
        assert run(script) == "42.0"


def test_the_digest_covers_every_module_that_a_kernel_imports(tmp_path, monkeypatch) -> None:
    """Directly, through another module, or as part of a subpackage; and no other module."""
    sources = {
        "kernel.py": "from evomeans.near import f\nfrom evomeans.folder import part\n",
        "near.py": "import evomeans.far as far\n",
        "far.py": "",
        "folder/__init__.py": "",
        "folder/part.py": "",
        "unrelated.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)

    def digest() -> str:
        for function in (cache.source_digest, cache._source, cache._imported):
            function.cache_clear()
        return source_digest(tmp_path / "kernel.py")

    before = digest()
    for name in sources:
        (tmp_path / name).write_text(sources[name] + "# edited\n")
        after = digest()
        assert (after != before) == (name != "unrelated.py"), name
        before = after


def test_the_digest_covers_another_package_and_what_it_takes_from_this_one(
    tmp_path, monkeypatch
) -> None:
    """Kernels outside the package are compiled anew if anything changes that they call."""
    sources = {
        "other/__init__.py": "",
        "other/folder/__init__.py": "",
        "other/folder/kernel.py": "from evomeans.near import f\nfrom other.beside import g\n",
        "other/beside.py": "from evomeans.far import h\nimport third.party\n",
        "other/unrelated.py": "",
        "ours/near.py": "",
        "ours/far.py": "",
        "ours/unrelated.py": "",
        "third/party.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cache, "PACKAGE", tmp_path / "ours")
    cache._imported.cache_clear()
    pending, seen = [tmp_path / "other/folder/kernel.py"], set()
    while pending:
        seen.add(pending[-1].relative_to(tmp_path).as_posix())
        pending += cache._imported(pending.pop())
    assert seen == {"other/folder/kernel.py", "other/beside.py", "ours/near.py", "ours/far.py"}


def test_machine_code_of_the_cpu_engine_depends_on_what_it_inlines() -> None:
    """The closure of the main kernel holds constants and helpers from other floors."""
    seen, pending = set(), [PACKAGE / "engines" / "cpu" / "refine.py"]
    while pending:
        file = pending.pop()
        if file not in seen:
            seen.add(file)
            pending.extend(cache._imported(file))
    names = {file.name for file in seen}
    assert {"refine.py", "scores.py", "rules.py", "vectors.py", "jit.py"} <= names
    assert "hgmeans.py" not in names


def test_the_lock_lets_one_process_in_at_a_time(tmp_path) -> None:
    held = (
        "import sys, time\nfrom pathlib import Path\n"
        "from evomeans.compiled.cache import exclusive\n"
        "with exclusive(Path(sys.argv[1])):\n"
        "    print('in', flush=True); time.sleep(0.7)\n"
    )
    lock = tmp_path / "lock"
    other = subprocess.Popen([sys.executable, "-c", held, str(lock)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline().strip() == b"in"
    began = time.perf_counter()
    with exclusive(lock):
        waited = time.perf_counter() - began
    other.communicate()
    assert waited > 0.3
