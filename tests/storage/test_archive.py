"""Archives: what is written comes back, and what a stranger made up is refused."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from evomeans.storage.archive import Archive, ArchiveError, read_archive, write_archive

KIND, VERSION = "evomeans test", 3
HEADER = {"format": KIND, "version": VERSION, "evomeans": "0.0"}
ARRAYS = {
    "doubles": np.random.default_rng(0).normal(size=(3, 4)),
    "singles": np.arange(6, dtype=np.float32).reshape(1, 2, 3),
    "labels": np.arange(5, dtype=np.int32),
    "counts": np.array([2**60, -1]),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 2, 3)),
}


def npy(values, **options) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values), **options)
    return file.getvalue()


def forged(path, members, compression=zipfile.ZIP_STORED):
    """Write a ZIP with exactly these (name, bytes) members."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def read(path) -> Archive:
    return read_archive(path, KIND, VERSION)


def test_what_is_written_is_read(tmp_path):
    """Values, types and shapes; text of all sorts."""
    meta = {"text": 'ümlaut \ud800 </script> "', "big": 2**127, "half": 0.1, "none": None}
    write_archive(tmp_path / "a", KIND, VERSION, meta, ARRAYS)
    archive = read(tmp_path / "a")
    assert {name: archive.meta[name] for name in meta} == meta
    for name, values in ARRAYS.items():
        assert archive.arrays[name].dtype == values.dtype
        assert_array_equal(archive.arrays[name], values)
        assert archive.arrays[name].flags.writeable


def test_any_order_of_memory_and_bytes_is_written_alike(tmp_path):
    values = ARRAYS["doubles"]
    for name, twin in {
        "a": values,
        "b": np.asfortranarray(values),
        "c": values.astype(">f8"),
    }.items():
        write_archive(tmp_path / name, KIND, VERSION, {}, {"x": twin})
    contents = {(tmp_path / name).read_bytes() for name in "abc"}
    assert len(contents) == 1


def test_numpy_can_read_the_members(tmp_path):
    """The format needs no evomeans: ``np.load`` opens the file."""
    write_archive(tmp_path / "a.npz", KIND, VERSION, {}, ARRAYS)
    with np.load(tmp_path / "a.npz") as members:
        for name, values in ARRAYS.items():
            assert_array_equal(members[name], values)


def test_older_versions_are_read_and_newer_ones_say_so(tmp_path):
    write_archive(tmp_path / "old", KIND, VERSION - 1, {}, {})
    assert read(tmp_path / "old").meta["version"] == VERSION - 1
    write_archive(tmp_path / "new", KIND, VERSION + 1, {}, {})
    with pytest.raises(ArchiveError, match=r"version 4 .* newer evomeans .* Update evomeans"):
        read(tmp_path / "new")


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all", b"\x80\x04N.", bytes(10_000)])
def test_what_is_no_zip_is_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ArchiveError, match="damaged, or no ZIP"):
        read(tmp_path / "a")


def test_what_is_no_file_is_refused(tmp_path):
    """A folder, and a pipe on which reading would wait for ever."""
    with pytest.raises(ArchiveError, match="not a regular file"):
        read(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ArchiveError, match="not a regular file"):
            read(tmp_path / "pipe")


META = json.dumps(HEADER).encode()
JSON_FORGERIES = {
    b'{"format": "PK", "version": 1}': "of the format 'PK'",
    b"{}": "of the format None",
    b'{"format": "evomeans test"}': "no valid version",
    b'{"format": "evomeans test", "version": true}': "no valid version",
    b"[]": "not a JSON object",
    META[:-1]: "not valid JSON",
    b'{"format": "\xfc"}': "not valid JSON",
    b'{"version": NaN}': "NaN is not JSON",
    b'{"version": 1, "version": 2}': "a key occurs twice",
    b"[" * 100_000: "not valid JSON",
    b'{"a":' * 100_000: "not valid JSON",
    b'{"version": ' + b"9" * 10_000 + b"}": "not valid JSON",
}
ARRAY_FORGERIES = {
    "no array": (b"hello", "not an array of numbers"),
    "empty": (b"", "not an array of numbers"),
    "text": (npy(["a"]), "not an array of numbers"),
    "complex": (npy([1j]), "not an array of numbers"),
    "scalar": (npy(1.0), "not an array of numbers"),
    "big endian": (npy(np.ones(2, ">f8")), "not an array"),
    "fortran": (npy(np.ones((2, 3), order="F")), "not an array"),
    "other version": (npy([1.0], version=(3, 0)), "not an array"),
    "record": (npy(np.zeros(2, "i4,f8")), "not an array"),
    "four": (npy(np.ones((1, 1, 1, 1))), "not an array"),
    "short": (npy([1.0, 2.0])[:-1], "not what"),
    "long": (npy([1.0, 2.0]) + b"\0", "not what"),
    "flags": (npy([True, False])[:-1] + b"\x07", "truth values"),
}
NAME_FORGERIES = ("../../x.npy", "/etc/x.npy", "x.npy/", "x.pkl")
FORGERIES = [
    ([("x.npy", npy([1.0]))], "lacks the member meta.json"),
    ([("meta.json", META), *((f"{'x' * i}.npy", b"") for i in range(1, 70))], "members"),
    *(([("meta.json", text)], message) for text, message in JSON_FORGERIES.items()),
    *(([("meta.json", META), (name, npy([1.0]))], "strange name") for name in NAME_FORGERIES),
    *(([("meta.json", META), ("x.npy", data)], text) for data, text in ARRAY_FORGERIES.values()),
]


