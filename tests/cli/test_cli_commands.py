"""``predict``, ``report`` and ``info``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from blobs import FIT

import evomeans as package
from evomeans import HGMeans
from evomeans.cli.app import app
from evomeans.cli.fit import _sizes

DEEP = "[" * 100_000
ARGUMENTS = ("TABLE", "MODEL", "RUN")


def test_predict_names_rows_as_the_fit_did(evomeans, run):
    """By the column of --id, if the table has it; a note says if not, and --id names another."""
    for model in ("out", "out/model.evomeans"):
        assert evomeans("predict", model, "blobs.csv").out == Path("out/labels.csv").read_text()
    frame = pl.read_csv("blobs.csv")
    frame.rename({"name": "other"}).write_csv("other.csv")
    result = evomeans("predict", "out", "other.csv")
    assert result.out.startswith("row,cluster\n1,")
    assert "note: other.csv has no column 'name'; rows are numbered instead" in result.err
    named = evomeans("predict", "out", "other.csv", "--id", "other")
    assert named.out.startswith("other,cluster\n")
    assert named.err == ""


def test_predict_with_a_model_saved_in_python(evomeans, blobs):
    """Without names: all columns but those left out."""
    HGMeans.fast(3, random_state=0).fit(blobs).save("python.evomeans")
    result = evomeans("predict", "python.evomeans", "blobs.csv", "--exclude", "name,w")
    expected = package.load("python.evomeans").labels_
    assert [int(line.split(",")[1]) for line in result.out.split()[1:]] == expected.tolist()


@pytest.mark.parametrize("scaled", [[], ["--standardize"]])
def test_options_do_not_change_the_order_of_the_model(evomeans, blobs, scaled):
    """Columns are standardized as in the fit, which only the record knows."""
    evomeans(*FIT, *scaled, "-o", "out", "--no-report")
    pl.read_csv("blobs.csv").select("b", "w", "name", "größe (m)").head(9).write_csv("turned.csv")
    expected = Path("out/labels.csv").read_text().splitlines()[:10]
    for options in (
        [],
        ["--exclude", "w"],
        ["--columns", "größe (m),b"],
        ["--columns", "b,größe (m)"],
    ):
        result = evomeans("predict", "out", "turned.csv", "--id", "name", *options)
        assert result.out.splitlines() == expected
    Path("out/model.evomeans").rename("lone.evomeans")
    lone = evomeans("predict", "lone.evomeans", "turned.csv")
    assert ("fitted to standardized columns" in lone.err) is (lone.code == 1) is bool(scaled)


def test_arrays_are_taken_by_place(evomeans, run, blobs):
    np.save("blobs.npy", blobs)
    assert evomeans("predict", "out", "blobs.npy", "-o", "p.parquet").code == 0
    found = pl.read_parquet("p.parquet")["cluster"].to_list()
    assert found == pl.read_csv("out/labels.csv")["cluster"].to_list()
    np.save("wide.npy", np.column_stack([blobs[:, 0], np.zeros(60), blobs[:, 1]]))
    expected = [line.split(",")[1] for line in Path("out/labels.csv").read_text().split()]
    for option in (["--columns", "x0,x2"], ["--exclude", "x1"]):
        result = evomeans("predict", "out", "wide.npy", *option)
        assert [line.split(",")[1] for line in result.out.split()] == expected


def test_columns_that_are_called_standardized(evomeans, blobs):
    """They were so in the table; the record knows that nothing was done to them."""
    rest = Path("blobs.csv").read_text(encoding="utf-8").split("\n", 1)[1]
    Path("s.csv").write_text(f"name,a (standardized),b (standardized),w\n{rest}")
    command = ("fit", "s.csv", *FIT[2:], "-o", "out", "--no-report")
    for more in ([], ["--standardize", "--force"]):
        assert evomeans(*command, *more).code == 0
        result = evomeans("predict", "out", "s.csv", "--id", "name")
        assert result.out == Path("out/labels.csv").read_text()


def test_report_is_written_again(evomeans, run):
    page = Path("out/report.html").read_bytes()
    Path("out/report.html").write_text("spoilt")
    result = evomeans("report", "out")
    assert (result.code, result.out) == (0, "out/report.html\n")
    assert Path("out/report.html").read_bytes() == page
    assert evomeans("report", "out", "-o", "page.html").code == 0
    assert Path("page.html").read_bytes() == page


@pytest.mark.parametrize(
    ("target", "points_to"),
    [
        ("mine.txt", None),
        ("page.html", "mine.txt"),
        ("page.html", "gone"),
        ("out/report.html", "mine.txt"),
    ],
)
def test_report_replaces_only_its_own_page(evomeans, run, target, points_to):
    """Another file, or one behind a link, is touched only with --force."""
    page = Path("out/report.html").read_bytes()
    Path("mine.txt").write_text("mine")
    told = f"{target} exists; replace it with --force"
    if points_to is not None:
        Path(target).unlink(missing_ok=True)
        Path(target).symlink_to(Path(points_to).absolute())
        place = Path(points_to).resolve()
        told = f"{target} is a symbolic link to {place}; --force writes to {place}."
    command = ("report", "out", *([] if target.startswith("out") else ["-o", target]))
    result = evomeans(*command)
    assert result.code == 1
    assert told in result.err
    assert Path("mine.txt").read_text() == "mine"
    assert evomeans(*command, "--force").code == 0
    assert Path(points_to or target).read_bytes() == page


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda: Path("out/report.json").unlink(), "has no report.json"),
        (lambda: Path("out/report.json").write_text("{"), "is damaged"),
        (lambda: Path("out/report.json").write_text("[]"), "is damaged"),
        (lambda: Path("out/run.json").unlink(), "is not a run of evomeans"),
        (lambda: Path("out/run.json").write_text("nonsense"), "is damaged"),
        (lambda: Path("out/run.json").write_text("{}"), "not the record of a run"),
        (lambda: Path("out").rename("gone"), "There is no folder out"),
        (lambda: Path("out/run.json").write_text(DEEP), "run.json is damaged"),
        (lambda: Path("out/report.json").write_text(DEEP), "report.json is damaged"),
    ],
)
def test_report_refuses_what_is_no_run(evomeans, run, spoil, text):
    spoil()
    result = evomeans("report", "out")
    assert result.code == 1
    assert text in result.err
    assert ".." not in result.err


def test_info(evomeans, monkeypatch):
    monkeypatch.setenv("EVOMEANS_GPU_DEVICE", "abacus")
    record = json.loads(evomeans("info", "--json").out)
    assert record["packages"]["numba"]
    assert record["cores"] >= 1
    cache = record["cache"]
    assert 0 <= cache["ready"] <= cache["needed"]
    assert cache["needed"] > 50
    assert Path(cache["folder"]).is_dir()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    # OpenMP reads the variable when a process begins.
    command = [sys.executable, "-m", "evomeans", "info"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.startswith(f"evomeans {package.__version__}, Python ")
    assert "gpu: not available: " in text
    assert "dask: available: " in text
    assert "threads    1 by default" in text
    assert "(OMP_NUM_THREADS=1)" in text


def test_info_says_what_a_first_fit_would_compile(evomeans, monkeypatch):
    monkeypatch.setattr("evomeans.compiled.ready.missing_calls", lambda needed: needed[:3])
    assert "evomeans warmup compiles the other 3" in evomeans("info").out
    monkeypatch.setattr("evomeans.compiled.ready.missing_calls", lambda needed: [])
    assert "are compiled\n" in evomeans("info").out
    monkeypatch.setenv("EVOMEANS_CACHE", "0")
    off = evomeans("info").out
    assert "switched off by EVOMEANS_CACHE=0" in off
    assert "compiled by every process that needs them" in off


def test_help_and_version(evomeans, monkeypatch):
    """The exit codes are told; on a terminal that is wide enough, every option is one line."""
    monkeypatch.setenv("COLUMNS", "400")
    assert evomeans("--version").out.strip() == package.__version__
    assert "130" in evomeans("--help").out
    for command in ("fit", "path", "predict", "report", "certify", "verify", "info", "warmup"):
        assert f"│ {command} " in evomeans("--help").out
        shown = evomeans(command, "--help").out.splitlines()
        options = [line.strip("│* ") for line in shown if line.startswith("│")]
        assert options
        assert [text for text in options if not text.startswith(("-", *ARGUMENTS))] == []


def test_warmup_compiles_what_is_missing_and_shows_progress(evomeans, monkeypatch):
    """A second run has nothing to do. Nothing is shown with --quiet but the result in JSON."""
    from evomeans.compiled import ready
    from evomeans.compiled.cache import SharedCache
    from evomeans.kernels.vectors import smallest_size

    call = ready.Call(smallest_size, (np.zeros(1, np.int16),), 0.1)
    monkeypatch.setenv("EVOMEANS_CACHE", "0")
    monkeypatch.setattr(smallest_size, "_cache", SharedCache(smallest_size.py_func))
    monkeypatch.setattr("evomeans.cli.info.needed_calls", lambda: [call])
    first = evomeans("warmup", "--jobs", "1")
    assert first.code == 0
    assert "1 of 1" in first.err
    assert "smallest_size" in first.err
    assert "1 kernel compiled" in first.out
    again = evomeans("warmup", "--json", "--quiet")
    assert json.loads(again.out)["compiled"] == 0
    assert again.err == ""


def test_sizes_shown():
    """From small to large, whether they are listed or not."""
    assert _sizes([2, 1]) == "1, 2"
    assert _sizes([1] * 20) == "1 row each"
    assert _sizes([1] * 10 + [5] * 10) == "1 to 5 rows, 3 on average"


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["a, b ,c"], ("a", "b", "c")),
        (['"a,b",größe'], ("a,b", "größe")),
        (["a,b", "c"], ("a", "b", "c")),
    ],
)
def test_names(texts, names):
    """Separated by commas; an option that comes twice names them all."""
    options = [word for text in texts for word in ("--columns", text)]
    _, bound, _ = app.parse_args(["predict", "m", "t.csv", *options])
    assert bound.arguments["read"].columns == names
