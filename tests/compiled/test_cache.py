"""The cache of compiled kernels depends on what the sources say, and on nothing else."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import event

from compilations import Compilations
from evomeans.compiled import cache
from evomeans.compiled.cache import exclusive, source_digest
from evomeans.compiled.jit import jit

KERNEL = """
import numpy as np
from evomeans.compiled.jit import jit

@jit
def double(x):
    return 2.0 * x

print(double(21.0))
"""


def start(script: Path, *words: str, preexec_fn: Any = None, **environment: str) -> Any:
    others = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, str(script), *words],
        env={**others, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=preexec_fn,
        text=True,
    )


def run(script: Path) -> str:
    process = start(script)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output.strip()


def entries(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "__pycache__").glob("*.kernel")}


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


def test_the_digest_covers_every_module_that_a_kernel_imports(tmp_path, monkeypatch) -> None:
    """Of its own and of our package; directly, through another, or as part of a subpackage."""
    covered = {
        "other/folder/kernel.py": "from evomeans.near import f\nfrom other.beside import g\n",
        "other/beside.py": "from evomeans.folder import part\nimport third.party\n",
        "ours/near.py": "import evomeans.far as far\n",
        "ours/far.py": "",
        "ours/folder/__init__.py": "",
        "ours/folder/part.py": "",
    }
    packages = ("other/__init__.py", "other/folder/__init__.py")
    not_covered = dict.fromkeys([*packages, "other/x.py", "ours/x.py", "third/party.py"], "")
    for name, text in (covered | not_covered).items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cache, "PACKAGE", tmp_path / "ours")

    def digest() -> str:
        cache.source_digest.cache_clear()
        cache._scanned.cache_clear()
        return source_digest(tmp_path / "other/folder/kernel.py")

    before = digest()
    for name, text in (covered | not_covered).items():
        (tmp_path / name).write_text(text + "# edited\n")
        after = digest()
        assert (after != before) == (name in covered), name
        before = after


AT_ONCE = """
import numpy as np
from evomeans.compiled.jit import jit

@jit
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s

for dtype in {}:
    assert total(np.arange(5, dtype=dtype)) == 10.0, dtype
"""


@pytest.mark.slow
def test_processes_that_compile_at_once_get_their_own_code(tmp_path) -> None:
    """They fill one cache with three signatures in different orders, then use it."""
    kinds, scripts = ["f4", "f8", "i8"], []
    for turn in range(3):
        scripts.append(tmp_path / str(turn) / "kernel.py")
        scripts[turn].parent.mkdir()
        scripts[turn].write_text(AT_ONCE.format(kinds[turn:] + kinds[:turn]))
    for together in ([scripts[0], *scripts], scripts[:1]):
        started = [start(one, NUMBA_CACHE_DIR=str(tmp_path / "cache")) for one in together]
        for process in started:
            assert process.communicate(timeout=120) == ("", "")
    assert list((tmp_path / "cache").rglob("*.kernel"))


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


def double(x: float) -> float:
    return 2.0 * x


def flip(file: Path, place: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(place * (len(content) - 1))] ^= 16
    file.write_bytes(content)


def exchange(files: list[Path]) -> None:
    one, other = files
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])


def each(change: Callable[[Path], object]) -> Callable[[list[Path]], None]:
    return lambda files: [change(file) for file in files] and None


DAMAGES = {
    "empty": each(lambda file: file.write_bytes(b"")),
    "cut in the head": each(lambda file: os.truncate(file, 40)),
    "cut in half": each(lambda file: os.truncate(file, file.stat().st_size // 2)),
    "filled with zeros": each(lambda file: file.write_bytes(bytes(file.stat().st_size))),
    "too long": each(lambda file: file.write_bytes(file.read_bytes() + b"\0")),
    "stamp altered": each(lambda file: flip(file, 0.0)),
    "code altered": each(lambda file: flip(file, 0.5)),
    "end altered": each(lambda file: flip(file, 1.0)),
    "exchanged": exchange,
}


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Iterator[list[Path]]:
    """Files with the machine code of ``double`` for two types."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kernel = jit(double)
    assert [kernel(21.0), kernel(21)] == [42.0, 42.0]
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size]
    cache.warn_once.cache_clear()
    yield files
    cache.warn_once.cache_clear()


