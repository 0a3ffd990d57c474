"""``evomeans fit``: what it finds, writes, tells and keeps."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from blobs import FIT, contents, names

import evomeans as package
from evomeans import HGMeans

FILES = {
    *("labels.csv", "centers.csv", "history.csv", "model.evomeans"),
    *("run.json", "report.json", "report.html"),
}


def test_the_run_is_what_python_would_find(evomeans, blobs):
    """Labels, centres, history, model and record all tell the same fit."""
    result = evomeans(*FIT, "-o", "out")
    assert result.code == 0
    assert names("out") == FILES
    assert names() == {"blobs.csv", "out"}

    model = HGMeans.fast(3, random_state=1).fit(blobs)
    labels = pl.read_csv("out/labels.csv")
    assert labels.columns == ["name", "cluster"]
    assert labels["name"].to_list() == [f"r{i}" for i in range(1, 61)]
    np.testing.assert_array_equal(labels["cluster"].to_numpy(), model.labels_)
    centers = pl.read_csv("out/centers.csv")
    assert centers.columns == ["cluster", "größe (m)", "b"]
    np.testing.assert_array_equal(centers.to_numpy()[:, 1:], model.cluster_centers_)
    history = pl.read_csv("out/history.csv")
    np.testing.assert_array_equal(history["best"].to_numpy(), model.history_.column("best"))
    loaded = package.load("out/model.evomeans")
    np.testing.assert_array_equal(loaded.cluster_centers_, model.cluster_centers_)
    assert list(loaded.feature_names_in_) == ["größe (m)", "b"]

    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["result"]["inertia"] == model.inertia_
    assert record["result"]["cluster_sizes"] == [20, 20, 20]
    assert record["settings"]["random_state"] == 1
    assert record["table"]["columns"] == ["größe (m)", "b"]
    assert set(record["files"]) == FILES
    assert "größe (m)" in Path("out/report.html").read_text(encoding="utf-8")


def test_summary(evomeans, blobs):
    """A few lines on standard output; progress and notes are elsewhere."""
    result = evomeans(*FIT)
    assert result.out.startswith("blobs.csv: 60 rows, 2 columns, 3 clusters\n  inertia   ")
    assert "sizes     20, 20, 20" in result.out
    assert "seed 1" in result.out
    assert "-o FOLDER keeps" in result.out
    assert "independent starts led to the same best solution." in result.out
    assert "% certain that no solution within reach is better" in result.out
    assert len(result.out.splitlines()) == 7
    assert names() == {"blobs.csv"}


def test_quiet_and_json(evomeans, blobs):
    result = evomeans(*FIT, "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")
    result = evomeans(*FIT, "--json")
    record = json.loads(result.out)
    assert record["result"]["stop_reason"] == "agreement"
    assert record["output"] is None
    assert "60 rows" in result.err
    assert json.loads(evomeans(*FIT, "--json", "--quiet").out)["settings"] == record["settings"]


def test_a_drawn_seed_can_be_repeated(evomeans, blobs):
    command = [word for word in FIT if word not in ("--seed", 1)]
    first = json.loads(evomeans(*command, "--json", "-q").out)
    seed = first["settings"]["random_state"]
    again = json.loads(evomeans(*command, "--json", "-q", "--seed", seed).out)
    assert isinstance(seed, int)
    assert first["result"] == again["result"]


def test_standardized_and_weighted(evomeans, blobs):
    """The search sees standardized columns, the files the original units."""
    weights = np.tile([1.0, 2.0], 30)
    X = blobs * [1000.0, 1.0]
    lines = [f"{a!r},{b!r},{w}" for (a, b), w in zip(X.tolist(), weights, strict=True)]
    Path("scaled.csv").write_text("a,b,w\n" + "\n".join(lines) + "\n")
    command = ("fit", "scaled.csv", "-k", 3, "--seed", 0, "--fast", "--standardize")
    result = evomeans(*command, "--weights", "w", "-o", "out")
    assert result.code == 0
    assert "in standardized units" in result.out
    centers = pl.read_csv("out/centers.csv").to_numpy()[:, 1:]
    labels = pl.read_csv("out/labels.csv")
    assert labels["row"].to_list() == list(range(1, 61))
    for cluster, center in enumerate(centers):
        own = labels["cluster"].to_numpy() == cluster
        expected = np.average(X[own], axis=0, weights=weights[own])
        np.testing.assert_allclose(center, expected, rtol=1e-9)
    record = json.loads(Path("out/run.json").read_text())
    np.testing.assert_allclose(
        record["standardization"]["mean"], np.average(X, axis=0, weights=weights)
    )


def test_spaces_in_paths_and_new_parents(evomeans, blobs):
    """Without a checkpoint, --resume begins anew."""
    Path("my data").mkdir()
    Path("blobs.csv").rename("my data/the blobs.csv")
    command = ("fit", "my data/the blobs.csv", *FIT[2:], "--no-report", "--resume")
    result = evomeans(*command, "-o", "new folder/my run")
    assert result.code == 0
    assert "there is no checkpoint new folder/my run.checkpoint; a new search" in result.err
    assert names("new folder") == {"my run"}
    record = json.loads(Path("new folder/my run/run.json").read_text(encoding="utf-8"))
    assert "'my data/the blobs.csv'" in record["command"]


def test_one_column_needs_no_search(evomeans, blobs):
    result = evomeans("fit", "blobs.csv", "-k", 2, "--columns", "b", "-o", "out")
    assert result.code == 0
    assert "solved exactly" in result.out
    assert names("out") == FILES
    assert pl.read_csv("out/history.csv").height == 0


def test_fewer_distinct_rows_than_clusters(evomeans):
    """scikit-learn's warning becomes a note."""
    Path("same.csv").write_text("a,b\n" + "1,2\n" * 10)
    result = evomeans("fit", "same.csv", "-k", 3, "--fast", "-o", "out", "--no-report")
    assert result.code == 0
    assert "note: Number of distinct clusters (1) found smaller than n_clusters (3)" in result.err


