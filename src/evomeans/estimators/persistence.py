"""Between an estimator and what a model file stores of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evomeans.estimators.validation import check_init, check_parameters
from evomeans.search import PAPER
from evomeans.storage.model_file import StoredModel, read_model, refusal

# Names in the file and names of the estimator: a parameter that is renamed keeps its name in the
# file. A path to write to and functions to call are not part of a model.
PARAMETERS = {
    "n_clusters": "n_clusters",
    "strategy": "strategy",
    "min_population": "min_population",
    "max_population": "max_population",
    "max_iter": "max_iter",
    "n_iter_no_change": "n_iter_no_change",
    "max_time": "max_time",
    "target_inertia": "target_inertia",
    "engine": "engine",
    "n_jobs": "n_jobs",
    "random_state": "random_state",
    "warm_start": "warm_start",
    "verbose": "verbose",
}


def stored_model(model: Any) -> StoredModel:
    """Return what a file stores of a fitted HGMeans."""
    check_is_fitted(model, "cluster_centers_")
    check_parameters(model)
    names = getattr(model, "feature_names_in_", None)
    labels = getattr(model, "labels_", None)
    init = check_init(model.init, model.n_clusters, model.cluster_centers_.shape[1])
    return StoredModel(
        parameters={name: _plain(name, getattr(model, ours)) for name, ours in PARAMETERS.items()},
        init=np.asarray(init) if init else None,
        feature_names=None if names is None else [str(name) for name in names],
        centers=model.cluster_centers_,
        # Lazy ones are as large as the data, and predict makes them again.
        labels=labels if isinstance(labels, np.ndarray) else None,
        frame=model._frame,
        inertia=model.inertia_,
        n_iter=model.n_iter_,
        n_rediscoveries=model.n_rediscoveries_,
        stop_reason=model.stop_reason_,
        population=model.population_,
        history=model.history_,
    )


def _plain(name: str, value: Any) -> object:
    """Return what JSON can hold of a valid parameter."""
    if name == "random_state" and not isinstance(value, Integral):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if value < np.inf else None
    return value


def restored_model(make: Callable[..., Any], path: str | os.PathLike[str]) -> Any:
    """Read a model file and give its contents to the estimator that ``make`` returns."""
    stored = read_model(path)
    if unknown := sorted(stored.parameters.keys() - PARAMETERS.keys()):
        raise refusal(path, f"it has the unknown parameter {unknown[0][:60]!r}")
    parameters = {PARAMETERS[name]: value for name, value in stored.parameters.items()}
    # Files without a strategy were written when there was only that of the paper.
    model = make(**{"strategy": PAPER.name, **parameters})
    n_features = stored.centers.shape[1]
    if stored.init is not None:
        model.init = stored.init[0] if len(stored.init) == 1 else stored.init
    try:
        check_parameters(model)
        check_init(model.init, model.n_clusters, n_features)
    except (TypeError, ValueError) as error:
        raise refusal(path, f"one of its parameters is impossible: {error}") from error
    model.n_features_in_ = n_features
    if stored.feature_names is not None:
        model.feature_names_in_ = np.array(stored.feature_names, dtype=object)
    if stored.labels is not None:
        model.labels_ = stored.labels
    model._frame = stored.frame
    model.cluster_centers_ = stored.centers
    model.inertia_ = stored.inertia
    model.n_iter_ = stored.n_iter
    model.n_rediscoveries_ = stored.n_rediscoveries
    model.stop_reason_ = stored.stop_reason
    model.population_ = tuple(stored.population)
    model.history_ = stored.history
    return model
