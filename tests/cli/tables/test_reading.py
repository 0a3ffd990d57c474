"""Every format gives the same table, and everything strange about it is told."""

from __future__ import annotations

import errno
import gzip
import io
import os
import pathlib
import sys
import threading
import zipfile

import numpy as np
import polars as pl
import pytest
from blobs import read_table

from evomeans.cli.options import TableOptions
from evomeans.cli.tables.numbers import scale_note
from evomeans.cli.tables.table import (
    Table,
    centers_frame,
    history_frame,
    labels_frame,
    table_bytes,
)
from evomeans.cli.terminal import CommandError, UsageError
from evomeans.search import History, OffspringRecord
from evomeans.search.history import COLUMNS

NUMBERS = np.array([[1.5, -2.0], [3.25, 1e-3], [1e5, 7.0]])
CSV = "height,weight\n1.5,-2\n3.25,0.001\n1e5,7\n"


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path as text."""

    def put(name: str, content: bytes | str) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return put


def saved(save, *args, **kwargs) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *args, **kwargs)
    return buffer.getvalue()


def zipped(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


FRAME = pl.DataFrame(NUMBERS, schema=["height", "weight"])
NAMED = {
    "a.csv": CSV.encode(),
    "a.csv.gz": gzip.compress(CSV.encode()),
    "bom.csv": b"\xef\xbb\xbf" + CSV.encode(),
    "crlf.csv": CSV.replace("\n", "\r\n").encode(),
    "no end.csv": CSV.rstrip().encode(),
    "semicolons.csv": CSV.replace(",", ";").encode(),
    "padded.csv": CSV.replace(",", " ,  ").encode(),
    "quoted.csv": b'"height","weight"\n"1.5","-2"\n"3.25","0.001"\n"1e5","7"\n',
    "blank lines at the end.csv": CSV.encode() + b"\n,\n  \n",
    "a.tsv": CSV.replace(",", "\t").encode(),
    "no suffix": CSV.encode(),
    "a.parquet": saved(FRAME.write_parquet),
    "a.arrow": saved(FRAME.write_ipc),
    "a.feather": saved(FRAME.write_ipc),
    "stream.arrows": saved(FRAME.write_ipc_stream),
}
UNNAMED = {
    "a.npy": saved(np.save, NUMBERS),
    "fortran.npy": saved(np.save, np.asfortranarray(NUMBERS)),
    "one.npz": saved(np.savez, anything=NUMBERS),
    "X and y.npz": saved(np.savez_compressed, X=NUMBERS, y=np.arange(3)),
}


@pytest.mark.parametrize("name", sorted({**NAMED, **UNNAMED}))
def test_formats(write, monkeypatch, name):
    """Numbers, names and precision come out of every format as they went in.

    Arrays get the names that scikit-learn gives. Standard input needs --format.
    """
    content = {**NAMED, **UNNAMED}[name]
    table = read_table(write(name, content))
    assert table.named is (name in NAMED)
    assert table.columns == (("height", "weight") if table.named else ("x0", "x1"))
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.X, NUMBERS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    found = None if table.format == "csv" else table.format
    piped = read_table("-", TableOptions(format=found))
    assert piped.name == "standard input"
    np.testing.assert_array_equal(piped.X, NUMBERS)


def test_chosen_array_of_several(write):
    path = write("several.npz", saved(np.savez, a=NUMBERS, b=2 * NUMBERS))
    np.testing.assert_array_equal(read_table(f"{path}:b").X, 2 * NUMBERS)
    with pytest.raises(
        CommandError, match=r"holds a and b; say which, for example .*several.npz:a"
    ):
        read_table(path)
    with pytest.raises(CommandError, match="names no array of that file; it holds a and b"):
        read_table(f"{path}:c")


def test_a_file_that_may_not_be_opened(tmp_path, monkeypatch):
    def refuse(self, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(pathlib.Path, "open", refuse)
    with pytest.raises(CommandError, match=r"x\.csv cannot be read: Permission denied\."):
        read_table(str(tmp_path / "x.csv"))


def test_a_colon_in_a_file_name(write):
    """Only what does not exist under its full name is split at the colon."""
    path = write("odd.npz:name.csv", CSV)
    assert read_table(path).columns == ("height", "weight")


def test_single_precision_is_kept(write):
    small = FRAME.cast(pl.Float32)
    assert read_table(write("a.parquet", saved(small.write_parquet))).X.dtype == np.float32
    array = saved(np.save, NUMBERS.astype(np.float32))
    assert read_table(write("a.npy", array)).X.dtype == np.float32
    assert read_table(write("b.npy", array), TableOptions(exclude=("x0",))).X.dtype == np.float32
    mixed = small.with_columns(pl.col("weight").cast(pl.Float64))
    assert read_table(write("b.parquet", saved(mixed.write_parquet))).X.dtype == np.float64


def test_types_that_are_numbers(write):
    """Booleans are 0 and 1, decimals and all integers are what they are."""
    frame = pl.DataFrame(
        {
            "bool": [True, False],
            "decimal": pl.Series(["1.25", "-3.50"]).cast(pl.Decimal(10, 2)),
            "small": pl.Series([-128, 127], dtype=pl.Int8),
            "large": pl.Series([0, 2**53], dtype=pl.UInt64),
            "text": ["1.5", " +2e3 "],
            "category": pl.Series(["1", "2"], dtype=pl.Categorical),
        }
    )
    table = read_table(write("types.parquet", saved(frame.write_parquet)))
    expected = [[1, 1.25, -128, 0, 1.5, 1], [0, -3.5, 127, 2**53, 2000, 2]]
    np.testing.assert_array_equal(table.X, np.array(expected, dtype=float))


def test_choosing_columns(write):
    path = write("a.csv", "id,a,b,w\nx,1,2,1\ny,3,4,0.5\n")
    table = read_table(path, TableOptions(id="id"), weights="w")
    assert table.columns == ("a", "b")
    assert list(table.ids) == ["x", "y"]
    np.testing.assert_array_equal(table.weights, [1.0, 0.5])
    table = read_table(path, TableOptions(columns=("b", "a")))
    np.testing.assert_array_equal(table.X, [[2, 1], [4, 3]])
    assert read_table(path, TableOptions(exclude=("id", "w"))).columns == ("a", "b")


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"columns": ("heigth",)}, r"--columns names a column that .* 'heigth'.*mean 'height'\?"),
        ({"exclude": ("HEIGHT",)}, r"--exclude .* Did you mean 'height'\?"),
        ({"id": "zzz"}, r"--id names a column .* It has 'height' and 'weight'\."),
        ({"exclude": ("height", "weight")}, "No column of .* is left to cluster by"),
        ({"columns": ("height", "height")}, "names a column twice"),
        ({"columns": ()}, "names no column"),
    ],
)
def test_wrong_choices(write, choice, text):
    """A column that is not there is a mistake in the command; near names are suggested."""
    with pytest.raises(UsageError, match=text):
        read_table(write("a.csv", CSV), TableOptions(**choice))


@pytest.mark.parametrize(
    ("text", "more", "told"),
    [
        ("x,w\n1,1\n2,-3\n", {"weights": "w"}, "'w': negative weights, in line 3"),
        ("x,w\n1,1\n2,\n", {"weights": "w"}, "'w': 1 missing value"),
        # Quoted line ends and blank lines are counted as an editor counts them.
        ('x,name\n1,"a\nlong\nname"\n2,b\n\noops,c\n', {}, "'x': text in 1 row, in line 7: 'oops'"),
        ("a b\n1.5 2\n2 3\n", {}, "say what separates them: --separator space"),
        ('a;b\n"1,5";2\n"2,25";3\n', {}, "add --decimal-comma"),
        ("a;b\n1,5;2\n2,25;3\n", {}, "add --decimal-comma"),
        # Older versions of polars have no integers that large, and refuse them themselves.
        (f"a\n{10**29}\n1\n", {}, "more digits than can be kept, in line 2|as dtype `i64`"),
        (f"a\n{2**60 + 1}\n0\n", {}, "more digits than can be kept, in line 2"),
        (
            ",".join(map(str, range(30, 60))) + "\n" + ",".join("x" * 30),
            {},
            "(?s)30 col.*and 20 more",
        ),
    ],
)
def test_cells_that_are_refused(write, text, more, told):
    """Lines and values are named, and what to do about numbers in another writing."""
    with pytest.raises(CommandError, match=told) as caught:
        read_table(write("a.csv", text), TableOptions(header=True), **more)
    assert len(str(caught.value).splitlines()) < 16


def test_columns_that_a_model_expects(write):
    """By name where there are names, in the order of the model; by place where there are none."""
    path = write("a.csv", "extra,b,a\n9,1,2\n9,3,4\n")
    table = read_table(path, expected=("a", "b"))
    np.testing.assert_array_equal(table.X, [[2, 1], [4, 3]])
    with pytest.raises(CommandError, match=r"The model names a column that .* not have: 'c'"):
        read_table(path, expected=("a", "c"))
    array = write("a.npy", saved(np.save, NUMBERS))
    np.testing.assert_array_equal(read_table(array, expected=("a", "b")).X, NUMBERS)


@pytest.mark.parametrize(
    "name", ["größe", "身長", "a b", "it's", 'say "x"', "<b>", "a,b", "🙂", "^o.*$", "*"]
)
def test_strange_column_names(write, name):
    quoted = '"' + name.replace('"', '""') + '"'
    table = read_table(write("a.csv", f"{quoted},other\n1,2\n3,4\n"), TableOptions(columns=(name,)))
    assert table.columns == (name,)
    np.testing.assert_array_equal(table.X, [[1.0], [3.0]])
    frame = pl.DataFrame({"other": [2, 4], name: [1, 3]})
    table = read_table(
        write("a.parquet", saved(frame.write_parquet)), TableOptions(columns=(name,))
    )
    np.testing.assert_array_equal(table.X, [[1.0], [3.0]])


BAD_FILES = {
    "empty.csv": (b"", "is empty"),
    "header only.csv": (b"a,b\n", "has columns and no rows"),
    "header and blank.csv": (b"a,b\n\n\n", "has columns and no rows"),
    "blank first.csv": (b"\na,b\n1,2\n", "nothing in its first line"),
    "long row.csv": (b"a,b\n1,2\n3,4,5\n6,7\n", "3 fields in line 3 and 2 in its first line"),
    "row names.csv": (b"a,b\nr1,1,2\nr2,3,4\n", "3 fields in line 2"),
    "short row.csv": (b"a,b\n1,2\n3\n", r"'b': 1 missing value, in line 3"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "several columns of the same name: 'a'"),
    "no names.csv": (b"1,2\n3,4\n", "--no-header"),
    "latin1.csv": ("a,b\n1,é\n".encode("latin1"), r"not UTF-8 text: it has the byte 0xe9.*iconv"),
    "latin1 name.csv": ("a,é\n1,2\n".encode("latin1"), "not UTF-8 text"),
    "utf16.csv": (CSV.encode("utf-16"), "UTF-16 text, not CSV: .*save it as CSV in UTF-8"),
    "parquet without suffix": (NAMED["a.parquet"], "is binary .*--format"),
    "open quote.csv": (b'a,b\n"1,2\n3,4\n', "cannot be read as csv.*quote"),
    "a.json": (b'[{"a": 1}]', "save it as CSV or Parquet"),
    "new.xlsx": (b"PK\x03\x04rest", "save it as CSV or Parquet"),
    "v1.feather": (b"FEA1rest", "does not look like arrow"),
    "wrong.parquet": (b"a,b\n1,2\n", "does not look like parquet"),
    "cut.parquet": (NAMED["a.parquet"][:60], "cannot be read as parquet"),
    "cut.arrow": (NAMED["a.arrow"][:60], "cannot be read as arrow"),
    "cut.npy": (UNNAMED["a.npy"][:-8], "cannot be read as npy"),
    "cut.npz": (UNNAMED["one.npz"][:-30], "cannot be read as npz"),
    "cut.csv.gz": (NAMED["a.csv.gz"][:-9], "cannot be decompressed"),
    "empty.npz": (saved(np.savez), "holds no array"),
    "letter.npz": (zipped("letter.txt", "dear"), "letter.txt in .* numbers are needed"),
    "objects.npy": (saved(np.save, np.array([{}]), allow_pickle=True), "Object arrays cannot"),
    "text.npy": (saved(np.save, np.array([["a"]])), "array of <U1; numbers are needed"),
    "complex.npy": (saved(np.save, np.ones((2, 2), complex)), "array of complex128"),
    "deep.npy": (saved(np.save, np.ones((2, 2, 2))), r"has shape \(2, 2, 2\)"),
    "scalar.npy": (saved(np.save, np.float64(1)), r"has shape \(\)"),
    "no rows.npy": (saved(np.save, np.ones((0, 2))), "has columns and no rows"),
    "no columns.npy": (saved(np.save, np.ones((2, 0))), "has no columns"),
    "records.npy": (saved(np.save, np.zeros(2, "i4,f4")), "numbers are needed"),
    "sparse.npz": (
        saved(np.savez, data=[1], indices=[0], indptr=[0], shape=[1]),
        "SciPy sparse matrix",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", sorted(BAD_FILES))
def test_files_that_are_refused(write, name):
    """Each with a text that says what is wrong, and under the name of the file."""
    content, text = BAD_FILES[name]
    with pytest.raises(CommandError, match=text) as caught:
        read_table(write(name, content))
    assert name in str(caught.value)


BAD_COLUMNS = {
    "text": (["a", "b", "c"], r"'x': text in all rows, first in rows 1, 2 and 3: 'a'"),
    "one word": (["1", "2", "three"], r"'x': text in 1 row, in row 3: 'three'"),
    "missing": ([1.0, None, 2.0], r"'x': 1 missing value, in row 2"),
    "not a number": ([1.0, float("nan"), float("nan")], r"'x': 2 missing values, in rows 2 and 3"),
    "written NA": (["1", "NA", "2"], r"'x': 1 missing value, in row 2: 'NA'"),
    "all missing": ([None, None, None], "'x': missing in all rows"),
    "infinite": ([1.0, float("inf"), -float("inf")], r"'x': 2 infinite values, in rows 2 and 3"),
    "dates": (pl.Series(["2024-01-31"] * 3).str.to_date(), r"'x': dates or times \(Date\)"),
    "lists": ([[1], [2], [3]], "'x': lists or structures"),
    "identifiers": (
        [1, 2, 2**53 + 1],
        r"'x': 1 integer with more digits .* row 3: '90071992547409",
    ),
    "unsigned": (pl.Series([1, 2, 2**64 - 1], dtype=pl.UInt64), "'x': 1 integer with more digits"),
}


@pytest.mark.parametrize("case", sorted(BAD_COLUMNS))
def test_columns_that_are_refused(write, case):
    """The message names the column, the first rows, and what to do; the others are fine."""
    values, text = BAD_COLUMNS[case]
    frame = pl.DataFrame({"x": values, "fine": [1, 2, 4]})
    path = write("a.parquet", saved(frame.write_parquet))
    with pytest.raises(CommandError, match=text) as caught:
        read_table(path)
    assert "--exclude x" in str(caught.value)
    assert "fine" not in str(caught.value)
    assert read_table(path, TableOptions(exclude=("x",))).columns == ("fine",)


def test_huge_integers_that_lose_nothing_are_welcome(write):
    path = write("a.npy", saved(np.save, np.array([[2**60, -(2**62)], [0, 1]])))
    np.testing.assert_array_equal(read_table(path).X, [[2.0**60, -(2.0**62)], [0.0, 1.0]])


def test_dialects(write):
    text = "1,5 3,5\n2,5 4,5\n"
    dialect = TableOptions(separator=" ", header=False, decimal_comma=True)
    table = read_table(write("a.csv", text), dialect)
    np.testing.assert_array_equal(table.X, [[1.5, 3.5], [2.5, 4.5]])
    table = read_table(write("b.csv", "2001,2002\n1,2\n"), TableOptions(header=True))
    assert table.columns == ("2001", "2002")
    with pytest.raises(UsageError, match="are for CSV and TSV"):
        read_table(write("a.npy", UNNAMED["a.npy"]), dialect)


def test_a_column_that_counts_rows_is_pointed_out(write):
    """As pandas writes its index: without a name."""
    table = read_table(write("a.csv", ",x\n0,5\n1,5\n2,9\n"))
    assert table.columns == ("column_1", "x")
    assert len(table.notes) == 1
    assert "'column_1' counts the rows" in table.notes[0]
    assert not read_table(write("b.csv", "x\n5\n5\n9\n")).notes


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["a.csv", "a.npy"])
def test_named_pipes(tmp_path, name):
    """What can be read only once is read only once, as in ``evomeans fit <(command)``."""
    pipe = tmp_path / name
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=({**NAMED, **UNNAMED}[name],))
    writer.start()
    np.testing.assert_array_equal(read_table(str(pipe)).X, NUMBERS)
    writer.join()


@pytest.mark.parametrize("ids", [["00001", "2"], ["1.10", "1e3"], [" 7", "True"], ["", "2_0"]])
def test_ids_stay_as_they_are_written(write, ids):
    path = write("a.csv", f"a,id,b\n1,{ids[0]},2\n3,{ids[1]},4\n")
    table = read_table(path, TableOptions(id="id"))
    assert [text or "" for text in table.ids] == ids
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_ids_that_are_also_numbers(write):
    """As they are written beside the labels, as numbers for the rest."""
    path = write("a.csv", "a;id\n1;01,50\n3;2,0\n")
    options = TableOptions(id="id", columns=("id", "a"), decimal_comma=True)
    table = read_table(path, options)
    assert list(table.ids) == ["01,50", "2,0"]
    np.testing.assert_array_equal(table.X, [[1.5, 1], [2, 3]])
    table = read_table(path, TableOptions(id="id", decimal_comma=True), weights="id")
    assert list(table.ids) == ["01,50", "2,0"]
    np.testing.assert_array_equal(table.weights, [1.5, 2])


@pytest.mark.parametrize(
    "values", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"a", b"b"], pl.Series([[1.0], [2.0]])]
)
def test_ids_that_cannot_be_written(write, values):
    """Refused before there is anything to lose."""
    frame = pl.DataFrame({"id": values, "a": [1, 2]})
    with pytest.raises(CommandError, match="ids that cannot be written, 'id': values of type"):
        read_table(write("a.parquet", saved(frame.write_parquet)), TableOptions(id="id"))


@pytest.mark.parametrize("dtype", [">f8", ">i4", "f2", "?", "u8", np.longdouble])
def test_ids_of_arrays_can_be_written(write, dtype):
    array = np.array([[1, 0], [0, 1]]).astype(dtype)
    table = read_table(write("a.npy", saved(np.save, array)), TableOptions(id="x0"))
    assert labels_frame(table, np.zeros(2, np.int32))["x0"].to_list() == [1, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are text elsewhere")
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.npy"])
def test_file_names_that_are_no_text(tmp_path, name):
    path = os.fsencode(tmp_path) + b"/\xff" + name.encode()
    with open(path, "wb") as file:  # noqa: PTH123
        file.write({**NAMED, **UNNAMED}[name])
    np.testing.assert_array_equal(read_table(os.fsdecode(path)).X, NUMBERS)


def read_back(frame: pl.DataFrame, file_format: str) -> pl.DataFrame:
    data = io.BytesIO(table_bytes(frame, file_format))
    return pl.read_csv(data) if file_format == "csv" else pl.read_parquet(data)


def table(columns=("a", "b"), **more) -> Table:
    return Table("t.csv", "csv", np.ones((3, len(columns))), tuple(columns), True, **more)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_all_digits_are_kept(file_format):
    rng = np.random.default_rng(0)
    centers = rng.random((50, 2)) * 10.0 ** rng.integers(-200, 200, (50, 2))
    frame = read_back(centers_frame(table(), centers), file_format)
    assert frame.columns == ["cluster", "a", "b"]
    np.testing.assert_array_equal(frame.select("a", "b").to_numpy(), centers)


def test_labels_have_row_numbers_or_ids():
    labels = np.array([1, 0, 1], dtype=np.int32)
    assert labels_frame(table(), labels).rows() == [(1, 1), (2, 0), (3, 1)]
    named = table(ids=pl.Series("who", ["x", 'y"', "z,"]))
    frame = read_back(labels_frame(named, labels), "csv")
    assert frame.columns == ["who", "cluster"]
    assert frame.rows() == [("x", 1), ('y"', 0), ("z,", 1)]


def test_names_that_are_taken():
    """A column of the table may be called cluster."""
    assert centers_frame(table(["cluster"]), np.ones((1, 1))).columns == ["cluster_", "cluster"]
    ids = table(ids=pl.Series("cluster", [0, 1, 2]))
    assert labels_frame(ids, np.zeros(3, np.int32)).columns == ["cluster", "cluster_"]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_history(file_format):
    record = OffspringRecord(1, 0.1 + 0.2, 0.3, 0.5, 7, 1.25, 3, True, False)
    frame = read_back(history_frame(History([record])), file_format)
    assert frame.row(0)[:9] == (1, 0.1 + 0.2, 0.3, 0.5, 7, 1.25, 3, True, False)
    # An empty text comes back from a CSV as a missing value.
    assert [value or "" for value in frame.row(0)] == [
        getattr(record, name) or "" for name in COLUMNS
    ]
    assert read_back(history_frame(History()), file_format).height == 0


@pytest.mark.parametrize(
    "text", ["red", "2024-01-31", "31/12/2024", "12:30", "A 17", "it's", "12 o'clock"]
)
def test_text_gets_no_hint_about_numbers(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(f"a;b\n{text};1\n{text};2\n")
    with pytest.raises(CommandError) as caught:
        read_table(str(path))
    assert "separat" not in str(caught.value)
    assert "decimal" not in str(caught.value)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\u202eb", "a\rb", "x" * 100_000])
def test_names_nobody_can_type_are_not_part_of_the_advice(evomeans, name, tmp_path):
    """Neither in notes nor in errors: such names could control the terminal, or fill it."""
    rng = np.random.default_rng(0)
    rows = "".join(f"{i},{a},{1000 * b}\n" for i, (a, b) in enumerate(rng.normal(size=(30, 2))))
    (tmp_path / "odd.csv").write_text(f'"{name}1",b,"{name}2"\n{rows}', encoding="utf-8")
    (tmp_path / "text.csv").write_text(f'"{name}",b\nred,1\nblue,2\n', encoding="utf-8")
    noted = evomeans("fit", "odd.csv", "-k", 2, "--max-offspring", 5, "--no-report", "-o", "out")
    refused = evomeans("fit", "text.csv", "-k", 2)
    for told in (noted.err, noted.out, refused.err):
        assert name not in told
        assert told.replace("\n", "").replace("\t", "").isprintable()
        assert len(told) < 5000
    assert "counts the rows; to leave it out: --exclude …" in noted.err
    assert "--exclude …" in refused.err


def test_a_column_that_makes_the_variance():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(1000, 1273), rng.normal(size=273), rng.normal(size=273)])
    note = scale_note(X, None, ["customer id", "a", "b"])
    assert note is not None
    assert "column 'customer id' makes 99.9 % of the variance" in note
    assert "--standardize" in note
    assert "--exclude 'customer id'" in note
    assert scale_note(X[:, 1:], None, ["a", "b"]) is None
    assert scale_note(X[:, :1], None, ["a"]) is None
    assert scale_note(np.ones((5, 2)), None, ["a", "b"]) is None
    # Weights decide what varies.
    Y = np.array([[0.0, 0.0], [0.0, 1.0], [1000.0, 0.0]])
    assert scale_note(Y, None, ["a", "b"]) is not None
    assert scale_note(Y, np.array([1.0, 1.0, 0.0]), ["a", "b"]) == (
        "column 'b' makes 100 % of the variance, so the clusters follow it alone; add "
        "--standardize, or leave it out: --exclude b"
    )
