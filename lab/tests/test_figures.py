"""Figures of the pages: every block has a place, and tables are Markdown there."""

from __future__ import annotations

import re
import sys

import pytest

from lab import figures
from lab.measure import Column, Table


def test_every_block_has_its_marks_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in figures.PAGES)
    begun = re.findall(r"<!-- ([a-z-]+) -->", text)
    ended = re.findall(r"<!-- end of ([a-z-]+) -->", text)
    assert set(figures.ALL) <= set(begun)
    assert sorted(begun) == sorted(ended)


def test_what_commands_print_is_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is one paragraph, and each line below it another one."""
    program = (
        "from lab.measure import Column, Table; "
        "table = Table([Column('k', 'k'), Column('time', 's', '{:.1f} s')], 'k'); "
        "table.print_head(); table.print_row({'k': 2, 's': 0.25}); print('One.'); print('Two.')"
    )
    run = figures.subprocess.run

    def instead(words: list[str], **options: object) -> object:
        return run([sys.executable, "-c", program], **options)

    monkeypatch.setattr(figures.subprocess, "run", instead)
    lines = ["    python -m lab times", "", "| k | time |", "|---|--:|", "| 2 | 0.2 s |"]
    expected = "\n".join([*lines, "", "One.", "", "Two."]) + "\n"
    assert figures.printed("times") == expected


def test_tables_of_a_terminal_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table([Column("problem", "name"), Column("CPU", "s", "{:.1f} s")], "digits:30")
    table.print_head()
    table.print_row({"name": "digits:30", "s": 1.5})
    assert capsys.readouterr().out == "problem        CPU\ndigits:30    1.5 s\n"


def test_the_machine_names_the_commit_of_the_package() -> None:
    if not (figures.ROOT / ".git").exists():
        pytest.skip("not a clone")
    assert re.search(r"^- commit [0-9a-f]{7,} of \d{4}-\d\d-\d\d", figures.machine(), re.MULTILINE)
