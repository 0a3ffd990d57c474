"""The developer guide sends its readers to files that exist, and the search stays short to read."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

PAGE = ROOT / "docs" / "development" / "index.md"
PACKAGE = ROOT / "src" / "evomeans"
MOST_FILES, MOST_LINES = 6, 1500


def section(title: str) -> str:
    """Return the text below a heading of the page."""
    return PAGE.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]


def reading_order() -> dict[str, str]:
    """Return the files to read, and what is said of each."""
    return dict(
        re.findall(r"^\d\. `(\S+\.py)`: (.+)$", section("Reading the search"), re.MULTILINE)
    )


def test_the_search_is_read_in_six_files_and_1500_lines() -> None:
    files = reading_order()
    assert 0 < len(files) <= MOST_FILES
    lines = {name: len((PACKAGE / name).read_text("utf-8").splitlines()) for name in files}
    assert sum(lines.values()) <= MOST_LINES, lines


def test_every_step_of_the_loop_is_defined_in_the_order() -> None:
    """Whoever has read the six files has seen all steps of the loop."""
    text = (PACKAGE / "search" / "genetic.py").read_text("utf-8")
    steps = set(re.findall(r"\b(?:search|making|population)\.(\w+)\(", text))
    read = "".join((PACKAGE / name).read_text("utf-8") for name in reading_order())
    assert steps
    assert {step for step in steps if f"def {step}(" not in read} == set()


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`([\w/]+/\w+\.py)`", PAGE.read_text("utf-8"))))
)
def test_every_file_that_the_guide_names_exists(name: str) -> None:
    """From the root, from the package, or from its engines as in `cpu/refine.py`."""
    assert any((folder / name).is_file() for folder in (ROOT, PACKAGE, PACKAGE / "engines"))


def test_functions_named_in_the_order_are_in_their_files() -> None:
    for name, said in reading_order().items():
        source = (PACKAGE / name).read_text("utf-8")
        for word in re.findall(r"`(\w+)`", said):
            assert re.search(rf"^\s*(def|class) {word}\b", source, re.MULTILINE), (name, word)
