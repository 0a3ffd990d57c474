"""The pages of README and docs, taken apart: their Python snippets and their commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    ROOT / "docs" / "index.md",
    *sorted(
        page
        for folder in ("guide", "background", "laboratory", "development")
        for page in (ROOT / "docs" / folder).glob("*.md")
    ),
]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return where a page is in the repository."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Snippet:
    """A block of Python on a page, the line on which it begins, and the output shown below it."""

    page: Path
    line: int
    code: str
    output: str | None = None


def snippets(page: Path) -> list[Snippet]:
    """Return the blocks of Python of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        if match.group(1) == "python":
            line = text.count("\n", 0, match.start(2)) + 1
            below = FENCE.match(text, match.end() + 2)
            is_output = below is not None and below.group(1) == "text"
            found.append(
                Snippet(page, line, match.group(2), below.group(2) if below and is_output else None)
            )
    return found


def fenced_lines(page: Path) -> list[str]:
    """Return the lines of all fenced and indented blocks of a page."""
    text = page.read_text(encoding="utf-8")
    fenced = [line for match in FENCE.finditer(text) for line in match.group(2).splitlines()]
    indented = re.findall(r"^    (.*)$", FENCE.sub("", text), re.MULTILINE)
    return fenced + indented


def shown_commands(page: Path, program: str) -> Iterator[list[str]]:
    """Yield the arguments of every line of a block that runs ``program``."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for line in text.splitlines():
        if line.startswith("    "):
            words = line.strip().removeprefix("$ ")
            if words.startswith(f"{program} "):
                # What a shell does with the output is not a part of the command.
                yield list(takewhile(lambda word: word not in "|>", shlex.split(words, True)[1:]))


def laboratory_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words after every ``python -m lab``, also within sentences and over two lines."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    indented = re.findall(r"^    (.*?)(?:#.*)?$", text, re.MULTILINE)
    comments = re.findall(r"<!-- (.*?) -->", text)
    for code in [*re.findall(r"`([^`]+)`", text), *indented, *comments]:
        if match := re.match(r"(?:\$ )?python\s+-m\s+lab\b([^|>]*)", code):
            yield match.group(1).split()


def make_targets(page: Path) -> Iterator[str]:
    """Yield the targets of every ``make ...``."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"(?:`|^    )make ([a-z-]+)", text, re.MULTILINE):
        yield match.group(1)
