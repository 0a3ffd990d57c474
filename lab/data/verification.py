"""Whether samples are those of the paper's data set."""

from __future__ import annotations

import hashlib

import numpy as np

from evomeans.typing import FloatArray
from lab.data.errors import WrongContentsError
from lab.data.records import Dataset

# Published values have six digits or so.
TOLERANCE_OF_VALUES = 1e-4


def digest(X: FloatArray) -> str:
    """Return the SHA-256 of the samples, whatever order they are in.

    Rows are sorted lexicographically and taken as little-endian float64, zeros without a sign. The
    objective does not depend on the order either.
    """
    rows = np.ascontiguousarray(X, dtype="<f8") + 0.0
    rows = rows[np.lexsort(rows.T[::-1])]
    return hashlib.sha256(rows.tobytes()).hexdigest()


def verify(dataset: Dataset, X: FloatArray, origin: str) -> None:
    """Refuse samples of another shape, with other values, or that are not finite.

    Parameters
    ----------
    dataset : Dataset
        If its digest is not known, the values are not checked.
    X : ndarray of shape (n, d)
    origin : str
        Where they come from, for the message.
    """
    if X.shape != (dataset.n, dataset.d):
        raise WrongContentsError(
            f"{origin} is not {dataset.name}: expected {dataset.n} samples of {dataset.d} "
            f"features, and it has the shape {X.shape}."
        )
    if not np.isfinite(X).all():
        raise WrongContentsError(f"{origin} is not {dataset.name}: it has NaN or infinite values.")
    if dataset.digest is not None and (found := digest(X)) != dataset.digest:
        raise WrongContentsError(
            f"{origin} is not {dataset.name}: the SHA-256 of its sorted rows is {found}, and "
            f"{dataset.digest} was expected."
        )


def check_value(dataset: Dataset, X: FloatArray, origin: str) -> None:
    """Compare the best of ten K-means runs for m = 2 with the published value, if there is one.

    This is for the data sets of which no digest is known: another choice of columns or rows with
    the same shape gives another value.
    """
    if dataset.value_of_2 is None:
        return
    from sklearn.cluster import KMeans

    found = KMeans(2, n_init=10, random_state=0).fit(X).inertia_
    if abs(found / dataset.value_of_2 - 1) > TOLERANCE_OF_VALUES:
        raise WrongContentsError(
            f"{origin} is not {dataset.name} as the literature knows it: the published value for "
            f"m=2 is {dataset.value_of_2:.6g}, and K-means finds {found:.6g}."
        )
