"""Saving and loading estimators, without pickle; docs/background/file-formats.md describes them."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evomeans.engines import is_dask
from evomeans.engines.frame import Frame
from evomeans.estimators.parameters import check_parameters
from evomeans.estimators.validation import check_init
from evomeans.search import DEEP, STRATEGIES, Individual, OffspringRecord, StopReason, Strategy
from evomeans.storage.archive import (
    HISTORY_MEMBERS,
    POPULATION_MEMBERS,
    Archive,
    ArchiveError,
    history_from_arrays,
    read_archive,
    records_from_arrays,
    records_to_arrays,
    write_archive,
)

MODELS = ("HGMeans", "ConstrainedHGMeans", "SphericalHGMeans", "TrimmedHGMeans")
FORMAT = "evomeans model"
VERSION = 3
MEMBERS = ("cluster_centers", "frame_shift", *POPULATION_MEMBERS, *HISTORY_MEMBERS)
# Fitted attributes in the JSON object, without underscores: types, and ranges if there are any.
FIELDS: dict[str, tuple[Any, ...]] = {
    "inertia": ("float",),
    "n_iter": ("int",),
    "n_rediscoveries": ("int",),
    "certainty": ("float | None", 0.0, 1.0),
    "missing_operators": ("list[str]",),
    "levels": ("list[int]", 1),
    "stop_reason": ("str",),
}
# The squares of coordinates in the frame must not overflow, nor must their sums.
LARGEST_COORDINATE = 1e150
# A path to write to and functions to call are not part of a model; ``init`` is an array of its own.
NOT_STORED = {"init", "checkpoint", "observers"}


class ModelFileError(ValueError):
    """Raised by :func:`load` for a file that is damaged, of another format, or forged."""


def write_model(path: str | os.PathLike[str], model: Any) -> None:
    """Write a fitted estimator to a file, atomically."""
    check_is_fitted(model, "cluster_centers_")
    k, d = model.cluster_centers_.shape
    init = check_init(model.init, model.n_clusters, d)
    parameters = stored_parameters(model)
    if isinstance(model.strategy, Strategy) and parameters["strategy"] != model.strategy.name:
        warnings.warn(
            f"The strategy {model.strategy.name!r} is not stored, because it is made of functions; "
            f"the loaded model has the default, {parameters['strategy']!r}.",
            UserWarning,
            stacklevel=3,
        )
    names = getattr(model, "feature_names_in_", None)
    labels = getattr(model, "labels_", None)
    # Those in Dask are as large as the data, and predict makes them again.
    labels = None if is_dask(labels) else labels
    meta = {
        "estimator": type(model).__name__,
        "parameters": parameters,
        "n_features_in": model.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        **{name: getattr(model, f"{name}_") for name in FIELDS},
        "certainty": None if math.isnan(model.certainty_) else model.certainty_,
        "frame_exponent": model._frame.exponent,
        "labels_stored": labels is not None,
        "fitted": {name: getattr(model, f"{name}_") for name in model._fitted_numbers},
    }
    if hasattr(model, "certificate_"):
        from evomeans.storage.certificate_file import certificate_to_meta

        meta["certificate"] = certificate_to_meta(model.certificate_)
    arrays = {
        "cluster_centers": model.cluster_centers_,
        "frame_shift": model._frame.shift,
        **records_to_arrays(Individual, model.population_, "population", meta, k, d),
        **records_to_arrays(OffspringRecord, model.history_, "history", meta),
        **({} if labels is None else {"labels": labels}),
        **({"init": np.asarray(init)} if init else {}),
    }
    write_archive(path, FORMAT, VERSION, meta, arrays)


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
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value) if value < np.inf else None
    return np.asarray(value).tolist()


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
    try:
        return _loaded(read_archive(path, FORMAT, VERSION, oldest=VERSION))
    except ArchiveError as error:
        text = f"{os.fspath(path)} is not a valid model file: {error}."
        raise ModelFileError(text) from error


def _loaded(archive: Archive) -> Any:
    """Return the estimator that an archive holds."""
    estimator = archive.field("estimator", "str")
    if estimator not in MODELS:
        raise ArchiveError(f"it has the unknown estimator {estimator[:60]!r}")
    kind: Any = model_class(estimator)
    has_labels = archive.field("labels_stored", "bool")
    archive.expect([*MEMBERS, *["labels"] * has_labels], optional=["init"])
    centers = archive.array("cluster_centers", ("float32", "float64"), (None, None))
    k, d = centers.shape
    if k == 0 or d == 0:
        raise ArchiveError("it has no centres")
    model = _unfitted(kind, archive, d)
    model.n_features_in_ = archive.field("n_features_in", "int", 1)
    if model.n_features_in_ != d:
        raise ArchiveError("its arrays do not fit together")
    names = archive.field("feature_names", "list[str] | None")
    if names is not None:
        if len(names) != d:
            raise ArchiveError(f"it names {len(names)} features, but has {d}")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.cluster_centers_, model._frame = centers, _frame(archive, centers)
    if has_labels:
        # Only plain k-means gives every sample a cluster.
        low = 0 if kind._is_plain_kmeans else -1
        model.labels_ = archive.array("labels", "int32", (None,), low=low, high=k - 1)
        if len(model.labels_) == 0:
            raise ArchiveError("it has no labels")
    for name, (type_name, *limits) in FIELDS.items():
        value = archive.field(name, type_name, *limits)
        setattr(model, f"{name}_", tuple(value) if isinstance(value, list) else value)
    if model.certainty_ is None:
        model.certainty_ = math.nan
    if model.stop_reason_ not in list(StopReason):
        raise ArchiveError("its stop_reason is unknown")
    model.stop_reason_ = StopReason(model.stop_reason_)
    model.population_ = tuple(records_from_arrays(archive, Individual, "population", k, d))
    if not model.population_:
        raise ArchiveError("it has no population")
    model.history_ = history_from_arrays(archive)
    if archive.meta.get("certificate") is not None:
        from evomeans.storage.certificate_file import certificate_from_meta

        figures = Archive(archive.field("certificate", "dict"), {})
        model.certificate_ = certificate_from_meta(figures)
    numbers = archive.field("fitted", "dict")
    if numbers.keys() != set(kind._fitted_numbers):
        raise ArchiveError(f"its fitted attributes are not those of {estimator}")
    for name, value in numbers.items():
        Archive(numbers, {}).field(name, "float", low=-1e308)
        # Whole numbers stay what they are.
        setattr(model, f"{name}_", value)
    return model


def _unfitted(kind: Any, archive: Archive, n_features: int) -> Any:
    """Return the estimator with the parameters in an archive."""
    parameters = archive.field("parameters", "dict")
    if unknown := sorted(parameters.keys() - set(parameter_names(kind))):
        raise ArchiveError(f"it has the unknown parameter {unknown[0][:60]!r}")
    model = kind(**parameters)
    if "init" in archive.arrays:
        init = archive.array("init", "float64", (None, None, None))
        model.init = init[0] if len(init) == 1 else init
    try:
        check_parameters(model)
        check_init(model.init, model.n_clusters, n_features)
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"one of its parameters is impossible: {error}") from error
    return model


def _frame(archive: Archive, centers: NDArray[Any]) -> Frame:
    shift = archive.array("frame_shift", "float64", (centers.shape[1],))
    largest = np.finfo(centers.dtype).maxexp - 2
    frame = Frame(shift, archive.field("frame_exponent", "int", -1000, largest))
    with np.errstate(all="ignore"):
        encoded = np.abs(frame.encode(centers.astype(np.float64)))
    if not encoded.max() <= LARGEST_COORDINATE:
        raise ArchiveError("its centres are out of reach of its frame")
    return frame


def parameter_names(kind: Any) -> list[str]:
    """Return the names of the parameters of a class of estimators that files hold."""
    return [name for name in signature(kind).parameters if name not in NOT_STORED]


def model_class(name: str) -> Callable[..., Any]:
    """Return the class of a model by its name; only its own code is imported."""
    found: Callable[..., Any] = getattr(import_module("evomeans"), name)
    return found
