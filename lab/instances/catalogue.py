"""The data sets of the library, in canonical order, and the numbers of clusters of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from evomeans.typing import FloatArray
from lab.data import DATASETS, load
from lab.data.errors import WrongContentsError
from lab.data.verification import digest

UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
SMALL = ("german_towns", "bavaria1", "bavaria2", "iris", "heart", "liver", "ionosphere")
SMALL += ("congressional_voting", "breast_cancer", "pima")
LARGER = ("tsplib1060", "tsplib3038", "image_segmentation", "page_blocks", "pendigit", "letters")
LARGER += ("d15112", "eeg_eye_state", "shuttle", "pla85900", "skin")
BEYOND = {"liver": (100,), "pima": (100,), "ionosphere": (100,), "d15112": (50, 100)}
"""Numbers of clusters that the paper does not have and `best_known.csv` has."""
TO_FIFTY = {"german_towns", "bavaria1", "bavaria2", "iris", "breast_cancer"}
TO_FIFTY |= {"tsplib1060", "tsplib3038", "d15112"}
LARGE = (*range(2, 11), 20, 30, 50, 100)
SENTENCES = Path(__file__).parent / "samples" / "sentences.npz"


@dataclass(frozen=True)
class Source:
    """A data set of the library.

    Parameters
    ----------
    name, title : str
    origin : str
        Where the samples come from, and what is done to them.
    licence : str
    clusters : tuple of int
        The numbers of clusters that the library has or wants.
    read : callable
        Returns the samples in any order.
    """

    name: str
    title: str
    origin: str
    licence: str
    clusters: tuple[int, ...]
    read: Callable[[], FloatArray]


@dataclass(frozen=True)
class Samples:
    """Samples in canonical order: rows sorted lexicographically, first column first.

    Parameters
    ----------
    X : (n, d) array
    rows : (n_distinct, d) array
        The distinct ones.
    places : (n,) array
        The distinct row of each sample.
    order : (n,) array
        The place of each sorted sample among the samples as they were read.
    """

    X: FloatArray
    rows: FloatArray
    places: np.ndarray
    order: np.ndarray


def canonical(X: FloatArray) -> Samples:
    """Return samples in canonical order, zeros without a sign."""
    X = np.ascontiguousarray(X, np.float64) + 0.0
    order = np.lexsort(X.T[::-1])
    X = X[order]
    is_new = np.r_[True, (X[1:] != X[:-1]).any(axis=1)]
    return Samples(X, X[is_new], np.cumsum(is_new) - 1, order)


def _paper(name: str) -> Source:
    dataset = next(one for one in DATASETS if one.name == name)
    every = range(2, 51) if name in TO_FIFTY else range(2, 11) if name in SMALL else ()
    page = dataset.source.page if dataset.source else "scikit-learn, load_iris"
    licence = UCI_LICENCE
    if "TSPLIB" in page:
        licence = "not stated; TSPLIB, G. Reinelt"
    elif "hg-means" in page:
        licence = "as published by the authors of the paper"
    clusters = tuple(sorted({*every, *dataset.clusters, *BEYOND.get(name, ())}))
    origin = f"{page}; cleaning: {dataset.cleaning}"
    return Source(name, dataset.title, origin, licence, clusters, lambda: load(name))


def _scikit_learn(name: str, title: str, call: str, last: int) -> Source:
    def read() -> FloatArray:
        import sklearn.datasets

        options = {"scaled": False} if name == "diabetes" else {}
        return np.asarray(getattr(sklearn.datasets, call)(**options).data, np.float64)

    origin = f"scikit-learn, {call}{'(scaled=False)' if name == 'diabetes' else '()'}"
    licence = "not stated; distributed with scikit-learn" if name == "diabetes" else UCI_LICENCE
    return Source(name, title, origin, licence, tuple(range(2, last + 1)), read)


def tiles(side: int = 8) -> FloatArray:
    """Cut both photographs of scikit-learn into square tiles in shades of grey, 0 to 765."""
    from sklearn.datasets import load_sample_images

    found = []
    for photo in load_sample_images().images:
        grey = photo.sum(axis=2, dtype=np.int64)
        rows, columns = (length // side for length in grey.shape)
        whole = grey[: rows * side, : columns * side].reshape(rows, side, columns, side)
        found.append(whole.swapaxes(1, 2).reshape(-1, side * side))
    return np.concatenate(found).astype(np.float64)


def sentences() -> FloatArray:
    """Read the embeddings that lie beside the library, which no other copy has."""
    with np.load(SENTENCES, allow_pickle=False) as stored:
        return stored["X"].astype(np.float64)


@cache
def sources() -> Mapping[str, Source]:
    """Return all data sets of the library by name."""
    ours = (
        _scikit_learn("wine", "Wine, not scaled", "load_wine", 50),
        _scikit_learn("diabetes", "Diabetes, not scaled", "load_diabetes", 50),
        _scikit_learn("wdbc", "Breast Cancer, diagnostic", "load_breast_cancer", 50),
        _scikit_learn("digits", "Digits", "load_digits", 50),
        Source(
            "photo_tiles",
            "Photo tiles, 8 × 8",
            "scikit-learn, load_sample_images: all whole 8 × 8 tiles, the sum of the channels",
            "CC BY 2.0 (photographs by danielbuechele and vultilion on Flickr)",
            LARGE,
            tiles,
        ),
        Source(
            "sentences",
            "Sentences, embedded",
            "lab/instances/samples/sentences.npz: 2,000 sentences of docstrings of Python "
            "packages, embedded by all-MiniLM-L6-v2, times 480 and rounded",
            "numbers only, made here; the model is under Apache 2.0",
            LARGE,
            sentences,
        ),
    )
    found = [_paper(name) for name in SMALL] + list(ours) + [_paper(name) for name in LARGER]
    return {one.name: one for one in found}


def samples_of(name: str, expected: str | None = None) -> Samples:
    """Load samples in canonical order; refuse those whose digest is not the expected one."""
    samples = canonical(sources()[name].read())
    if expected is not None and (found := digest(samples.X)) != expected:
        raise WrongContentsError(
            f"The samples of {name} are not those of the library: the SHA-256 of their sorted rows "
            f"is {found}, and {expected} was expected."
        )
    return samples
