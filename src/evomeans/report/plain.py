"""Values, names and arrays as plain JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
