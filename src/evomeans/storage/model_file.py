"""Fitted estimators in files, without pickle; docs/model-file.md describes the format."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evomeans.engines.frame import Frame
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.parameters import check_parameters
from evomeans.estimators.solution import encode_centers
from evomeans.estimators.validation import check_init
from evomeans.search import PAPER, StopReason
from evomeans.storage.archive import Archive, ArchiveError, read_archive, write_archive
from evomeans.storage.arrays import (
    HISTORY_MEMBERS,
    POPULATION_MEMBERS,
    history_from_arrays,
    history_to_arrays,
    population_from_arrays,
    population_to_arrays,
)

FORMAT = "evomeans model"
VERSION = 1
# What describes the clustering wanted. A path to write to, functions to call and the state of
# somebody's generator are no part of a model.
PARAMETERS = (
    "n_clusters",
    "strategy",
    "min_population",
    "max_population",
    "max_offspring",
    "n_iter_no_change",
    "max_time",
    "target_inertia",
    "engine",
    "n_jobs",
    "random_state",
    "warm_start",
    "verbose",
)
# Files call it what it was called when the format was made.
STORED_NAMES = {name: name for name in PARAMETERS} | {"max_offspring": "max_iter"}
MEMBERS = ("cluster_centers", "frame_shift", *POPULATION_MEMBERS, *HISTORY_MEMBERS)
LARGEST_COUNT = 2**53
# The square of a coordinate in the frame must not overflow, nor that of a sum of many.
LARGEST_COORDINATE = 1e150


class ModelFileError(ValueError):
    """A file that :func:`load` refuses: damaged, of another format, or made to deceive."""


def save(model: HGMeans, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file; see :meth:`HGMeans.save`."""
    check_is_fitted(model, "cluster_centers_")
    k, d = model.cluster_centers_.shape
    names = getattr(model, "feature_names_in_", None)
    meta = {
        "parameters": stored_parameters(model),
        "feature_names": None if names is None else [str(name) for name in names],
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "n_rediscoveries": model.n_rediscoveries_,
        "stop_reason": str(model.stop_reason_),
        "frame_exponent": model._frame.exponent,
        # Lazy ones are as large as the data, and predict makes them again.
        "labels_stored": isinstance(getattr(model, "labels_", None), np.ndarray),
    }
    arrays = {
        "cluster_centers": model.cluster_centers_,
        "frame_shift": model._frame.shift,
        **population_to_arrays(model.population_, k, d),
        **history_to_arrays(model.history_),
    }
    if meta["labels_stored"]:
        arrays["labels"] = model.labels_
    if model.init is not None:
        arrays["init"] = np.asarray(check_init(model.init, model.n_clusters, d))
    write_archive(path, FORMAT, VERSION, meta, arrays)


def load(path: str | os.PathLike[str]) -> HGMeans:
    """Read an estimator that :meth:`HGMeans.save` wrote.

    It predicts with the same bits, can be cloned and refitted, and with ``warm_start=True`` its
    next fit begins with the population it has. Nothing in the file is run: loading one that comes
    from a stranger can fail, but do no harm.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : HGMeans
        Its parameters ``checkpoint`` and ``observers`` are None, and so is ``random_state`` if it
        was not an int: these are not stored.

    Raises
    ------
    ModelFileError
        If the file is not a valid model file. It is a ValueError.
    OSError
        If there is no such file, or it cannot be read.
    """
    try:
        return _model_of(read_archive(path, FORMAT, VERSION))
    except ArchiveError as error:
        raise ModelFileError(f"{os.fspath(path)} is no valid model file: {error}.") from error