def test_the_gpu_engine_finds_the_same(evomeans, blobs, gpu_device):
    """On clusters nobody can miss."""
    assert evomeans(*FIT, "--engine", "gpu", "-o", "out").code == 0
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["result"]["inertia"] == pytest.approx(
        HGMeans.fast(3, random_state=1).fit(blobs).inertia_, rel=1e-9
    )


def test_what_the_gpu_engine_lacks_is_said_before_anything_is_read(evomeans, monkeypatch):
    monkeypatch.setenv("EVOMEANS_GPU_DEVICE", "abacus")
    result = evomeans("fit", "absent.csv", "-k", "3", "--engine", "gpu")
    assert result.code == 1
    assert "PyTorch" in result.err
    assert "absent.csv" not in result.err


# Runs that exist, and failures while writing


@pytest.mark.parametrize("reason", ["agreement", "interrupted"])
def test_an_existing_run_is_kept(evomeans, run, reason):
    """Also an interrupted one that cannot be continued, because its checkpoint is gone."""
    path = Path("out/run.json")
    path.write_text(path.read_text().replace('"agreement"', f'"{reason}"'))
    before = contents("out")
    for more in ([], ["--resume"]):
        result = evomeans(*FIT, "-o", "out", *more)
        assert result.code == 1
        assert "has a run already" in result.err
        assert "--force" in result.err
    assert contents("out") == before


def test_force_replaces_the_run_and_nothing_else(evomeans, run):
    Path("out/mine.txt").write_text("mine")
    Path("out/folder").mkdir()
    result = evomeans("fit", "blobs.csv", "-k", 2, *FIT[4:], "-o", "out", "--force", "--no-report")
    assert result.code == 0
    assert names("out") == (FILES - {"report.html"}) | {"mine.txt", "folder"}
    assert Path("out/mine.txt").read_text() == "mine"
    assert pl.read_csv("out/centers.csv").height == 2
    evomeans(*FIT, "-o", "out", "--force", "--format-out", "parquet", "--no-report")
    assert not {"labels.csv", "centers.csv", "history.csv"} & names("out")
    assert pl.read_parquet("out/labels.parquet").columns == ["name", "cluster"]


@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_in_the_middle_leaves_no_half_run(evomeans, blobs, monkeypatch, existing):
    """A full disk after half of the files: the old run stays, and the search is kept."""
    command = (*FIT, "-o", "out", "--no-report")
    if existing:
        evomeans("fit", "blobs.csv", "-k", 2, *command[4:])
    before = contents()

    def full(self, path):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(HGMeans, "save", full)
        result = evomeans(*command, *(["--force"] if existing else []))
    assert result.code == 1
    assert "out could not be written: No space left on device." in result.err
    assert "--resume" in result.err
    after = contents()
    assert after.pop(Path("out.checkpoint"))
    assert after == before

    again = evomeans(*command, "--resume", *(["--force"] if existing else []))
    assert again.code == 0
    assert "found out.checkpoint, " in again.err
    assert names("out") == FILES - {"report.html"}
    assert not Path("out.checkpoint").exists()


