"""Values, names and arrays as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind")

# Where a search is kept and who watches it: its result does not depend on them.
NOT_SETTINGS = ("checkpoint", "observers")


def parameters_of(model: Any) -> dict[str, Any]:
    """Return the parameters that shape a fit, by their present names."""
    parameters = {
        name: value
        for name, value in model.get_params(deep=False).items()
        # This is how scikit-learn marks old names.
        if name not in NOT_SETTINGS and not (isinstance(value, str) and value == "deprecated")
    }
    if "max_offspring" in parameters and "max_iter" in parameters:
        # Its old name was used.
        parameters["max_offspring"] = parameters.pop("max_iter")
    return parameters


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
