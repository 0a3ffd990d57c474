"""Between an estimator and what a model file stores of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evomeans.engines import is_dask
from evomeans.estimators.parameters import check_parameters
from evomeans.estimators.validation import check_init
from evomeans.search import DEEP, PAPER, STRATEGIES, Strategy
from evomeans.storage.model_file import StoredModel, read_model, refusal

# Names in the file and names of the estimator: a parameter that is renamed keeps its name in the
# file. A path to write to and functions to call are not part of a model.
PARAMETERS = {
    "n_clusters": "n_clusters",
    "strategy": "strategy",
    "min_population": "min_population",
    "max_population": "max_population",
    "max_iter": "max_offspring",
    "n_iter_no_change": "n_iter_no_change",
    "max_time": "max_time",
    "target_inertia": "target_inertia",
    "subsample": "subsample",
    "engine": "engine",
    "n_jobs": "n_jobs",
    "random_state": "random_state",
    "warm_start": "warm_start",
    "verbose": "verbose",
}
# All other fields are fitted attributes, whose names have an underscore at the end.
FITTED = {field.name for field in fields(StoredModel)} - {"parameters", "init", "frame"}


def stored_model(model: Any) -> StoredModel:
    """Return what a file stores of a fitted HGMeans."""
    check_is_fitted(model, "cluster_centers_")
    init = check_init(model.init, model.n_clusters, model.cluster_centers_.shape[1])
    fitted: dict[str, Any] = {name: getattr(model, f"{name}_", None) for name in FITTED}
    if is_dask(fitted["labels"]):
        # They are as large as the data, and predict makes them again.
        fitted["labels"] = None
    parameters = stored_parameters(model)
    if isinstance(model.strategy, Strategy) and parameters["strategy"] != model.strategy.name:
        warnings.warn(
            f"The strategy {model.strategy.name!r} is not stored, because it is made of functions; "
            f"the loaded model has the default, {parameters['strategy']!r}.",
            UserWarning,
            stacklevel=3,
        )
    return StoredModel(
        parameters=parameters,
        init=np.asarray(init) if init else None,
        frame=model._frame,
        **fitted,
    )


def stored_parameters(model: Any) -> dict[str, object]:
    """Return what JSON can hold of the parameters, by their names in the file."""
    limit = check_parameters(model).settings.max_offspring
    stored = {name: _plain(name, getattr(model, ours)) for name, ours in PARAMETERS.items()}
    # It may have been given by its old name.
    return {**stored, "max_iter": limit}


def _plain(name: str, value: Any) -> object:
    """Return what JSON can hold of a valid parameter."""
    if name == "random_state" and not isinstance(value, Integral):
        return None
    if isinstance(value, Strategy):
        # Functions cannot be stored; stored_model warns.
        return value.name if value.name in STRATEGIES else DEEP.name
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
    model.n_features_in_ = stored.cluster_centers.shape[1]
    if stored.init is not None:
        model.init = stored.init[0] if len(stored.init) == 1 else stored.init
    try:
        check_parameters(model)
        check_init(model.init, model.n_clusters, model.n_features_in_)
    except (TypeError, ValueError) as error:
        raise refusal(path, f"one of its parameters is impossible: {error}") from error
    model._frame = stored.frame
    for name in FITTED:
        if (value := getattr(stored, name)) is not None:
            setattr(model, f"{name}_", value)
    return model
