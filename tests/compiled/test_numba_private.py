"""Names that Numba does not document are in one file, and are what we take them for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numba
import pytest
from numba.core.registry import cpu_target

import evomeans
from evomeans.compiled import numba_private
from evomeans.compiled.check import TESTED

PACKAGE = Path(evomeans.__file__).parent
HOME = PACKAGE / "compiled" / "numba_private.py"
DOCUMENTED = {"numba", "numba.types", "numba.extending"}
# Attributes of Numba's objects that are not ours.
ATTRIBUTES = re.compile(
    r"\._(?:final_module|codegen|data_layout|linking_libraries|compiled_object|rebuild|reduce|"
    r"function_pass_manager|ensure_finalized|finalized|compiler|get_implementation)\b"
)


def imported(file: Path) -> set[str]:
    """Return the modules and names of Numba and llvmlite that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{one.name}" for one in node.names)
    return {name for name in found if name.partition(".")[0] in ("numba", "llvmlite")}


def is_documented(name: str) -> bool:
    module, _, last = name.rpartition(".")
    is_public = not last.startswith("_") and last != "core"
    # Of llvmlite, only its version is asked for.
    return name in {"numba", "llvmlite"} or (module in DOCUMENTED and is_public)


def test_other_modules_use_what_numba_documents() -> None:
    """Or take it from the one file."""
    for file in set(PACKAGE.rglob("*.py")) - {HOME}:
        assert {name for name in imported(file) if not is_documented(name)} == set(), file
        assert not ATTRIBUTES.search(file.read_text(encoding="utf-8")), file


def test_the_one_file_is_searched_for_what_is_found_there() -> None:
    """The test above can fail."""
    assert {"llvmlite.ir", "numba.core.codegen.ll", "numba.core.cgutils"} <= imported(HOME)
    assert ATTRIBUTES.search(HOME.read_text(encoding="utf-8"))


def test_arrays_and_calls_are_as_we_know_them(monkeypatch) -> None:
    context = cpu_target.target_context
    assert numba_private.unexpected(context) is None
    monkeypatch.setattr(numba_private, "ARRAY_FIELDS", ("data", "shape"))
    assert "meminfo" in str(numba_private.unexpected(context))


def test_the_range_is_that_of_the_package() -> None:
    """Of pyproject.toml, where there is one."""
    assert TESTED[0] <= numba.version_info.short < TESTED[1]
    settings = PACKAGE.parents[1] / "pyproject.toml"
    if not settings.exists():
        pytest.skip("installed without it")
    low, high = (".".join(map(str, version)) for version in TESTED)
    assert f'"numba>={low},<{high}"' in settings.read_text(encoding="utf-8")
