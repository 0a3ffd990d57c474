"""Labels or centres from anyone: whether they are a record."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lab.instances import library
from lab.instances.catalogue import Samples
from lab.instances.records import Records

LARGEST_FILE = 1 << 28


class SubmissionError(ValueError):
    """A submission that is refused."""


def read_submission(path: Path) -> np.ndarray:
    """Read labels or centres: an .npy file, or a text with a row per line."""
    if not path.is_file():
        raise SubmissionError(f"{path} is not a file; expected an .npy, .csv or .txt file.")
    if path.stat().st_size > LARGEST_FILE:
        raise SubmissionError(f"{path} has more than {LARGEST_FILE} bytes.")
    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a text without numbers
                values = np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None)
    except (ValueError, OSError, EOFError, SyntaxError, UserWarning) as error:
        raise SubmissionError(
            f"{path} cannot be read as labels or centres: {error}. Expected an .npy file, or "
            "numbers without a heading: a label per line, or a centre per line."
        ) from error
    if values.dtype.kind not in "iuf" or values.size == 0:
        raise SubmissionError(f"{path} must hold numbers, got {values.size} of {values.dtype}.")
    if not np.isfinite(values).all():
        raise SubmissionError(f"{path} must not contain NaN or infinity.")
    return values


def labels_of(values: np.ndarray, samples: Samples, k: int) -> np.ndarray:
    """Return the labels of the samples in canonical order from labels in the order of the data.

    Centres stand for the labels of the nearest ones.
    """
    n, d = samples.X.shape
    if values.shape == (n, 1) and d > 1:
        values = values[:, 0]
    if values.ndim == 2 and values.shape[1] == d and 1 <= len(values) <= k:
        middle = samples.X.mean(axis=0)
        centres = np.asarray(values, np.float64) - middle
        with np.errstate(over="ignore", invalid="ignore"):
            scores = (samples.X - middle) @ centres.T - np.square(centres).sum(axis=1) / 2
        if not np.isfinite(scores).all():
            raise SubmissionError("The centres are too large for distances in float64.")
        labels = scores.argmax(axis=1)
    elif values.shape == (n,):
        if not np.array_equal(values, np.floor(values)):
            raise SubmissionError("Labels must be integers.")
        labels = values[samples.order]
    else:
        raise SubmissionError(
            f"The submission has the shape {values.shape}; expected ({n},) for labels, or at most "
            f"{k} centres of {d} features."
        )
    if (count := len(np.unique(labels))) > k:
        raise SubmissionError(f"The submission has {count} clusters; expected at most {k}.")
    return labels


def submit(
    name: str, k: int, path: Path, by: str, *, accept: bool = False, folder: Path = library.FOLDER
) -> str:
    """Say whether a submission is a record; with ``accept`` also keep it if it is."""
    if name not in library.names(folder):
        known = ", ".join(library.names(folder))
        raise SubmissionError(f"The library has no data set {name!r}; it has {known}.")
    data = library.read(name, folder)
    known_one = data.instances.get(k)
    if known_one is None:
        raise SubmissionError(f"The library has no instance of {name} with k={k}.")
    records = Records.of(name, folder)
    labels = labels_of(read_submission(path), records.samples, k)
    inertia = records.inertia(labels)
    best: Any = known_one.inertia
    if inertia > best:
        return f"No record: {inertia!r} is {100 * (inertia / best - 1):.3g} % above {best!r}."
    if inertia == best:
        return f"No record: {inertia!r} is the best known value."
    if known_one.status == library.PROVEN and inertia < (known_one.bound or 0.0):
        raise SubmissionError(
            f"The inertia {inertia!r} is below the proven bound {known_one.bound!r}: one of them "
            "is wrong. Please report it."
        )
    if accept:
        records.keep(k, labels, by, "submitted")
    return f"A record: {inertia!r} is {100 * (1 - inertia / best):.3g} % below {best!r}."
