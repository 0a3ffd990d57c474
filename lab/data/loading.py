"""Samples by the name of their data set, wherever they are.

They are looked up in the folder that EVOMEANS_DATA names, among what the repository and
scikit-learn ship, and among earlier downloads. Others are downloaded, cleaned, verified and kept.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.files import write_atomically
from evomeans.typing import FloatArray
from lab.data.archives import read_parts
from lab.data.cleaning import Cleaned
from lab.data.download import download
from lab.data.errors import DataError, DownloadError, MissingDataError, WrongContentsError
from lab.data.locking import exclusive
from lab.data.records import Dataset
from lab.data.registry import DATASETS, PARTIAL, dataset_named, is_listed
from lab.data.verification import check_value, verify

SHIPPED = Path(__file__).parent


class Place(StrEnum):
    """Where a data set is found; the first one counts."""

    FOLDER = "folder"
    SHIPPED = "shipped"
    SCIKIT_LEARN = "scikit-learn"
    DOWNLOADED = "downloaded"
    DOWNLOADABLE = "downloadable"
    MISSING = "missing"


@dataclass(frozen=True)
class _Copy:
    """An available copy.

    Parameters
    ----------
    place : Place
    origin : str
        Path or package, for messages.
    read : callable
        Returns samples and classes.
    """

    place: Place
    origin: str
    read: Callable[[], Cleaned]


def load(name: str, *, may_download: bool = True) -> FloatArray:
    """Load the samples of a data set.

    Parameters
    ----------
    name : str
        One of the paper's, or of any ``.npz`` file in the folder EVOMEANS_DATA.
    may_download : bool
        Whether to fetch a data set of the paper that is not available.

    Returns
    -------
    X : ndarray of shape (n, d), float64
        Verified, if it is one of the paper's.

    Raises
    ------
    DataError
        If it cannot be had, or is not what it should be.
    """
    return _obtained(name, may_download).X


def load_labelled(name: str, *, may_download: bool = True) -> tuple[FloatArray, NDArray[np.int64]]:
    """Load the samples of a data set and their classes, numbered from 0."""
    cleaned = _obtained(name, may_download)
    if cleaned.y is None:
        raise MissingDataError(f"The copy of {name} here has no classes.")
    return cleaned.X, cleaned.y


def places() -> dict[str, Place]:
    """Tell of all data sets of the paper where they are found; downloads nothing."""
    found = {}
    for dataset in DATASETS:
        copy = _copy_of(dataset)
        away = Place.DOWNLOADABLE if dataset.is_downloadable else Place.MISSING
        found[dataset.name] = copy.place if copy else away
    return found


def available() -> dict[str, Place]:
    """Tell which data sets of the paper are available, and where; downloads nothing."""
    away = {Place.DOWNLOADABLE, Place.MISSING}
    return {name: place for name, place in places().items() if place not in away}


def is_available(name: str) -> bool:
    """Tell whether a data set can be loaded without a download, be it of the paper or not."""
    if is_listed(name):
        return _copy_of(dataset_named(name)) is not None
    folder = data_folder()
    return folder is not None and (folder / f"{name}.npz").exists()


def fetch(name: str) -> Place:
    """Make sure that a data set of the paper is available and right; tell where it was found."""
    dataset = dataset_named(name)
    copy = _copy_of(dataset)
    _obtained(name, may_download=True)
    return copy.place if copy else Place.DOWNLOADABLE


def data_folder() -> Path | None:
    """Return the folder that EVOMEANS_DATA names, None if it is not set."""
    folder = os.environ.get("EVOMEANS_DATA")
    if not folder:
        return None
    path = Path(folder)
    if not path.is_dir():
        raise DataError(f"EVOMEANS_DATA={folder} is not a folder.")
    return path


def downloads_folder() -> Path:
    """Return the folder of downloads: EVOMEANS_DOWNLOADS, or a folder among the user's caches."""
    if folder := os.environ.get("EVOMEANS_DOWNLOADS"):
        return Path(folder)
    if sys.platform == "win32":  # pragma: no cover
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":  # pragma: no cover
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "evomeans" / "data"


def _obtained(name: str, may_download: bool) -> Cleaned:
    if not is_listed(name):
        return _unlisted(name)
    dataset = dataset_named(name)
    copy = _copy_of(dataset)
    if copy is None:
        if not (may_download and dataset.is_downloadable):
            raise MissingDataError(_why_missing(dataset))
        with exclusive(downloads_folder() / f"{name}.lock"):
            # Another process may have made it in the meantime.
            copy = _copy_of(dataset)
            if copy is None:
                return _prepare(dataset)
    cleaned = copy.read()
    verify(dataset, cleaned.X, copy.origin)
    return cleaned


