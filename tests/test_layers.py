"""Imports point in one direction, floor by floor (docs/development/index.md has a picture)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import evomeans

PACKAGE = Path(evomeans.__file__).parent

# Every floor, and the floors that it may use directly. A floor that is not listed here fails.
FLOORS: dict[str, set[str]] = {
    "": {"_version", "estimators", "exact", "path", "search", "storage"},
    "__main__": {"cli"},
    "_version": set(),
    "wording": set(),
    "sparse": set(),
    "files": set(),
    "metrics": {"docstrings", "sparse"},
    "typing": set(),
    "docstrings": set(),
    "compiled": set(),
    "kernels": {"compiled"},
    "exact": {"compiled", "wording"},
    "engines": {"compiled", "kernels", "wording"},
    "search": {
        *("engines.protocol", "engines.sampling", "engines.workers"),
        *("files", "kernels", "wording"),
    },
    "path": {"kernels", "engines.protocol", "engines.sampling", "engines.workers", "search"},
    "criteria": {"metrics"},
    "progress": {"path", "search", "wording"},
    "storage": {"_version", "engines", "files", "exact", "path", "search"},
    "estimators": {
        *("criteria", "docstrings", "engines", "exact", "metrics", "path", "progress", "report"),
        *("search", "sparse", "storage", "wording"),
    },
    "plotting": {
        *("criteria", "docstrings", "engines.frame", "metrics", "search", "sparse", "wording"),
    },
    "report": {"_version", "files", "metrics", "plotting", "search", "storage", "wording"},
    "cli": {
        *("_version", "compiled", "files", "wording", "engines", "search", "storage"),
        *("estimators", "exact", "kernels", "path", "plotting", "progress", "report"),
    },
}
# Packages that cost much to import, and where that is allowed.
HEAVY = {
    "numba": {"compiled", "kernels", "exact", "engines.cpu"},
    "llvmlite": {"compiled", "engines.cpu"},
    "torch": {"engines.gpu"},
    "triton": {"engines.gpu"},
    "dask": {"engines.dask", "estimators"},
    "distributed": {"engines.dask"},
    "sklearn": {"estimators", "plotting", "report.data", "cli"},
    "polars": {"cli"},
    "rich": {"cli", "progress"},
    "cyclopts": {"cli"},
    "matplotlib": {"plotting", "report", "cli"},
    "jinja2": {"report"},
    "lab": set(),  # the laboratory uses the product, never the other way round
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


@cache
def modules() -> dict[str, Path]:
    """All modules of the package, by their names without "evomeans."."""
    files = sorted(PACKAGE.rglob("*.py"))
    names = [path.relative_to(PACKAGE).with_suffix("").parts for path in files]
    return {
        ".".join(part for part in parts if part != "__init__"): path
        for parts, path in zip(names, files, strict=True)
    }


@cache
def imports(module: str) -> frozenset[str]:
    """Return what a module imports, ours without "evomeans." and resolved to modules."""
    path = modules()[module]
    folder = path.parent.relative_to(PACKAGE.parent).parts
    found = imported_names(path.read_text(encoding="utf-8"), folder)
    return frozenset(resolved(name) for name in found)


def resolved(name: str) -> str:
    """Return the module that an imported name is or belongs to; packages of others as they are."""
    top, _, rest = name.partition(".")
    if top != "evomeans":
        return f"{top}:"
    while rest and rest not in modules():
        rest = rest.rpartition(".")[0]
    return rest


def floor_of(module: str) -> str:
    return module.partition(".")[0]


def is_within(module: str, rooms: set[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def violations(module: str, imported: frozenset[str]) -> list[str]:
    """Return imports of a module that its floor does not allow."""
    floor = floor_of(module)
    found = []
    for name in sorted(imported):
        if name.endswith(":"):
            package = name[:-1]
            if package in HEAVY and not is_within(module, HEAVY[package]):
                found.append(package)
        elif floor_of(name) not in (floor, "typing") and not is_within(name, FLOORS[floor]):
            found.append(name)
    return found


def reachable(module: str) -> set[str]:
    """All that a module imports, directly or through others."""
    seen: set[str] = set()
    pending = [module]
    while pending:
        for name in imports(pending.pop()) - seen:
            seen.add(name)
            if not name.endswith(":"):
                pending.append(name)
    return seen


def test_every_module_is_on_a_floor() -> None:
    assert {floor_of(module) for module in modules()} == set(FLOORS)


@pytest.mark.parametrize("floor", sorted(FLOORS))
def test_no_floor_imports_one_above_or_beside_it(floor: str) -> None:
    """At module level and inside functions alike."""
    own = [module for module in modules() if floor_of(module) == floor]
    assert own
    found = {module: violations(module, imports(module)) for module in own}
    assert {module: names for module, names in found.items() if names} == {}


def test_floors_have_no_cycle() -> None:
    """Whatever a floor reaches through others, it does not reach itself."""
    graph = {floor: set(map(floor_of, below)) for floor, below in FLOORS.items()}
    TopologicalSorter(graph).prepare()


def test_class_names_are_unique() -> None:
    """Whoever reads a name need not look up which of two classes it is."""
    homes: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_the_search_reaches_no_engine_and_no_heavy_package_but_one() -> None:
    """Through all that it imports: the seam, and compiled kernels that match and merge centres."""
    found = set().union(
        *(reachable(module) for module in modules() if floor_of(module) == "search")
    )
    engines = {name for name in found if floor_of(name) == "engines"}
    seam = ("protocol", "workers", "frame", "rules", "sampling")
    assert engines <= {"engines", *(f"engines.{name}" for name in seam)}
    assert {name[:-1] for name in found if name.endswith(":")} & set(HEAVY) <= {"numba", "llvmlite"}


def test_engines_reach_neither_search_nor_estimators() -> None:
    found = set().union(*(reachable(name) for name in modules() if floor_of(name) == "engines"))
    floors = {floor_of(name) for name in found if not name.endswith(":")}
    assert floors == {"engines", "compiled", "kernels", "typing", "wording"}


def test_tests_of_the_package_do_without_the_laboratory() -> None:
    """A source distribution has them, and no laboratory; those of the docs need a clone anyway."""
    folder = Path(__file__).parent
    for file in folder.rglob("*.py"):
        if file.relative_to(folder).parts[0] not in ("docs", "examples"):
            names = imported_names(file.read_text(encoding="utf-8"), ())
            assert not any(name.partition(".")[0] == "lab" for name in names), file


def test_engines_do_not_import_each_other_but_that_of_the_cpu() -> None:
    """Dask runs its kernels on blocks, and the GPU leaves samples to it; the oracle is alone."""
    rooms = {f"engines.{name}" for name in ("cpu", "gpu", "dask", "reference")}
    may_use = {"engines.gpu": {"engines.cpu"}, "engines.dask": {"engines.cpu"}}
    for module in modules():
        for room in rooms:
            others = rooms - {room} - may_use.get(room, set())
            if is_within(module, {room}):
                assert not any(is_within(name, others) for name in imports(module)), module


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import numba", "numba"),
        ("from lab.baselines import SAGA", "lab"),
        ("import sklearn.cluster as c", "sklearn"),
        ("def f():\n    from torch import nn", "torch"),
        ("from evomeans import HGMeans", ""),
        ("from evomeans.engines.cpu import engine", "engines.cpu.engine"),
        ("from ..engines import create_engine", "engines"),
        ("from ..estimators import hgmeans", "estimators.hgmeans"),
    ],
)
def test_every_way_to_import_is_seen(line: str, found: str) -> None:
    """The tests above can fail: plain, nested, relative and from-package imports are caught."""
    names = frozenset(map(resolved, imported_names(line, ("evomeans", "search"))))
    assert violations("search.genetic", names) == [found]


@pytest.mark.parametrize(
    "line",
    ["from evomeans.engines.protocol import Order", "from . import crossover", "import numpy"],
)
def test_what_is_allowed_is_not_reported(line: str) -> None:
    names = frozenset(map(resolved, imported_names(line, ("evomeans", "search"))))
    assert violations("search.genetic", names) == []
