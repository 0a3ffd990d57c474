"""The command line in this process, in an empty folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from blobs import FIT, write_blobs

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


@pytest.fixture(scope="session")
def _finished_run(tmp_path_factory) -> Path:
    """Fit once for all tests that only need a run."""
    folder = tmp_path_factory.mktemp("run")
    write_blobs(folder / "blobs.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*map(str, FIT), "-o", "out"]) == 0
    return folder / "out"


@pytest.fixture
def run(evomeans, blobs, _finished_run) -> Path:
    """Put a run of ``blobs.csv`` into the folder ``out``, as the fit of it would."""
    return Path(shutil.copytree(_finished_run, "out"))


@pytest.fixture
def blobs(tmp_path) -> np.ndarray:
    """Put the table ``blobs.csv`` into the current folder."""
    return write_blobs(tmp_path / "blobs.csv")
