"""Samples by name: from a folder, the repository, earlier downloads, or a server."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import textwrap
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lab.data import (
    DATASETS,
    DataError,
    Dataset,
    DownloadError,
    MissingDataError,
    Place,
    WrongContentsError,
    available,
    dataset_named,
    fetch,
    is_available,
    load,
    load_labelled,
    loading,
    places,
    registry,
)
from lab.data.archives import read_parts
from lab.data.cleaning import numbers
from lab.data.download import Patience, download
from lab.data.records import Member, Source
from lab.data.verification import digest, verify
from servers import resuming, serving, status, whole

ROOT = Path(__file__).parents[3]
TABLE = b"1 2 7\n3 4.5 7\n5 6 9\n"
X = np.array([[1, 2], [3, 4.5], [5, 6]])
Y = [0, 0, 1]
ALWAYS = {
    "german_towns": Place.SHIPPED,
    "bavaria1": Place.SHIPPED,
    "bavaria2": Place.SHIPPED,
    "iris": Place.SCIKIT_LEARN,
}


def zipped(content: bytes = TABLE) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("table.data", content)
    return file.getvalue()


@pytest.fixture
def server(monkeypatch):
    """Serve a small data set, without long waits for a server that fails."""
    quick = partial(download, patience=Patience(attempts=2, timeout=5.0, first_pause=0.0))
    monkeypatch.setattr(loading, "download", quick)
    with serving() as started:
        started.answers = [whole(zipped())]
        yield started


@pytest.fixture
def toy(server, monkeypatch):
    """Put that data set on the list; its fields can be changed."""

    def listed(**fields: object) -> Dataset:
        usual = {
            "source": Source("https://page", server.url, (Member("table.data"),)),
            "clean": partial(numbers, label=-1),
            "digest": digest(X),
        }
        dataset = Dataset("toy", "Toy", 3, 2, "A1", "the class is dropped", **(usual | fields))
        monkeypatch.setitem(registry._BY_NAME, "toy", dataset)
        return dataset

    listed()
    return listed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    monkeypatch.setenv("EVOMEANS_DATA", str(path))
    return path


def test_a_clone_has_four_data_sets():
    """Right ones, by their digests, without a network; the others can be downloaded, save one."""
    assert available() == ALWAYS
    for name in ALWAYS:
        samples = load(name, may_download=False)
        dataset = dataset_named(name)
        assert samples.dtype == np.float64
        assert samples.shape == (dataset.n, dataset.d)
        assert digest(samples) == dataset.digest
    others = set(places().items()) - set(ALWAYS.items())
    assert {name for name, place in others if place is Place.MISSING} == {"kegg"}
    assert sum(place is Place.DOWNLOADABLE for _, place in others) == 24


def test_iris_of_scikit_learn_has_its_classes():
    samples, classes = load_labelled("iris")
    assert np.bincount(classes).tolist() == [50, 50, 50]
    assert samples[0].tolist() == [5.1, 3.5, 1.4, 0.2]


def test_german_towns_have_none():
    with pytest.raises(MissingDataError, match="german_towns here has no classes"):
        load_labelled("german_towns")


def test_downloaded_once(toy, server, downloads):
    """Then it lies in the downloads, cleaned; the archive is gone."""
    assert not is_available("toy")
    np.testing.assert_array_equal(load("toy"), X)
    assert is_available("toy")
    assert sorted(p.name for p in downloads.rglob("*") if p.is_file()) == ["toy.lock", "toy.npz"]
    samples, classes = load_labelled("toy", may_download=False)
    np.testing.assert_array_equal(samples, X)
    assert classes.tolist() == Y
    assert len(server.requests) == 1


def test_a_folder_comes_first(toy, server, folder):
    """Whatever the order of its rows and its type; nothing is downloaded."""
    np.savez(folder / "toy.npz", X=X[::-1].astype(np.float32))
    loaded = load("toy")
    assert loaded.dtype == np.float64
    np.testing.assert_array_equal(loaded, X[::-1])
    assert fetch("toy") is Place.FOLDER
    assert server.requests == []


def test_a_folder_comes_before_what_is_shipped(folder):
    np.savez(folder / "iris.npz", X=load("iris"))
    assert available()["iris"] is Place.FOLDER
    assert load("iris").shape == (150, 4)


def test_earlier_downloads_come_before_a_download(toy, server, downloads):
    downloads.mkdir()
    np.savez(downloads / "toy.npz", X=X)
    assert fetch("toy") is Place.DOWNLOADED
    assert server.requests == []
    assert fetch("iris") is Place.SCIKIT_LEARN


def test_fetching_tells_what_it_did(toy):
    assert fetch("toy") is Place.DOWNLOADABLE
    assert fetch("toy") is Place.DOWNLOADED


def test_a_file_saved_by_hand(toy, server, downloads):
    """The archive itself, where the message of a failed download says; it stays there."""
    server.answers = [status(404)]
    with pytest.raises(DownloadError) as error:
        load("toy")
    path = Path(str(error.value).rpartition(f"save {server.url} as ")[2].rstrip("."))
    assert downloads in path.parents
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zipped())
    np.testing.assert_array_equal(load("toy"), X)
    assert path.exists()
    assert len(server.requests) == 1


def test_without_a_network(toy, server):
    """The error says what was tried, how often, and two ways to go on."""
    server.answers = [status(503)]
    with pytest.raises(DownloadError) as error:
        load("toy")
    text = str(error.value)
    for part in (server.url, "Tried 2 times", "503", "offline?", "toy.npz", "EVOMEANS_DATA"):
        assert part in text
    assert "(3, 2)" in text


def test_nothing_is_downloaded_against_the_will(toy, server):
    with pytest.raises(MissingDataError, match=r"toy is not available.*data fetch toy"):
        load("toy", may_download=False)
    assert server.requests == []


def test_an_interrupted_download_goes_on(toy, server):
    """The second call asks for the rest only."""
    archive = zipped()
    server.answers = [resuming(archive, upto=40, ETag='"v"'), status(500)]
    with pytest.raises(DownloadError, match=f"ended after 40 of {len(archive)} bytes"):
        load("toy")
    server.answers = [resuming(archive, ETag='"v"')]
    np.testing.assert_array_equal(load("toy"), X)
    assert server.ranges()[-1] == "bytes=40-"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (whole(zipped(TABLE[:-6])), r"file.zip is not toy: .* shape \(2, 2\)"),
        (whole(zipped(TABLE.replace(b"4.5", b"4.6"))), "is not toy: the SHA-256 of its sorted"),
        (whole(zipped(b"1 2 7\n3 4.5\n")), "Not a table of numbers"),
        (whole(b"<html>Please log in</html>"), "cannot be read as what .* should give"),
        (whole(zipped()[:60], length=False), "cannot be read as what .* should give"),
    ],
)
def test_a_server_that_lies(toy, server, downloads, answer, message):
    """Nothing of it is kept, the way out is told, and the next call asks again."""
    server.answers = [answer]
    with pytest.raises(WrongContentsError, match=message) as error:
        load("toy")
    assert "EVOMEANS_DATA" in str(error.value)
    assert sorted(p.name for p in downloads.rglob("*") if p.is_file()) == ["toy.lock"]
    server.answers = [whole(zipped())]
    np.testing.assert_array_equal(load("toy"), X)


def test_a_cleaner_that_stumbles(toy):
    """Its errors are those of the file."""

    def stumbling(parts):
        raise ValueError("invalid literal")

    toy(clean=stumbling)
    with pytest.raises(WrongContentsError, match=r"file.zip is not as expected: invalid literal"):
        load("toy")


def test_a_known_archive(toy, server):
    """Its SHA-256 is checked before it is opened."""
    sha256 = hashlib.sha256(zipped()).hexdigest()
    source = Source("https://page", server.url, (Member("table.data"),), sha256)
    toy(source=source)
    np.testing.assert_array_equal(load("toy"), X)


def test_another_archive_than_the_known_one(toy, server, downloads):
    source = Source("https://page", server.url, (Member("table.data"),), "0" * 64)
    toy(source=source)
    with pytest.raises(WrongContentsError, match="is not the file that is known"):
        load("toy")
    assert not (downloads / "toy.npz").exists()


@pytest.mark.parametrize(("value", "fits"), [(3.125, True), (3.2, False)])
def test_a_published_value_replaces_an_unknown_digest(toy, value, fits):
    toy(digest=None, value_of_2=value)
    if fits:
        np.testing.assert_array_equal(load("toy"), X)
    else:
        with pytest.raises(WrongContentsError, match=r"m=2 is 3\.2"):
            load("toy")


@pytest.mark.parametrize(
    ("samples", "message"),
    [(X[:2], r"toy\.npz is not toy: .* \(2, 2\)"), (X + 1, "is not toy: the SHA-256")],
)
def test_a_folder_that_lies(toy, folder, samples, message):
    """A file with the name of a data set and other contents is refused, not replaced."""
    np.savez(folder / "toy.npz", X=samples)
    with pytest.raises(WrongContentsError, match=message):
        load("toy")


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x93NUMPY", zipped()])
def test_a_file_that_is_none(toy, folder, content):
    (folder / "toy.npz").write_bytes(content)
    with pytest.raises(WrongContentsError, match=r"toy\.npz cannot be read as an \.npz file"):
        load("toy")


def test_missing_ones_are_reported_with_the_reason(folder):
    """Not downloaded, not replaced; but taken from a folder, if somebody has them."""
    assert places()["kegg"] is Place.MISSING
    with pytest.raises(MissingDataError, match=r"kegg is missing: nobody .* Put kegg.npz"):
        load("kegg")
    np.savez(folder / "kegg.npz", X=np.zeros((53413, 20), dtype=np.int16))
    assert load("kegg").shape == (53413, 20)


def test_partial_copies_and_own_data_are_workloads(folder):
    """Loaded from the folder as they are; no data sets of the paper."""
    for name in ("partial_isolet", "mine"):
        np.savez(folder / f"{name}.npz", X=np.ones((4, 2), dtype=np.int8))
        assert is_available(name)
        assert load(name).tolist() == [[1.0, 1.0]] * 4
    assert set(places()) == {dataset.name for dataset in DATASETS}


def test_names_that_nobody_knows(monkeypatch):
    assert not is_available("irs")
    with pytest.raises(MissingDataError, match=r"no data set 'irs'.*not set"):
        load("irs")
    with pytest.raises(MissingDataError, match=r"partial_kegg is only found .* not set"):
        load("partial_kegg")
    monkeypatch.setenv("EVOMEANS_DATA", "/nowhere/at/all")
    with pytest.raises(DataError, match="EVOMEANS_DATA=/nowhere/at/all is not a folder"):
        load("iris")


def test_where_downloads_are_kept(monkeypatch):
    assert loading.downloads_folder() == Path(loading.os.environ["EVOMEANS_DOWNLOADS"])
    monkeypatch.delenv("EVOMEANS_DOWNLOADS")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert loading.downloads_folder() == Path("/caches/evomeans/data")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert loading.downloads_folder() == Path("/home/me/.cache/evomeans/data")


SEVERAL = """
    import sys
    from functools import partial
    import numpy as np
    from lab.data import Dataset, load, registry
    from lab.data.cleaning import numbers
    from lab.data.records import Member, Source

    source = Source("https://page", sys.argv[1], (Member("table.data"),))
    clean = partial(numbers, label=-1)
    registry._BY_NAME["toy"] = Dataset("toy", "Toy", 3, 2, "A1", "", source, clean)
    print(load("toy").sum())
