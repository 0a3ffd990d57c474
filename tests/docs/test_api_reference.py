"""The API reference lists everything that is public, and nothing else."""

from __future__ import annotations

import importlib
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