def _model_of(archive: Archive) -> HGMeans:
    stored = ["labels"] if archive.meta.get("labels_stored", True) else []
    archive.expect([*MEMBERS, *stored], optional=["init"])
    centers = archive.array("cluster_centers", ("float32", "float64"), (None, None))
    k, d = centers.shape
    if k == 0 or d == 0:
        raise ArchiveError("it has no centres")
    labels = _labels(archive, k)
    population = population_from_arrays(archive, k, d)
    if len(population) == 0:
        raise ArchiveError("it has no population")
    model = HGMeans(**_parameters(archive), init=_init(archive))
    try:
        check_parameters(model)
        check_init(model.init, model.n_clusters, d)
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"one of its parameters is impossible: {error}") from error
    model.n_features_in_ = d
    names = _feature_names(archive, d)
    if names is not None:
        model.feature_names_in_ = names
    model._frame = _frame(archive, centers)
    model.cluster_centers_ = centers
    if labels is not None:
        model.labels_ = labels
    model.inertia_ = archive.number("inertia")
    model.n_iter_ = archive.integer("n_iter", 0, LARGEST_COUNT)
    # Files of the first version have neither this nor a strategy: there was only the paper's.
    older = "n_rediscoveries" not in archive.meta
    model.n_rediscoveries_ = 0 if older else archive.integer("n_rediscoveries", 0, LARGEST_COUNT)
    model.history_ = history_from_arrays(archive)
    model.stop_reason_ = _stop_reason(archive)
    model.population_ = tuple(population)
    return model


# Parameters


def stored_parameters(model: HGMeans) -> dict[str, object]:
    """Return what JSON can hold of the parameters, once they are known to be valid."""
    settings = check_parameters(model).settings
    stored = {STORED_NAMES[name]: _plain(getattr(model, name)) for name in PARAMETERS}
    stored[STORED_NAMES["max_offspring"]] = settings.max_offspring
    if not isinstance(model.random_state, Integral):
        stored["random_state"] = None
    if stored["max_time"] == np.inf:
        stored["max_time"] = None
    return stored


def _plain(value: Any) -> object:
    """Return the plain Python number of any other kind of number."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _parameters(archive: Archive) -> dict[str, Any]:
    parameters = archive.mapping("parameters")
    names = {stored: name for name, stored in STORED_NAMES.items()}
    if unknown := sorted(parameters.keys() - names.keys()):
        raise ArchiveError(f"it has the unknown parameter {unknown[0][:60]!r}")
    given = {names[stored]: value for stored, value in parameters.items()}
    return {"strategy": PAPER.name, **given}


def _init(archive: Archive) -> NDArray[Any] | None:
    if "init" not in archive.arrays:
        return None
    stack = archive.array("init", "float64", (None, None, None))
    return stack[0] if len(stack) == 1 else stack


# Other fields


def _labels(archive: Archive, n_clusters: int) -> NDArray[np.int32] | None:
    if "labels" not in archive.arrays:
        return None
    labels = archive.array("labels", "int32", (None,), low=0, high=n_clusters - 1)
    if len(labels) == 0:
        raise ArchiveError("it has no labels")
    return labels


def _feature_names(archive: Archive, n_features: int) -> NDArray[Any] | None:
    names = archive.meta.get("feature_names")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArchiveError("its feature_names are not a list of texts")
    if len(names) != n_features:
        raise ArchiveError(f"it names {len(names)} features, but has {n_features}")
    return np.array(names, dtype=object)


def _frame(archive: Archive, centers: NDArray[Any]) -> Frame:
    shift = archive.array("frame_shift", "float64", (centers.shape[1],))
    largest = np.finfo(centers.dtype).maxexp - 2
    frame = Frame(shift, archive.integer("frame_exponent", -1000, largest))
    with np.errstate(all="ignore"):
        encoded = np.abs(encode_centers(frame, centers))
    if not encoded.max() <= LARGEST_COORDINATE:
        raise ArchiveError("its centres are out of reach of its frame")
    return frame


def _stop_reason(archive: Archive) -> StopReason:
    reason = archive.meta.get("stop_reason")
    if not isinstance(reason, str) or reason not in set(StopReason):
        raise ArchiveError("its stop_reason is none that a search has")
    return StopReason(reason)
