"""Saving and loading estimators."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evomeans.engines import is_dask
from evomeans.estimators.parameters import check_parameters
from evomeans.estimators.validation import check_init
from evomeans.search import DEEP, PAPER, STRATEGIES, Strategy
from evomeans.storage.model_file import StoredModel, read_model, refusal

# A path to write to and functions to call are not part of a model; ``init`` is an array of its own.
NOT_STORED = {"init", "checkpoint", "observers"}
# Names of parameters in files of earlier versions.
RENAMED = {"max_iter": "max_offspring"}
# All other fields are fitted attributes, whose names have an underscore at the end.
FITTED = {field.name for field in fields(StoredModel)} - {
    *("parameters", "init", "frame"),
    *("estimator", "n_features_in", "fitted_numbers", "fitted_arrays"),
}


def parameter_names(kind: Any) -> list[str]:
    """Return the names of the parameters of a class of estimators that files hold."""
    return [name for name in signature(kind).parameters if name not in NOT_STORED]


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
    """Return what JSON can hold of the parameters, which must be valid."""
    check_parameters(model)
    return {name: _plain(name, getattr(model, name)) for name in parameter_names(type(model))}


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
    stored = read_model(path)
    if stored.estimator not in HOMES:
        raise refusal(path, f"it has the unknown estimator {stored.estimator[:60]!r}")
    kind: Any = model_class(stored.estimator)
    parameters = {RENAMED.get(name, name): value for name, value in stored.parameters.items()}
    if unknown := sorted(parameters.keys() - set(parameter_names(kind))):
        raise refusal(path, f"it has the unknown parameter {unknown[0][:60]!r}")
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
    given = {**stored.fitted_numbers, **stored.fitted_arrays}
    is_complete = stored.fitted_numbers.keys() == set(kind._fitted_numbers)
    if not is_complete or stored.fitted_arrays.keys() != set(kind._fitted_arrays):
        raise refusal(path, f"its fitted attributes are not those of {stored.estimator}")
    for name, value in given.items():
        setattr(model, f"{name}_", value)
    if not model._is_consistent():
        raise refusal(path, "its arrays do not fit together")
    return model


def model_class(name: str) -> Callable[..., Any]:
    """Return the class of a model by its name."""
    found: Callable[..., Any] = getattr(import_module(HOMES[name]), name)
    return found
