"""``python -m lab embeddings``: its data, and what it says of centres."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from lab import embeddings
from lab.data import sentences
from lab.data.errors import MissingDataError


def test_inertia_is_that_of_the_closest_centres() -> None:
    """Compared with all distances, over more rows than a block has."""
    rng = np.random.default_rng(0)
    X, centers = rng.random((3000, 5), np.float32), rng.random((7, 5), np.float32)
    squares = ((X[:, None].astype(float) - centers) ** 2).sum(axis=2)
    assert embeddings.inertia(X, centers) == pytest.approx(squares.min(axis=1).sum())


def test_rows_that_are_left_out_are_not_among_the_others() -> None:
    """Tuning and reports use different rows."""
    X = np.arange(100, dtype=np.float32)[:, None]
    first, second = embeddings.some_rows(X, 0, 40), embeddings.some_rows(X, 40, None)
    assert sorted(np.concatenate([first, second])[:, 0]) == list(range(100))
    with pytest.raises(SystemExit, match="leaves none"):
        embeddings.some_rows(X, 100, 5)


def test_patches_have_no_mean() -> None:
    """Grey ones have 64 features, and a third of the values of coloured ones."""
    grey = embeddings.patches(in_colour=False)
    assert grey.shape == (133_140, 64)
    assert np.abs(grey.mean(axis=1)).max() < 1e-6


def test_sentences_have_words_and_no_markup() -> None:
    text = "Too short. This is a sentence of some words.\n\n$ tar one two three four\n\n1 2 3 4 5"
    assert list(sentences.sentences_in([text])) == ["This is a sentence of some words."]


def test_manual_pages_lose_their_macros(tmp_path) -> None:
    path = tmp_path / "tool.1.gz"
    path.write_bytes(
        gzip.compress(b".TH TOOL 1\n.SH NAME\nThe \\fBtool\\fR does what it should do.\n")
    )
    (text,) = sentences.manual(path)
    assert list(sentences.sentences_in([text])) == ["The tool does what it should do."]


def test_docstrings_are_those_of_functions_and_classes(tmp_path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""One."""\nclass A:\n    """Two."""\n    def b(self):\n        """Three."""\n'
    )
    assert {"One.", "Two.", "Three."} == set(sentences.docstrings(path)) - {""}
    path.write_text("def broken(")
    assert not list(sentences.docstrings(path))


def test_missing_sentences_say_how_to_make_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVOMEANS_DOWNLOADS", str(tmp_path))
    monkeypatch.delenv("EVOMEANS_DATA", raising=False)
    with pytest.raises(MissingDataError, match="lab embeddings --embed manuals"):
        sentences.load_sentences("manuals")
    made = np.eye(3, 384, dtype=np.float32)
    np.savez(tmp_path / "sentences_manuals.npz", X=made)
    np.testing.assert_array_equal(sentences.load_sentences("manuals"), made)