def compilations_of_double() -> list[str]:
    """Return what a new process compiles to call it."""
    kernel, compiled = jit(double), Compilations()
    event.register("numba:compile", compiled)
    try:
        assert [kernel(21.0), kernel(21)] == [42.0, 42.0]
    finally:
        event.unregister("numba:compile", compiled)
    return compiled.names


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_again_with_one_warning(kept, damage) -> None:
    """It is replaced, and nothing of it is loaded: altered machine code would crash the process."""
    assert compilations_of_double() == []
    DAMAGES[damage](kept)
    with pytest.warns(RuntimeWarning, match="were damaged") as seen:
        assert compilations_of_double() == ["double", "double"]
    assert len(seen) == 1
    assert compilations_of_double() == []


def test_a_file_that_cannot_be_unpickled_is_compiled_again(kept) -> None:
    """Its checksum is right: it was written by something that this process does not know."""
    stamp = jit(double)._cache.stamp  # type: ignore[attr-defined]
    for file in kept:
        cache.write_entry(file, stamp, b"cno_such_module\nno_such_class\n.")
    with pytest.warns(RuntimeWarning, match="no_such_module"):
        assert compilations_of_double() == ["double", "double"]
    assert compilations_of_double() == []


def test_a_removed_folder_is_made_again(kept) -> None:
    shutil.rmtree(kept[0].parent)
    assert compilations_of_double() == ["double", "double"]
    assert compilations_of_double() == []


def test_checks_of_indices_are_part_of_the_machine_code(kept, monkeypatch) -> None:
    """With NUMBA_BOUNDSCHECK=1, what was compiled without is not used."""
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert compilations_of_double() == ["double", "double"]


def test_a_kernel_without_a_source_file_is_compiled_by_every_process(kept) -> None:
    """In a frozen program, or imported from an archive."""
    names: dict[str, Callable[[float], float]] = {}
    exec(compile("def triple(x):\n    return 3.0 * x\n", "archive.zip/a.py", "exec"), names)
    with pytest.warns(RuntimeWarning, match="no source files"):
        assert jit(names["triple"])(2.0) == 6.0


def without_privilege() -> None:
    """Let permissions of files hold for root, too: PR_CAPBSET_DROP of CAP_DAC_OVERRIDE."""
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_filled_cache_that_is_read_only_is_used(tmp_path) -> None:
    """As in an image: if nothing is missing, nothing is said of folders that cannot be written."""
    script, kernels = tmp_path / "kernel.py", tmp_path / "kernels"
    script.write_text(
        "import sys\nfrom numba.core import event\nfrom compilations import Compilations\n"
        "from evomeans.compiled.check import is_trusted\n"
        "from evomeans.compiled.jit import jit\n"
        "is_trusted()\n"
        "seen = Compilations()\nevent.register('numba:compile', seen)\n"
        "@jit\ndef double(x):\n    return 2.0 * x\n"
        "print(double({'float': 21.0, 'int': 21}[sys.argv[1]]), seen.names)\n"
    )
    environment = {
        "NUMBA_CACHE_DIR": str(kernels),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def answer(kind: str, begin: Callable[[], object] | None = None) -> tuple[str, str]:
        process = start(script, kind, preexec_fn=begin, **environment)
        output, errors = process.communicate(timeout=120)
        return output.strip(), errors

    assert answer("float") == ("42.0 ['double']", "")
    folders = [folder for folder in tmp_path.rglob("*") if folder.is_dir()]
    for folder in [tmp_path, *folders]:
        folder.chmod(0o555)
    try:
        assert answer("float", without_privilege) == ("42.0 []", "")
        output, errors = answer("int", without_privilege)
        assert output == "42.0 ['double']"
        assert errors.count("no folder can be written") == 1
    finally:
        for folder in [tmp_path, *folders]:
            folder.chmod(0o755)