"""


def test_several_processes_download_once(server):
    """The others wait, and find it in the downloads."""
    command = [sys.executable, "-c", textwrap.dedent(SEVERAL), server.url]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0].split() for process in started] == [[b"21.5"]] * 3
    assert len(server.requests) == 1


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float64])
def test_what_is_kept_is_small_and_exact(toy, server, downloads, dtype):
    """In the smallest type that keeps every value."""
    value = {np.int16: 300, np.int32: 70_000, np.float32: 0.5, np.float64: 0.1}[dtype]
    server.answers = [whole(zipped(f"1 2 7\n3 {value} 7\n5 6 9\n".encode()))]
    toy(digest=None)
    assert load("toy")[1, 1] == value
    with np.load(downloads / "toy.npz") as stored:
        assert stored["X"].dtype == dtype
        assert stored["y"].dtype == np.int16
        assert stored["X"][1, 1] == value


def test_the_true_data_sets(given_data):
    """All 21 with a digest, where somebody has them: shape, contents, classes."""
    at_hand = [d for d in DATASETS if (given_data / f"{d.name}.npz").exists()]
    assert {d.name for d in at_hand if d.digest} == set(registry.DIGESTS)
    for dataset in at_hand:
        assert load(dataset.name, may_download=False).shape == (dataset.n, dataset.d)
    assert np.bincount(load_labelled("skin")[1]).tolist() == [50859, 194198]


def lines(rows, delimiter, end="\n"):
    return "".join(delimiter.join(map(str, row)) + end for row in rows).encode()


def true_files(name):
    """Write the files of the repository again, from samples and classes."""
    samples, classes = load_labelled(name)
    rows = samples.astype(int).tolist()
    if name == "letters":
        table = [[chr(ord("A") + c), *row] for row, c in zip(rows, classes, strict=True)]
        return {"letter-recognition.data": lines(table, ",")}
    if name == "skin":
        table = [[*row, c + 1] for row, c in zip(rows, classes, strict=True)]
        return {"Skin_NonSkin.txt": lines(table, "\t", "\r\n")}
    # The available copy numbers the classes by their names; these are the numbers at UCI.
    numbered = [6, 7, 5, 2, 3, 4, 1]
    table = [[*row, numbered[c]] for row, c in zip(rows, classes, strict=True)]
    return {"shuttle.trn": lines(table[:43500], " "), "shuttle.tst": lines(table[43500:], " ")}


@pytest.mark.parametrize("name", ["letters", "shuttle", "skin"])
def test_true_files_pass_the_whole_way(given_data, tmp_path, name):
    """Files with the SHA-256 that others have written down of those at UCI give the samples."""
    path = tmp_path / "file.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in true_files(name).items():
            archive.writestr(member, content)
    dataset = dataset_named(name)
    assert all(member.sha256 for member in dataset.source.members)
    cleaned = dataset.clean(read_parts(path, dataset))
    verify(dataset, cleaned.X, "the files")
    assert len(np.unique(cleaned.y)) == len(np.unique(load_labelled(name)[1]))
