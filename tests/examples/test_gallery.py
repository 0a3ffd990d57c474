"""The gallery is complete, and needs no network."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/*.py"))


def test_there_are_a_dozen_examples_in_sections_with_a_title() -> None:
    assert len(SCRIPTS) >= 12
    for folder in {script.parent for script in SCRIPTS} | {GALLERY}:
        title, line, *_ = (folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()
        assert set(line) <= {"=", "-"}
        assert len(line) >= len(title)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_explains_itself_and_draws(script: Path) -> None:
    """Building the site runs it; here is what the build would not notice."""
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, line, *text = (ast.get_docstring(tree) or "").splitlines()
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert len(" ".join(text)) > 100
    assert "plt.show()" in source
    assert "# %%\n# " in source
    assert "fetch_" not in source, "examples must run without a network"
    assert len(source.splitlines()) <= 120
