"""Saving and loading estimators."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from importlib import import_module
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
NOT_STORED = {"init", "checkpoint", "observers", "max_iter"}
# All other fields are fitted attributes, whose names have an underscore at the end.
FITTED = {field.name for field in fields(StoredModel)} - {
    *("parameters", "init", "frame"),
    *("estimator", "n_features_in", "fitted_numbers", "fitted_arrays"),
}


def parameter_names(kind: Any) -> dict[str, str]:
    """Return the names of parameters in files, and in a class of estimators."""
    theirs = set(kind._get_param_names())
    common = {stored: name for stored, name in PARAMETERS.items() if name in theirs}
    own = sorted(theirs - set(PARAMETERS.values()) - NOT_STORED)
    return common | {name: name for name in own}


def stored_model(model: Any) -> StoredModel:
    """Return what a file stores of a fitted estimator."""
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
    kind = type(model)
    return StoredModel(
        estimator=kind.__name__,
        n_features_in=model.n_features_in_,
        fitted_numbers={name: getattr(model, f"{name}_") for name in kind._fitted_numbers},
        fitted_arrays={name: getattr(model, f"{name}_") for name in kind._fitted_arrays},
        parameters=parameters,
        init=np.asarray(init) if init else None,
        frame=model._frame,
        **fitted,
    )


def stored_parameters(model: Any) -> dict[str, object]:
    """Return what JSON can hold of the parameters, by their names in the file."""
    limit = check_parameters(model).settings.max_offspring
    names = parameter_names(type(model))
    stored = {name: _plain(name, getattr(model, ours)) for name, ours in names.items()}
    # It may have been given by its old name.
    return {**stored, "max_iter": limit}


def _plain(name: str, value: Any) -> object:
    """Return what JSON can hold of a valid parameter."""
    if name == "random_state" and not isinstance(value, Integral):
        return None
    if isinstance(value, Strategy):
        # Functions cannot be stored; stored_model warns.
        return value.name if value.name in STRATEGIES else DEEP.name
    if callable(value):
        raise ValueError(
            f"{name}={value!r} is a function, which a model file cannot hold. Keep the model with "
            "pickle."
        )
    if isinstance(value, np.ndarray | list | tuple):
        return np.asarray(value).tolist()
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if value < np.inf else None
    return value


def restored_model(kinds: Mapping[str, Callable[[], Any]], path: str | os.PathLike[str]) -> Any:
    """Read a model file and give its contents to an estimator.

    ``kinds`` are functions that return classes, by the names of these.
    """
    stored = read_model(path)
    if stored.estimator not in kinds:
        raise refusal(path, f"it has the unknown estimator {stored.estimator[:60]!r}")
    kind = kinds[stored.estimator]()
    names = parameter_names(kind)
    if unknown := sorted(stored.parameters.keys() - names.keys()):
        raise refusal(path, f"it has the unknown parameter {unknown[0][:60]!r}")
    parameters = {names[name]: value for name, value in stored.parameters.items()}
    # Files without a strategy were written when there was only that of the paper.
    model = kind(**{"strategy": PAPER.name, **parameters})
    model.n_features_in_ = stored.n_features_in
    if stored.init is not None:
        model.init = stored.init[0] if len(stored.init) == 1 else stored.init
    try:
        check_parameters(model)
        check_init(model.init, model.n_clusters, stored.cluster_centers.shape[1])
    except (TypeError, ValueError) as error:
        raise refusal(path, f"one of its parameters is impossible: {error}") from error
    model._frame = stored.frame
    for name in FITTED:
        if (value := getattr(stored, name)) is not None:
            setattr(model, f"{name}_", value)
    for wanted, given in (
        (kind._fitted_numbers, stored.fitted_numbers),
        (kind._fitted_arrays, stored.fitted_arrays),
    ):
        if set(wanted) != given.keys():
            raise refusal(path, f"its fitted attributes are not those of {stored.estimator}")
        for name in wanted:
            setattr(model, f"{name}_", given[name])
    if not model._is_consistent():
        raise refusal(path, "its arrays do not fit together")
    return model


# Imported late: a model is loaded without the code of all others.
HOMES = {
    "HGMeans": "evomeans.estimators.hgmeans",
    "ConstrainedHGMeans": "evomeans.estimators.constrained",
    "SphericalHGMeans": "evomeans.estimators.spherical",
    "TrimmedHGMeans": "evomeans.estimators.trimmed",
    "KernelHGMeans": "evomeans.estimators.kernel",
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :meth:`HGMeans.save`, or that of another model, wrote.

    It predicts with the same bits, can be cloned and refitted, and with ``warm_start=True`` its
    next fit begins with the population it has. Nothing in the file is run: loading a file from a
    stranger can fail, but does no harm.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : HGMeans or another estimator of evomeans
        Of the class that was saved. Some parameters are not stored. ``checkpoint`` and
        ``observers`` are None, and so is ``random_state`` if it was not an int. ``strategy`` is
        "deep", the default, if the saved model had one of its own.

    Raises
    ------
    ModelFileError
        If the file is not a valid model file. It is a ValueError.
    OSError
        If there is no such file, or it cannot be read.
    """
    return restored_model({name: partial(_class, name) for name in HOMES}, path)


def _class(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(HOMES[name]), name)
    return found
