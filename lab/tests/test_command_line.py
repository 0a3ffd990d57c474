"""``python -m lab``: one command line for all that the laboratory can do."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

from lab.__main__ import COMMANDS, FOLDERS, main
from lab.data.errors import MissingDataError
from lab.revisions import ROOT

NAMES = [name for commands in COMMANDS.values() for name in commands]
# Processes that commands start, and nobody else.
WORKERS = {"search_worker"}


def test_every_module_with_a_command_is_listed() -> None:
    lab = ROOT / "lab"
    found = {
        file.parent.name if file.stem == "command" else file.stem
        for file in [*lab.glob("*.py"), *lab.glob("*/command.py")]
        if re.search(r"^def main\(", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found - {"__main__"} - WORKERS == set(NAMES)
    assert {file.parent.name for file in lab.glob("*/command.py")} == FOLDERS


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main([name, "--help"])
    assert ending.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m lab {name} ")


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_all_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"^  {name} +\w", said, re.MULTILINE) for name in NAMES)


def test_help_is_instant() -> None:
    """It imports nothing that takes time."""
    code = (
        "import sys; from lab.__main__ import main; main([])\n"
        "assert not {'numpy', 'evomeans', 'lab.measure'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit, match="no command 'nonsense'; python -m lab --help"):
        main(["nonsense"])


def test_data_that_is_missing_needs_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: list[str]) -> None:
        raise MissingDataError("letters is not available")

    monkeypatch.setattr(importlib.import_module("lab.speed"), "main", fail)
    with pytest.raises(SystemExit, match="error: letters is not available"):
        main(["speed"])
