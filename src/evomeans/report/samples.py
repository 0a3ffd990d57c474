"""The samples of a report, and values as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evomeans.metrics.sums import ClusterMoments, cluster_moments
from evomeans.plotting.cluster_data import column_names, fitted_rows

Kind = TypeVar("Kind")

# Where a search is kept and who watches it: its result does not depend on them.
NOT_SETTINGS = ("checkpoint", "observers")


def parameters_of(model: Any) -> dict[str, Any]:
    """Return the parameters that shape a fit."""
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in NOT_SETTINGS}


def as_plain(value: Any) -> str | int | float | bool | None:
    """Keep what JSON can hold; write the rest, NaN and infinity included, as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return as_text(value) if isinstance(value, str) else value
    return value if isinstance(value, float) and np.isfinite(value) else as_text(value)


def as_text(value: Any) -> str:
    """Return text that can be written as UTF-8; names of files need not be."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def short(values: NDArray[np.float64]) -> list[Any]:
    """Five digits are finer than any screen, and keep the page small."""
    if values.ndim > 1:
        return [short(row) for row in values]
    return [float(f"{value:.5g}") for value in values.tolist()]


def as_json(data: Any, *, shortened: bool = False) -> Any:
    """Turn a dataclass of arrays into plain JSON; :func:`from_json` is the way back.

    Numbers that are not finite become None. The floats of arrays keep five digits if
    ``shortened``.
    """
    if is_dataclass(data):
        data = {one.name: getattr(data, one.name) for one in fields(data)}
    if isinstance(data, np.ndarray):
        data = short(data) if shortened and data.dtype.kind == "f" else data.tolist()
    if isinstance(data, dict):
        return {name: as_json(value, shortened=shortened) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [as_json(value, shortened=shortened) for value in data]
    return None if isinstance(data, float) and not np.isfinite(data) else data


def from_json(kind: type[Kind], data: Mapping[str, Any]) -> Kind:
    """Make a dataclass from its plain JSON, with arrays where its annotations say so."""
    hints = get_type_hints(kind)
    return kind(**{name: _read(hints[name], value) for name, value in data.items()})


def _read(hint: Any, value: Any) -> Any:
    """Return a value of JSON as what an annotation says."""
    parts = get_args(hint)
    if get_origin(hint) is UnionType:
        return None if value is None else _read(parts[0], value)
    if get_origin(hint) is np.ndarray:
        # NDArray[np.float64] is ndarray[shape, dtype[np.float64]].
        return np.array(value, dtype=get_args(parts[1])[0])
    if get_origin(hint) is list:
        return [_read(parts[0], one) for one in value]
    return from_json(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value


@dataclass(frozen=True, eq=False)
class ReportSamples:
    """What a model was fitted to, and how to speak of it, as ``report_data`` takes it."""

    X: Any
    columns: list[str]
    units: Mapping[str, str]
    weights: Any
    standardization: tuple[ArrayLike, ArrayLike] | None
    names: list[str] | None
    """What the rows are called; by default they are numbered from ``first``."""
    label: str
    """What a name of a row is, such as "row"."""
    first: int

    def name(self, row: int) -> str:
        """Return what a row is called."""
        return str(self.first + row) if self.names is None else self.names[row]

    def in_units(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return centres or rows in the original units of the columns."""
        values = np.asarray(values, dtype=np.float64)
        if self.standardization is None:
            return values
        mean, scale = map(np.asarray, self.standardization)
        restored: NDArray[np.float64] = values * scale + mean
        return restored

    @property
    def scale(self) -> NDArray[np.float64]:
        """What a difference of 1 is in the original units of each column."""
        if self.standardization is None:
            return np.ones(self.X.shape[1])
        return np.asarray(self.standardization[1], dtype=np.float64)

    def moments(self, model: Any) -> ClusterMoments:
        """Sum up over the samples of each cluster; outliers, labelled −1, do not count."""
        centers = np.asarray(model.cluster_centers_, np.float64)
        given = np.asarray(1.0 if self.weights is None else self.weights, np.float64)
        weights = np.broadcast_to(given, self.X.shape[0])
        return cluster_moments(self.X, centers, weights, model.labels_)


def samples_of(
    model: Any,
    X: Any,
    sample_weight: Any,
    standardization: tuple[ArrayLike, ArrayLike] | None,
    feature_names: Sequence[str] | None,
    units: Mapping[str, str] | None,
    sample_names: Sequence[Any] | None,
    sample_label: str | None,
) -> ReportSamples:
    """Check that these are the samples of the fit, and gather what is known about them."""
    frame = X
    X = fitted_rows(model, X)
    n_fitted = len(model.labels_)
    if X.shape[0] != n_fitted:
        raise ValueError(
            f"The model was fitted to {n_fitted} samples, X has {X.shape[0]}; "
            "a report needs the samples of the fit."
        )
    if sample_weight is not None and np.ndim(sample_weight) and len(sample_weight) != n_fitted:
        raise ValueError(
            f"sample_weight has {len(sample_weight)} values for {n_fitted} samples; a report needs "
            "the weights of the fit."
        )
    if feature_names is None:
        feature_names = getattr(frame, "columns", None)
    columns = [as_text(name) for name in column_names(model, feature_names, X.shape[1])]
    units = {as_text(name): as_text(unit) for name, unit in (units or {}).items()}
    if unknown := sorted(set(units) - set(columns)):
        raise ValueError(f"units names a column {unknown[0]!r}, which X does not have.")
    if sample_names is None and hasattr(frame, "index") and hasattr(frame, "columns"):
        # A data frame of pandas: rows are known by their index.
        sample_names = list(frame.index)
        sample_label = sample_label or frame.index.name or "index"
    if sample_names is not None and len(sample_names) != n_fitted:
        raise ValueError(f"sample_names has {len(sample_names)} names for {n_fitted} samples.")
    label = sample_label or "index"
    return ReportSamples(
        X,
        columns,
        units,
        sample_weight,
        standardization,
        None if sample_names is None else [as_text(name) for name in sample_names],
        as_text(label),
        # Tables count their rows from 1, Python from 0.
        1 if label == "row" else 0,
    )