@pytest.mark.parametrize(("members", "text"), FORGERIES, ids=range(len(FORGERIES)))
def test_forgeries_are_refused(tmp_path, members, text):
    """Valid ZIPs whose contents are not what they should be."""
    forged(tmp_path / "a", members)
    with pytest.raises(ArchiveError, match=text):
        read(tmp_path / "a")


class Trap:
    """Unpickling it creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_objects_are_never_unpickled(tmp_path):
    """An object array, the usual way to run code from a ``.npy``, is refused unread."""
    trap = np.empty(1, dtype=object)
    trap[0] = Trap(str(tmp_path / "sprung"))
    forged(tmp_path / "a", [("meta.json", META), ("x.npy", npy(trap, allow_pickle=True))])
    with pytest.raises(ArchiveError, match="not an array of numbers"):
        read(tmp_path / "a")
    assert not (tmp_path / "sprung").exists()


def header(shape: str) -> bytes:
    return npy_start(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}")


def npy_start(literal: str) -> bytes:
    text = literal.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("(99999999999999,)", "not what"),
        ("(999999999999999, 999999999999999, 9)", "not what"),
        ("(0, 999999999999999, 999999999999999)", "impossible shape|not what|unknown"),
        ("(9999999999999999999999,)", "not an array"),
        ("(-1,)", "not an array"),
        ("(0, 999999999999999999)", "impossible shape|unknown"),
        ("(__import__('os').getpid(),)", "not an array"),
        ("(" * 5000 + ")" * 5000, "not an array"),
    ],
)
def test_absurd_shapes_are_refused_before_anything_is_allocated(tmp_path, shape, text):
    forged(tmp_path / "a", [("meta.json", META), ("x.npy", header(shape))])
    with pytest.raises(ArchiveError, match=text):
        read(tmp_path / "a").expect([])


@pytest.mark.parametrize(
    "literal",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" + " " * 300,
        "{'descr': '<f8', 'fortran_order': False, 'shape': [1], }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 1), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, ), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } # more",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f8', 'shape': (1,), }",
        "{'descr': ('<f8', (1,)), 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8" + "\0" * 9,
        "(" * 250,
        "[" * 90 + "]" * 90,
        "-" * 250 + "1",
        "9" * 250,
        "'" * 3,
        "\x80\xff",
        "",
    ],
)
def test_headers_that_numpy_does_not_write_are_refused(tmp_path, literal):
    """Each is followed by the eight bytes of one number."""
    forged(tmp_path / "a", [("meta.json", META), ("x.npy", npy_start(literal) + bytes(8))])
    with pytest.raises(ArchiveError, match="not an array of numbers"):
        read(tmp_path / "a")


def test_a_header_is_as_long_as_it_says(tmp_path):
    """Else a part of it would be taken for numbers, or numbers for a part of it."""
    valid = header("(1,)") + bytes(8)
    assert_array_equal(
        read(forged(tmp_path / "a", [("meta.json", META), ("x.npy", valid)])).arrays["x"], [0.0]
    )
    for step in (-1, 1):
        wrong = bytearray(valid)
        wrong[8] += step
        forged(tmp_path / "a", [("meta.json", META), ("x.npy", bytes(wrong))])
        with pytest.raises(ArchiveError, match="not an array of numbers"):
            read(tmp_path / "a")


def test_compressed_members_are_refused(tmp_path):
    """Nothing is ever inflated, so that a small file is a small amount of data."""
    bomb = npy(np.zeros(10**7))
    forged(tmp_path / "a", [("meta.json", META), ("x.npy", bomb)], zipfile.ZIP_DEFLATED)
    assert (tmp_path / "a").stat().st_size < 10**5
    with pytest.raises(ArchiveError, match="compressed"):
        read(tmp_path / "a")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicates_are_refused(tmp_path):
    forged(tmp_path / "a", [("meta.json", META), ("x.npy", npy([1.0])), ("x.npy", npy([2.0]))])
    with pytest.raises(ArchiveError, match="two members of the same name"):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("offset", "data", "text"),
    [
        (20, struct.pack("<II", 2**31, 2**31), "claim to be larger than the file"),
        (8, b"\x01", "encrypted"),
    ],
)
def test_what_the_directory_says_is_compared_with_the_file(tmp_path, offset, data, text):
    """Sizes that the file cannot hold, and an encryption that it does not have."""
    forged(tmp_path / "a", [("meta.json", META), ("x.npy", npy([1.0]))])
    content = bytearray((tmp_path / "a").read_bytes())
    place = content.rindex(b"PK\x01\x02") + offset
    content[place : place + len(data)] = data
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ArchiveError, match=text):
        read(tmp_path / "a")


# What is asked of an archive


@pytest.fixture
def archive() -> Archive:
    arrays = {**ARRAYS, "holes": np.array([1.0, np.nan])}
    return Archive({"n": 3, "x": 0.5, "flag": True, "o": {}, "huge": 10**400}, arrays)


def test_exactly_the_expected_members(archive):
    with pytest.raises(ArchiveError, match=r"lacks the member missing\.npy"):
        archive.expect([*archive.arrays, "missing"])
    with pytest.raises(ArchiveError, match=r"unknown member doubles\.npy"):
        archive.expect([name for name in archive.arrays if name != "doubles"])
    archive.expect(list(ARRAYS), optional=["holes", "more"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("doubles", "float32", (3, 4)), "is of type float64, not float32"),
        (("doubles", ("int32", "bool"), (3, 4)), "not int32 or bool"),
        (("doubles", "float64", (3, 5)), r"has the shape \(3, 4\), not \(3, 5\)"),
        (("doubles", "float64", (None,)), r"not \(any\)"),
        (("holes", "float64", (2,)), "NaN or infinity"),
    ],
)
def test_an_array_is_as_asked_for_or_refused(archive, arguments, text):
    with pytest.raises(ArchiveError, match=text):
        archive.array(*arguments)


def test_ranges_of_arrays(archive):
    assert archive.array("labels", "int32", (None,), low=0, high=4) is ARRAYS["labels"]
    assert archive.array("empty", "float64", (None, 2, 3), low=5.0).size == 0
    for limits in ({"low": 1}, {"high": 3}):
        with pytest.raises(ArchiveError, match="labels is not within"):
            archive.array("labels", "int32", (5,), **limits)


def test_fields(archive):
    assert archive.field("n", "int", 0, 3) == 3
    assert archive.field("x", "float") == 0.5
    assert archive.field("n", "float") == 3.0
    assert archive.field("o", "dict") == {}
    for ask in (
        lambda: archive.field("n", "int", 0, 2),
        lambda: archive.field("x", "int", 0, 9),
        lambda: archive.field("flag", "int", 0, 9),
        lambda: archive.field("missing", "int", 0, 9),
        lambda: archive.field("flag", "float"),
        lambda: archive.field("huge", "float"),
        lambda: archive.field("x", "float", low=1.0),
        lambda: archive.field("n", "dict"),
    ):
        with pytest.raises(ArchiveError, match=r"^its "):
            ask()


@given(data=st.binary(max_size=300), where=st.integers(0, 400), cut=st.integers(0, 1))
def test_noise_in_an_archive_never_causes_another_error(tmp_path, data, where, cut):
    """Bytes written over it anywhere: it is read, or it is an ArchiveError."""
    path = tmp_path / "a"
    write_archive(path, KIND, VERSION, {"n": 1}, {"x": ARRAYS["doubles"]})
    original = path.read_bytes()
    end = original[where + len(data) :] if not cut else b""
    path.write_bytes(original[:where] + data + end)
    try:
        archive = read(path)
    except ArchiveError:
        return
    assert archive.meta["n"] == 1 or archive.meta["format"] == KIND


def test_every_byte_may_be_hit_and_every_end_be_missing(tmp_path):
    """One byte after another, also where no checksum covers it: the same contents, or refused."""
    path = tmp_path / "a"
    write_archive(path, KIND, VERSION, {"n": 1}, {"x": ARRAYS["doubles"]})
    data = path.read_bytes()
    flipped = [data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :] for at in range(len(data))]
    n_refused = 0
    for content in (*flipped, *(data[:length] for length in range(len(data)))):
        path.write_bytes(content)
        try:
            archive = read(path)
            archive.expect(["x"])
        except ArchiveError:
            n_refused += 1
        else:
            assert archive.meta["n"] == 1
            assert_array_equal(archive.arrays["x"], ARRAYS["doubles"])
    assert n_refused > 1.5 * len(data)
