"""The counts of ``python -m lab house``, on a package of three small modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.house import Trace, counts_of, table

SOURCES = {
    "__init__.py": '"""Says what it is."""\n',
    "one.py": """\
'''A module.

Of several lines.
'''

import numba
from numba.core.caching import FunctionCache
from numba.extending import overload

from house.two import half

# A reason.
LARGE, SMALL = 2**20, -1.5e-3
NAMES = ("a", "b")
limit = 3


class Cache(FunctionCache):
    '''Keeps things.'''

    def load(self):
        text = '''not a
        docstring'''
        return self._load_overload(text), self._own()

    def _own(self):
        return LARGE
""",
    "two.py": "def half(x):\n    return x / 2\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    return folder


def test_what_is_counted(package: Path) -> None:
    counts = counts_of(package)
    assert (counts["files"], counts["lines"]) == (3, 30)
    # Imports 4, constants 3, class and methods 7, the function 2.
    assert (counts["code"], counts["headers"]) == (16, 4)
    assert (counts["classes"], counts["functions"], counts["constants"]) == (1, 3, 2)
    assert counts["only importer"] == 1
    # FunctionCache and _load_overload; overload is documented, and _own is not of Numba.
    assert counts["Numba"] == 2


def test_a_walk_is_followed(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "one.py").write_text("from house.two import half\ndef f(x): return half(half(x))\n")
    monkeypatch.syspath_prepend(str(package.parent))
    from house.one import f

    trace = Trace(f"{package}/")
    sys.setprofile(trace)
    try:
        assert f(8.0) == 2.0
    finally:
        sys.setprofile(None)
    assert sorted(name for _, name in trace.functions.elements()) == ["f", "half", "half"]
    assert (trace.changes, trace.most_frames) == (2, 2)


def test_the_table_has_both_revisions() -> None:
    head, row = table({"files": 2000}, {"files": 3000})
    assert head.split() == ["before", "now"]
    assert row.split() == ["files", "3,000", "2,000"]
