"""Missing values are recognised, left out or filled, and treated alike in predictions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from blobs import read_table
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.extra.numpy import arrays

from evomeans.cli.options import TableOptions
from evomeans.cli.tables.numbers import MISSING, Standardization, weighted_mean, weighted_median
from evomeans.cli.tables.table import labels_frame, read_pairs
from evomeans.cli.terminal import CommandError

TEXT = "name,a,b\nr1,1,10\nr2,#N/A,20\nr3,3,nan\nr4,8,40\n"
BARE = TableOptions(exclude=("name",))
sizes = st.integers(1, 12)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text(TEXT)
    return str(path)


def test_rows_are_left_out(file):
    """What goes with the rows goes with them; the others keep their numbers."""
    table = read_table(file, TableOptions(id="name"), missing="drop")
    np.testing.assert_array_equal(table.X, [[1, 10], [8, 40]])
    assert list(table.ids) == ["r1", "r4"]
    assert table.missing.n_rows == 2
    assert table.missing.columns == {"a": 1, "b": 1}
    assert table.notes == (
        "2 missing values in 2 rows, in 'a' (1) and 'b' (1); these rows are left out",
    )
    numbered = read_table(file, BARE, missing="drop")
    assert labels_frame(numbered, np.array([0, 1])).to_series(0).to_list() == [1, 4]


@pytest.mark.parametrize(("how", "filled"), [("mean", [4, 70 / 3]), ("median", [3, 20])])
def test_values_are_filled(file, how, filled):
    table = read_table(file, BARE, missing=how)
    np.testing.assert_allclose(table.X, [[1, 10], [filled[0], 20], [3, filled[1]], [8, 40]])
    assert table.rows is None
    assert f"filled with the {how} of the column" in table.notes[0]


def test_another_table_is_filled_with_what_the_first_taught(file, tmp_path):
    taught = read_table(file, BARE, missing="median").missing
    other = tmp_path / "other.csv"
    other.write_text("a,b\n,\n5,\n")
    table = read_table(str(other), expected=("a", "b"), missing=taught)
    np.testing.assert_array_equal(table.X, [[3, 20], [5, 20]])


def test_without_being_asked_they_are_refused(file):
    """The message counts every kind of them, and says what can be done."""
    with pytest.raises(CommandError, match="'a': 1 missing value, in line 3: '#N/A'") as caught:
        read_table(file, BARE)
    assert "'b': 1 missing value, in line 4: 'nan'" in str(caught.value)
    assert "--missing drop" in str(caught.value)
    with pytest.raises(CommandError, match="A model that was fitted with --missing"):
        read_table(file, expected=("a", "b"))


@pytest.mark.parametrize("written", [*MISSING, "#N/A", "NULL", "NaN", "N/A"])
def test_ways_to_write_it(tmp_path, written):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"x": ["1", written, " ?", "2"]}).write_parquet(path)
    with pytest.raises(CommandError, match="'x': 2 missing values, in rows 2 and 3"):
        read_table(str(path))


def test_all_values_of_a_column_or_row_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,\n2,\n")
    with pytest.raises(CommandError, match="no value at all in 'b'"):
        read_table(str(path), missing="mean")
    path.write_text("a,b\n1,\n,2\n")
    with pytest.raises(CommandError, match="missing values in every row"):
        read_table(str(path), missing="drop")


def test_precision_and_nothing_missing(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([[1, np.nan], [2, 3]], np.float32))
    assert read_table(str(path), missing="mean").X.dtype == np.float32
    np.save(path, np.array([[1.0, 4.0], [2.0, 3.0]]))
    table = read_table(str(path), missing="mean")
    assert table.notes == ()
    assert (table.missing.how, table.missing.values) == ("mean", (1.5, 3.5))


def test_pairs_name_rows_of_the_file(tmp_path, file):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("1,4\n")
    table = read_table(file, BARE, missing="drop")
    np.testing.assert_array_equal(read_pairs(pairs, table), [[0, 1]])
    pairs.write_text("1,2\n")
    with pytest.raises(CommandError, match="no row '2' in the table without rows that lack values"):
        read_pairs(pairs, table)


@given(hnp.arrays(np.float64, sizes, elements=st.floats(-100, 100)), st.data())
def test_weights_count_like_copies(values, data):
    """Whole weights: mean and median are those of the values repeated."""
    weights = data.draw(hnp.arrays(np.int64, len(values), elements=st.integers(0, 4)))
    copies = np.repeat(values, weights) if weights.any() else values
    assert weighted_median(values, weights.astype(float)) == pytest.approx(np.median(copies))
    assert weighted_mean(values, weights.astype(float)) == pytest.approx(np.mean(copies))


@given(
    arrays(np.float64, (7, 3), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 7, elements=st.integers(1, 4).map(float)),
)
def test_mean_zero_and_deviation_one(X, weights):
    """Whole weights count like repeated rows; going back gives the samples again."""
    scaling = Standardization.of(X, weights, "abc")
    repeated = np.repeat(scaling.apply(X), weights.astype(int), axis=0)
    np.testing.assert_allclose(repeated.mean(axis=0), 0.0, atol=1e-9)
    deviation = repeated.std(axis=0)
    constant = np.ptp(X, axis=0) == 0
    np.testing.assert_allclose(deviation[constant], 0.0, atol=1e-9)
    assert (np.array(scaling.scale) > 0).all()
    np.testing.assert_allclose(scaling.undo(scaling.apply(X)), X, atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize("value", [0.1, 1e100, -3.7e-5, 123456789.123])
def test_constant_columns_stay_finite(value):
    """A deviation that comes from rounding the mean counts as none."""
    scaling = Standardization.of(np.full((1001, 1), value), None, "a")
    assert scaling.scale == (1.0,)
    np.testing.assert_allclose(scaling.apply(np.full((3, 1), value)), 0.0, atol=abs(value) * 1e-12)


def test_precision_is_kept():
    X = np.array([[1.0], [2.0], [5.0]], dtype=np.float32)
    assert Standardization.of(X, None, "a").apply(X).dtype == np.float32


def test_what_cannot_be_standardized():
    with pytest.raises(CommandError, match="too large to standardize in 'big'"):
        Standardization.of(np.array([[1e308, 1], [-1e308, 2]]), None, ["big", "b"])
