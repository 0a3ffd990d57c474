"""Imports point in one direction (design.md, section 1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import evomeans

PACKAGE = Path(evomeans.__file__).parent
FORBIDDEN = {
    "search": ["evomeans", "sklearn", "numba", "torch", "dask"],
    "engines": ["evomeans"],
}
ALLOWED = {
    "search": [
        "evomeans.search",
        "evomeans.engines.protocol",
        "evomeans.compiled.merging",
        "evomeans.storage.archive",
    ],
    "engines": ["evomeans.engines"],
}


def imported_names(source: str, folder: tuple[str, ...]) -> Iterator[str]:
    """Absolute names of everything that a module in ``folder`` imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) + 1 - node.level] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def violations(layer: str, source: str, folder: tuple[str, ...]) -> list[str]:
    def within(name: str, modules: list[str]) -> bool:
        return any(name == module or name.startswith(f"{module}.") for module in modules)

    return [
        name
        for name in imported_names(source, folder)
        if within(name, FORBIDDEN[layer]) and not within(name, ALLOWED[layer])
    ]


@pytest.mark.parametrize("layer", sorted(FORBIDDEN))
def test_no_layer_imports_one_above_or_beside_it(layer: str) -> None:
    """search/ sees only the protocol; engines/ see neither the search nor the estimator."""
    files = sorted((PACKAGE / layer).rglob("*.py"))
    assert files
    for path in files:
        folder = path.parent.relative_to(PACKAGE.parent).parts
        assert violations(layer, path.read_text(encoding="utf-8"), folder) == [], path


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import numba", "numba"),
        ("import evomeans", "evomeans"),
        ("import sklearn.cluster as c", "sklearn.cluster"),
        ("def f():\n    from torch import nn", "torch.nn"),
        ("from evomeans import HGMeans", "evomeans.HGMeans"),
        ("from evomeans.engines.cpu import engine", "evomeans.engines.cpu.engine"),
        ("from ..engines import create_engine", "evomeans.engines.create_engine"),
        ("from .. import estimator", "evomeans.estimators.hgmeans"),
    ],
)
def test_every_way_to_import_is_seen(line: str, found: str) -> None:
    """The test above can fail: plain, nested, relative and from-package imports are caught."""
    assert violations("search", line, ("evomeans", "search")) == [found]


@pytest.mark.parametrize(
    "line",
    ["from evomeans.engines.protocol import Start", "from . import crossover", "import numpy"],
)
def test_what_is_allowed_is_not_reported(line: str) -> None:
    assert violations("search", line, ("evomeans", "search")) == []


@pytest.mark.parametrize("module", ["archive.py", "files.py"])
def test_what_all_layers_may_use_uses_none_of_them(module: str) -> None:
    """Files and archives know nothing of searches and engines."""
    source = (PACKAGE / module).read_text(encoding="utf-8")
    own = {name for name in imported_names(source, ("evomeans",)) if name.startswith("evomeans")}
    assert own <= {"evomeans._version.__version__", "evomeans.storage.files.write_atomically"}
