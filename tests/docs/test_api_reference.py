"""The API reference lists everything that is public, and nothing else."""

from __future__ import annotations

import importlib
import importlib.util
import re

import pytest
from pages import ROOT

PUBLIC = [
    "evomeans",
    "lab.baselines",
    "evomeans.criteria",
    "evomeans.metrics",
    "evomeans.plotting",
    "evomeans.report",
]
BLOCK = re.compile(r"currentmodule:: (\S+).*?:nosignatures:\n\n(.*?)```", re.DOTALL)


def listed() -> dict[str, set[str]]:
    """Return the names that the reference lists for each module."""
    found: dict[str, set[str]] = {}
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        for module, names in BLOCK.findall(page.read_text(encoding="utf-8")):
            found.setdefault(module, set()).update(names.split())
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_listed(module: str) -> None:
    """Constants are explained with the classes that use them."""
    public = set(importlib.import_module(module).__all__)
    public = {name for name in public if not name.startswith("__") and not name.isupper()} | (
        public & {"BIC", "SAGA", "MSDCA"}
    )
    assert listed()[module] == public


def test_every_listed_name_exists() -> None:
    for module, names in listed().items():
        for name in names:
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


ROLE = re.compile(r":(?:func|class|meth|mod|data|attr|exc):`~?(?:[^`<]*<)?(evomeans\.[\w.]+)>?`")


def test_names_that_docstrings_refer_to_exist() -> None:
    """Sphinx leaves a reference that leads nowhere as plain text, without a warning."""
    sources = [path for folder in ("src", "lab") for path in (ROOT / folder).rglob("*.py")]
    names = {name for path in sources for name in ROLE.findall(path.read_text(encoding="utf-8"))}
    assert {name for name in names if not exists(name)} == set()


def exists(name: str) -> bool:
    """Tell whether a dotted name leads to a module, something in it, or a field of a class.

    A module that is named itself is not imported: those of the GPU engine need PyTorch.
    """
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            if importlib.util.find_spec(".".join(parts[:i])) is None:
                continue
        except ModuleNotFoundError:
            continue
        if i == len(parts):
            return True
        found = importlib.import_module(".".join(parts[:i]))
        for part in parts[i:]:
            if not hasattr(found, part):
                return part in getattr(found, "__dataclass_fields__", {})
            found = getattr(found, part)
        return True
    return False


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert exists("evomeans.search.SearchSettings.max_offspring")
    assert not exists("evomeans.metrics.no_such_score")
