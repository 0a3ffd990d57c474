"""The command line in this process, in an empty folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from blobs import write_blobs

from evomeans.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def evomeans(tmp_path, monkeypatch, capsys):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(int(code), captured.out, captured.err)

    return run


@pytest.fixture
def blobs(tmp_path) -> np.ndarray:
    """Put the table ``blobs.csv`` into the current folder."""
    return write_blobs(tmp_path / "blobs.csv")
