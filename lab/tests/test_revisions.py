"""Comparisons of two versions: which rows differ, and how their times are summed up."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lab
from lab import revisions
from lab.bits import print_differences, row_of
from lab.side_by_side import summary

SAMPLES = np.random.default_rng(0).random((30, 2))


def fitted(seed=0):
    return revisions.estimator(3, 5, random_state=seed).fit(SAMPLES)


def test_the_same_fit_gives_the_same_row():
    model = fitted()
    assert model.n_iter_ == 5
    row = row_of(model)
    assert row_of(fitted()) == row
    for change in ("cluster_centers_", "labels_", "inertia_"):
        other = fitted()
        setattr(other, change, getattr(other, change) + 1)
        assert row_of(other) != row


def test_only_rows_that_differ_are_printed(capsys):
    before = row_of(fitted())
    after = {**before, "labels": "0" * 12}
    assert print_differences({"a": before, "b": before}, {"a": before, "b": after}) == 1
    said = capsys.readouterr().out
    assert "a  " not in said
    assert before["labels"] in said
    assert after["labels"] in said
    assert "1 of 2 fits differ, 0 skipped" in said
    assert print_differences({"a": before}, {"a": before}) == 0


def test_a_row_that_only_one_table_has_differs(capsys):
    assert print_differences({}, {"a": {"skipped": "torch is not installed"}}) == 1
    said = capsys.readouterr().out
    assert "no such row" in said
    assert "torch is not installed" in said


def test_a_revision_is_checked_out_once(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text("VALUE = 1\n")
    (tmp_path / "lab" / "baselines").mkdir(parents=True)
    (tmp_path / "lab" / "baselines" / "saga.py").touch()
    (tmp_path / "lab" / "other.py").touch()
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "src", "lab"], [*author, "commit", "-qm", "One"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr(revisions, "ROOT", tmp_path)
    monkeypatch.setattr(revisions, "REVISIONS", tmp_path / "build")
    (tmp_path / "src" / "module.py").write_text("VALUE = 2\n")
    source = revisions.source_of("HEAD")
    assert (source / "module.py").read_text() == "VALUE = 1\n"
    assert [file.name for file in (source.parent / "lab").rglob("*.py")] == ["saga.py"]
    (source / "compiled").touch()
    assert revisions.source_of("HEAD") == source
    assert (source / "compiled").exists()
    with pytest.raises(SystemExit, match="nonsense"):
        revisions.source_of("nonsense")


def test_baselines_of_a_revision_lie_beside_its_package(tmp_path, monkeypatch):
    """So that two revisions differ in them as in the package, whatever lab has today."""
    folder = tmp_path / "lab" / "baselines"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("REVISION = 'another'\n")
    monkeypatch.setattr(lab, "__path__", list(lab.__path__))
    for name in [name for name in sys.modules if name.startswith("lab.baselines")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(lab, "baselines", raising=False)
    assert revisions.baselines_beside(tmp_path / "src").REVISION == "another"
    del sys.modules["lab.baselines"]


def test_another_package_than_the_one_asked_for_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"evomeans was imported from .*, not from"):
        revisions.check_imported(tmp_path)


def answer(cpu, wall, inertia=1.0):
    return {"cpu": cpu, "wall": wall, "inertia": inertia, "solutions": 7}


def test_times_are_the_least_of_all_rounds():
    """One noisy round hurts neither version."""
    rounds = [
        (answer(2.0, 2.0), answer(1.0, 1.0)),
        (answer(9.0, 2.0), answer(1.5, 1.0)),
        (answer(3.0, 1.0), answer(8.0, 8.0)),
    ]
    row = summary({0: rounds})
    assert (row["before_s"], row["now_s"], row["cpu"], row["wall"]) == (2.0, 1.0, 0.5, 0.5)
    assert row["result"] == "same"


def test_other_results_are_told():
    row = summary({0: [(answer(1.0, 1.0), answer(1.0, 1.0, inertia=1.01))]})
    assert row["result"] == "+1.0000 %"
