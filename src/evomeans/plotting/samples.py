"""The samples and models that plots and reports take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import is_sparse
from evomeans.sparse import as_csr

FloatArray = NDArray[np.float64]


def as_rows(X: Any) -> Any:
    """Return samples as something with a shape whose rows can be taken: an array or CSR."""
    return as_csr(X) if is_sparse(X) else np.asarray(X)


def dense(X: Any) -> FloatArray:
    """Return samples as a float64 array."""
    return np.asarray(as_csr(X).toarray() if is_sparse(X) else X, dtype=np.float64)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError if a model has not been fitted."""
    # Imported here: the command line answers without loading it.
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(model, "fit"):
        raise TypeError(
            f"A fitted estimator with centres is needed here, such as HGMeans; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model, "cluster_centers_")


def check_one_model(model: Any) -> None:
    """Raise an error that explains what is needed if this is not one fitted model."""
    check_fitted(model)
    if isinstance(model.cluster_centers_, dict):
        raise TypeError(
            f"{type(model).__name__} has a model for each k; pass one of them, such as "
            f"path.at({next(iter(model.cluster_centers_))}) or path.best_estimator_."
        )


def fitted_rows(model: Any, X: Any) -> Any:
    """Return samples as :func:`as_rows` does, if they have the features of a fitted model."""
    check_fitted(model)
    centers = model.cluster_centers_
    if isinstance(centers, dict):
        # A path has centres for every k.
        centers = next(iter(centers.values()))
    rows, expected = as_rows(X), centers.shape[1]
    if rows.ndim != 2 or rows.shape[1] != expected:
        raise ValueError(
            f"X must have {expected} features, as in the fit; it has the shape {rows.shape}."
        )
    return rows
