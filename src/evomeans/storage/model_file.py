"""Fitted models in files, without pickle; docs/guide/model-file.md describes the format."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import Frame
from evomeans.search import History, Individual, OffspringRecord, StopReason
from evomeans.storage.archive import (
    HISTORY_MEMBERS,
    LATER_HISTORY_MEMBERS,
    POPULATION_MEMBERS,
    Archive,
    ArchiveError,
    history_from_arrays,
    read_archive,
    records_from_arrays,
    records_to_arrays,
    write_archive,
)

if TYPE_CHECKING:
    from evomeans.exact.certificate import Certificate

FORMAT = "evomeans model"
VERSION = 2
HGMEANS = "HGMeans"
# Beginning of the names of arrays that only some models have.
FITTED = "fitted_"
MEMBERS = ("cluster_centers", "frame_shift", *POPULATION_MEMBERS, *HISTORY_MEMBERS)
# The squares of coordinates in the frame must not overflow, nor must their sums.
LARGEST_COORDINATE = 1e150


class ModelFileError(ValueError):
    """A file that :func:`load` refuses: damaged, of another format, or made to deceive."""


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds; docs/guide/model-file.md describes the fields.

    All were checked when they were read, except for the values of the parameters.
    """

    parameters: dict[str, Any]
    init: NDArray[np.float64] | None
    frame: Frame
    feature_names_in: NDArray[Any] | None
    cluster_centers: NDArray[Any]
    labels: NDArray[np.int32] | None
    inertia: float
    n_iter: int
    n_rediscoveries: int
    certainty: float
    missing_abilities: tuple[str, ...]
    levels: tuple[int, ...]
    stop_reason: StopReason
    population: Sequence[Individual]
    history: History
    certificate: Certificate | None = None
    estimator: str = HGMEANS
    n_features_in: int | None = None
    fitted_numbers: dict[str, float] = field(default_factory=dict)
    fitted_arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def write_model(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write a model file atomically."""
    names = model.feature_names_in
    k, d = model.cluster_centers.shape
    meta = {
        "parameters": model.parameters,
        "feature_names": None if names is None else [str(name) for name in names],
        "inertia": model.inertia,
        "n_iter": model.n_iter,
        "n_rediscoveries": model.n_rediscoveries,
        "certainty": None if math.isnan(model.certainty) else model.certainty,
        "missing_abilities": list(model.missing_abilities),
        "levels": list(model.levels),
        "stop_reason": str(model.stop_reason),
        "frame_exponent": model.frame.exponent,
        "labels_stored": model.labels is not None,
    }
    if model.certificate is not None:
        from evomeans.storage.certificate_file import certificate_to_meta

        meta["certificate"] = certificate_to_meta(model.certificate)
    if model.estimator != HGMEANS:
        meta["estimator"] = model.estimator
        meta["n_features_in"] = d if model.n_features_in is None else model.n_features_in
        meta["fitted"] = model.fitted_numbers
    arrays = {
        "cluster_centers": model.cluster_centers,
        "frame_shift": model.frame.shift,
        **records_to_arrays(Individual, model.population, "population", k, d),
        **records_to_arrays(OffspringRecord, model.history, "history"),
        "labels": model.labels,
        "init": model.init,
        **{f"{FITTED}{name}": values for name, values in model.fitted_arrays.items()},
    }
    given = {name: values for name, values in arrays.items() if values is not None}
    write_archive(path, FORMAT, VERSION, meta, given)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file; OSError if there is no file, ModelFileError if it is invalid."""
    try:
        return _model(read_archive(path, FORMAT, VERSION))
    except ArchiveError as error:
        raise refusal(path, error) from error


def refusal(path: str | os.PathLike[str], reason: object) -> ModelFileError:
    """Return the error for a model file; the reason continues "it …"."""
    return ModelFileError(f"{os.fspath(path)} is not a valid model file: {reason}.")


def _model(archive: Archive) -> StoredModel:
    stored = ["labels"] if archive.meta.get("labels_stored", True) else []
    required = set(MEMBERS).difference(LATER_HISTORY_MEMBERS if archive.meta["version"] < 2 else ())
    # The first evomeans did not know these.
    older = {"estimator": HGMEANS, "n_rediscoveries": 0, "levels": []}
    archive = replace(archive, meta={**older, **archive.meta})
    estimator = archive.field("estimator", "str")
    is_plain = estimator == HGMEANS
    fitted = [] if is_plain else [name for name in archive.arrays if name.startswith(FITTED)]
    archive.expect([*required, *stored], optional=["init", *fitted])
    centers = archive.array("cluster_centers", ("float32", "float64"), (None, None))
    k, d = centers.shape
    if k == 0 or d == 0:
        raise ArchiveError("it has no centres")
    # Only plain k-means gives every sample a cluster.
    low = 0 if is_plain else -1
    labels = archive.array("labels", "int32", (None,), low=low, high=k - 1) if stored else None
    if labels is not None and len(labels) == 0:
        raise ArchiveError("it has no labels")
    population = records_from_arrays(archive, Individual, "population", k, d)
    if len(population) == 0:
        raise ArchiveError("it has no population")
    try:
        reason = StopReason(archive.field("stop_reason", "str"))
    except ValueError as error:
        raise ArchiveError("its stop_reason is unknown") from error
    has_init = "init" in archive.arrays
    # Earlier versions did not know it.
    certainty = archive.field("certainty", "float | None", 0.0, 1.0)
    certificate = None
    if archive.meta.get("certificate") is not None:
        from evomeans.storage.certificate_file import certificate_from_meta

        certificate = certificate_from_meta(Archive(archive.mapping("certificate"), {}))
    n_features = d if is_plain else archive.integer("n_features_in", 1)
    names = archive.field("feature_names", "list[str] | None")
    if names is not None and len(names) != n_features:
        raise ArchiveError(f"it names {len(names)} features, but has {n_features}")
    numbers = {} if is_plain else archive.mapping("fitted")
    for name in numbers:
        # Whole numbers stay what they are.
        Archive(numbers, {}).number(name, low=-1e308)
    return StoredModel(
        parameters=archive.mapping("parameters"),
        init=archive.array("init", "float64", (None, None, None)) if has_init else None,
        frame=_frame(archive, centers),
        feature_names_in=None if names is None else np.array(names, dtype=object),
        cluster_centers=centers,
        labels=labels,
        inertia=archive.number("inertia"),
        n_iter=archive.integer("n_iter"),
        n_rediscoveries=archive.integer("n_rediscoveries"),
        certainty=math.nan if certainty is None else certainty,
        missing_abilities=tuple(archive.field("missing_abilities", "list[str] | None") or ()),
        levels=tuple(archive.field("levels", "list[int]", low=1)),
        stop_reason=reason,
        population=tuple(population),
        history=history_from_arrays(archive),
        certificate=certificate,
        estimator=estimator,
        n_features_in=n_features,
        fitted_numbers=numbers,
        fitted_arrays={
            name.removeprefix(FITTED): archive.array(name, "float64", (None, None))
            for name in fitted
        },
    )


def _frame(archive: Archive, centers: NDArray[Any]) -> Frame:
    shift = archive.array("frame_shift", "float64", (centers.shape[1],))
    largest = np.finfo(centers.dtype).maxexp - 2
    frame = Frame(shift, archive.integer("frame_exponent", -1000, largest))
    with np.errstate(all="ignore"):
        encoded = np.abs(frame.encode(centers.astype(np.float64)))
    if not encoded.max() <= LARGEST_COORDINATE:
        raise ArchiveError("its centres are out of reach of its frame")
    return frame