def test_a_bug_while_writing_does_not_lose_the_search(evomeans, blobs, monkeypatch, capsys):
    """The traceback comes, after what to do."""

    def broken(self, path):
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(HGMeans, "save", broken)
        with pytest.raises(RuntimeError, match="a bug"):
            evomeans(*FIT, "-o", "out", "-q", "--no-report")
    told = capsys.readouterr().err
    assert "out could not be written: a bug. Continue from out.checkpoint with:" in told
    assert "--resume" in told.splitlines()[-1]
    assert names() == {"blobs.csv", "out.checkpoint"}
    assert evomeans(*FIT, "-o", "out", "--resume", "--no-report").code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="file names are text elsewhere")
def test_names_that_are_no_text(evomeans, blobs):
    """Bytes of a file name that are not UTF-8 are shown as escapes."""
    odd = "b\udcff"
    Path("blobs.csv").rename(f"{odd}.csv")
    result = evomeans("fit", f"{odd}.csv", *FIT[2:], "-o", odd)
    assert result.code == 0
    assert "b\\udcff.csv: 60 rows" in result.out
    assert names(odd) == FILES
    record = json.loads(Path(odd, "run.json").read_text(encoding="utf-8"))
    assert record["table"]["name"] == f"{odd}.csv"
    assert json.loads(evomeans("fit", f"{odd}.csv", *FIT[2:], "--json").out)["command"]
    assert evomeans("report", odd).code == 0
    assert evomeans("predict", odd, f"{odd}.csv").code == 0


def test_without_jinja2_all_but_the_page_is_written(evomeans, blobs, monkeypatch):
    """Told before the search, not after it."""
    with monkeypatch.context() as patch:
        patch.setattr("evomeans.cli.run_folder.find_spec", lambda name: None)
        result = evomeans(*FIT, "-o", "out")
        assert evomeans("report", "out").code == 1
    assert result.code == 0
    assert "pip install 'evomeans[report]'" in result.err
    assert names("out") == FILES - {"report.html"}
    assert evomeans("report", "out").code == 0
    assert names("out") == FILES


# Checkpoints


def test_a_checkpoint_is_continued_only_when_asked(evomeans, blobs):
    """The same answer as one search in one go, and the seed comes from the file."""
    short = ("--max-offspring", 20, "--n-iter-no-change", 1000)
    evomeans(*FIT, *short, "--checkpoint", "c")
    assert Path("c").exists()
    longer = ("--max-offspring", 60, "--n-iter-no-change", 1000, "--checkpoint", "c", "--json")
    refused = evomeans(*FIT, *longer)
    assert refused.code == 1
    assert (
        "c holds a search already: --resume continues it, --force begins a new one" in refused.err
    )
    without_seed = [word for word in FIT if word not in ("--seed", 1)]
    resumed = json.loads(evomeans(*without_seed, *longer, "--resume").out)
    begun = json.loads(evomeans(*FIT, *longer, "--force").out)
    assert resumed["result"] == begun["result"]
    assert resumed["result"]["n_iter"] == 60
    assert resumed["settings"] == begun["settings"]


def test_a_checkpoint_of_another_table_is_refused(evomeans, blobs):
    evomeans(*FIT, "--max-offspring", 5, "--checkpoint", "c")
    Path("other.csv").write_text("a,b\n" + "\n".join(f"{i},{i * i}" for i in range(60)) + "\n")
    result = evomeans("fit", "other.csv", "-k", 3, "--fast", "--checkpoint", "c", "--resume")
    assert result.code == 1
    assert "cannot be continued" in result.err


@pytest.mark.parametrize("option", ["--resume", "--force"])
def test_a_foreign_file_is_neither_continued_nor_removed(evomeans, blobs, option):
    Path("letter.txt").write_text("dear")
    result = evomeans(*FIT, "--checkpoint", "letter.txt", option)
    assert result.code == 1
    assert "not a checkpoint that can be continued" in result.err
    assert Path("letter.txt").read_text() == "dear"


def test_a_column_that_drowns_the_others_is_pointed_out(evomeans, blobs):
    """At the terminal and in the report, unless columns are standardized."""
    table = pl.read_csv("blobs.csv").with_columns(pl.col("b") * 1000)
    table.write_csv("scaled.csv")
    command = ("fit", "scaled.csv", *FIT[2:], "-o", "run")
    told = "column 'b' makes 99.9 % of the variance"
    assert told in evomeans(*command).err
    assert json.loads(Path("run/report.json").read_text("utf-8"))["notes"][0].startswith(told)
    assert "of the variance" not in evomeans(*command, "--standardize", "--force").err
    assert json.loads(Path("run/report.json").read_text("utf-8"))["notes"] == []