def _unlisted(name: str) -> Cleaned:
    """Load what is no data set of the paper: a partial copy, or the user's own."""
    folder = data_folder()
    path = folder / f"{name}.npz" if folder else None
    if path is not None and path.exists():
        return _read_npz(path)
    if name in PARTIAL:
        raise MissingDataError(
            f"{name} is only found in the folder that EVOMEANS_DATA names, which is "
            f"{folder or 'not set'}."
        )
    raise MissingDataError(
        f"There is no data set {name!r}: not in the paper, and no {name}.npz in the folder that "
        f"EVOMEANS_DATA names ({folder or 'not set'})."
    )


def _copy_of(dataset: Dataset) -> _Copy | None:
    """Find an available copy."""
    file = f"{dataset.name}.npz"
    if (folder := data_folder()) and (folder / file).exists():
        return _Copy(Place.FOLDER, str(folder / file), partial(_read_npz, folder / file))
    if dataset.shipped:
        path = SHIPPED / f"{dataset.name}.csv"
        return _Copy(Place.SHIPPED, str(path), partial(_read_csv, path))
    if dataset.name == "iris":
        return _Copy(Place.SCIKIT_LEARN, "scikit-learn's load_iris", _read_iris)
    if (cached := downloads_folder() / file).exists():
        return _Copy(Place.DOWNLOADED, str(cached), partial(_read_npz, cached))
    return None


def _prepare(dataset: Dataset) -> Cleaned:
    """Download, clean, verify and keep."""
    assert dataset.source is not None
    assert dataset.clean is not None
    source, raw = dataset.source, _raw_file(dataset)
    by_hand = raw.exists()
    if not by_hand:
        try:
            download(source.url, raw, sha256=source.sha256)
        except DownloadError as error:
            raise DownloadError(f"{error} Is this machine offline? {_by_hand(dataset)}") from error
    try:
        try:
            cleaned = dataset.clean(read_parts(raw, dataset))
        except ValueError as error:
            raise WrongContentsError(f"{raw} is not as expected: {error}") from error
        verify(dataset, cleaned.X, source.url)
        if dataset.digest is None:
            check_value(dataset, cleaned.X, source.url)
    except WrongContentsError as error:
        raise WrongContentsError(f"{error} {_by_hand(dataset)}") from error
    finally:
        if not by_hand:
            raw.unlink(missing_ok=True)
    _write_npz(downloads_folder() / f"{dataset.name}.npz", cleaned)
    return cleaned


def _raw_file(dataset: Dataset) -> Path:
    assert dataset.source is not None
    return downloads_folder() / "raw" / dataset.name / dataset.source.url.rpartition("/")[2]


def _by_hand(dataset: Dataset) -> str:
    """Tell what to do without a network."""
    text = (
        f"Put {dataset.name}.npz (its array X of shape ({dataset.n}, {dataset.d})) into a folder, "
        "and let EVOMEANS_DATA name that folder"
    )
    if dataset.source is not None and dataset.is_downloadable:
        text += f"; or save {dataset.source.url} as {_raw_file(dataset)}"
    return f"{text}."


def _why_missing(dataset: Dataset) -> str:
    if dataset.missing:
        return f"{dataset.name} is missing: {dataset.missing}. {_by_hand(dataset)}"
    return (
        f"{dataset.name} is not available: it is neither in EVOMEANS_DATA nor in "
        f"{downloads_folder()}, and nothing was to be downloaded. "
        f"python -m lab data fetch {dataset.name} does. {_by_hand(dataset)}"
    )


def _read_npz(path: Path) -> Cleaned:
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no archive.")
        with np.load(path) as stored:
            X = stored["X"].astype(np.float64)
            y = stored["y"].astype(np.int64) if "y" in stored else None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise WrongContentsError(f"{path} cannot be read as an .npz file: {error}") from error
    return Cleaned(X, y)


def _write_npz(path: Path, cleaned: Cleaned) -> None:
    arrays: dict[str, Any] = {"X": _compact(cleaned.X)}
    if cleaned.y is not None:
        arrays["y"] = _compact(cleaned.y)
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))


def _compact(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the values in the smallest type that keeps each of them exactly."""
    for dtype in (np.int16, np.int32, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            small = values.astype(dtype)
        if np.array_equal(small, values):
            return small
    return values


def _read_csv(path: Path) -> Cleaned:
    return Cleaned(np.loadtxt(path, delimiter=",", ndmin=2))


def _read_iris() -> Cleaned:
    from sklearn.datasets import load_iris

    iris = load_iris()
    return Cleaned(iris.data.astype(np.float64), iris.target.astype(np.int64))
