"""The command that lists and fetches data sets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab.data import DATASETS, DownloadError, loading
from lab.data.command import main, markdown

ROOT = Path(__file__).parents[3]


def test_the_list(capsys, monkeypatch, tmp_path):
    """A line per data set, with where it is found, and the folders."""
    np.savez(tmp_path / "liver.npz", X=np.zeros((345, 6)))
    monkeypatch.setenv("EVOMEANS_DATA", str(tmp_path))
    assert main([]) == 0
    listed = capsys.readouterr().out
    lines = {line.split()[0]: line.split() for line in listed.splitlines() if line}
    for dataset in DATASETS:
        assert lines[dataset.name][1:4] == [str(dataset.n), str(dataset.d), dataset.group]
    found = {name: lines[name][4] for name in ("liver", "iris", "bavaria1", "skin", "kegg")}
    assert list(found.values()) == ["folder", "scikit-learn", "shipped", "downloadable", "missing"]
    assert "5 available, 23 to be downloaded, 1 missing." in listed
    assert str(tmp_path) in listed
    assert main(["list"]) == 0
    assert capsys.readouterr().out == listed


def test_fetching(capsys, monkeypatch):
    """One after the other, in the order of the paper; a failure does not stop the others."""
    asked = []

    def download(url, target, **keywords):
        asked.append(url.rpartition("/")[2])
        raise DownloadError("no network")

    monkeypatch.setattr(loading, "download", download)
    assert main(["fetch", "skin", "iris", "letters"]) == 1
    out, err = capsys.readouterr()
    assert out == "iris: scikit-learn, verified\n"
    assert asked == ["letter+recognition.zip", "skin+segmentation.zip"]
    assert "letters: no network Is this machine offline?" in err
    assert "2 of 3 data sets could not be had." in err
    assert main(["fetch", "iris"]) == 0
    asked.clear()
    assert main(["fetch", "all"]) == 1
    assert len(asked) == 24


@pytest.mark.parametrize("name", ["irs", "partial_kegg"])
def test_names_that_are_none_of_the_paper(name):
    """Nothing is fetched, and the program ends with the message."""
    with pytest.raises(SystemExit, match=f"error: .*{name}"):
        main(["fetch", "iris", name])


def test_the_table_of_the_documentation_is_the_registry():
    """docs/laboratory/data.md has what ``python -m lab data markdown`` prints."""
    assert f"\n{markdown()}\n" in (ROOT / "docs" / "laboratory" / "data.md").read_text(
        encoding="utf-8"
    )
    assert len(markdown().splitlines()) == 2 + len(DATASETS)


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "lab", "data", "markdown"]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.rstrip("\n") == markdown()
