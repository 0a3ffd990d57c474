"""Hints that help: other ways to write numbers, and columns that drown all others."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.cli.failures import CommandError
from evomeans.cli.tables.numbers import scale_note
from evomeans.cli.tables.table import read_table


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a b\n1.5 2\n2 3\n", "separated by ' ', add --separator space"),
        ("a:b\n1.5:2\n2:3\n", "separated by ':', add --separator :"),
        ('a;b\n"1,5";2\n"2,25";3\n', "add --decimal-comma"),
        ("a;b\n1,5;2\n2,25;3\n", "add --decimal-comma"),
    ],
)
def test_numbers_in_another_writing(tmp_path, text, hint):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(CommandError) as caught:
        read_table(str(path))
    assert hint in str(caught.value)


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


def test_json_is_recognised(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"a": 1}]')
    with pytest.raises(CommandError, match="is JSON; save it as CSV or Parquet"):
        read_table(str(path))


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
