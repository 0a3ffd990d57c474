"""The Python code that repeats a fit."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from evomeans.report.samples import parameters_of

LONGEST_LINE = 80


@dataclass(frozen=True)
class SampleCode:
    """How Python gets at the samples.

    Parameters
    ----------
    lines : tuple of str
        Statements that define the samples.
    arguments : str
        What ``fit`` is called with.
    imports : tuple of str
        What the lines need.
    """

    lines: tuple[str, ...]
    arguments: str
    imports: tuple[str, ...] = ()


def unknown_samples(shape: tuple[int, int], *, weighted: bool, scaled: bool) -> SampleCode:
    """Return code with places for the samples and their weights to be filled in."""
    weights = ", sample_weight=weights" if weighted else ""
    lines = [
        f"X = ...  # the samples: {shape[0]:,} rows, {shape[1]:,} columns",
        "weights = ...  # one for each sample" if weighted else "",
        f"X = StandardScaler().fit_transform(X{weights})" if scaled else "",
    ]
    imports = ("from sklearn.preprocessing import StandardScaler",) if scaled else ()
    return SampleCode(tuple(filter(None, lines)), f"X{weights}", imports)


def python_snippet(model: Any, code: SampleCode) -> str:
    """Write the code that repeats a fit; parameters that cannot be written down become ``...``."""
    name = type(model).__name__
    call = _called(name, _changed_parameters(model))
    fit = f"model = {call}.fit({code.arguments})"
    if len(fit.rpartition("\n")[2]) > LONGEST_LINE:
        arguments = code.arguments.replace(", ", ",\n    ")
        fit = f"model = {call}.fit(\n    {arguments},\n)"
    shown = "results_" if hasattr(model, "results_") else "inertia_"
    lines = [
        f"from {_home(model)} import {name}",
        *code.imports,
        "",
        *code.lines,
        fit,
        f"print(model.{shown})",
    ]
    return "\n".join(lines) + "\n"


def _home(model: Any) -> str:
    """Return the module from which users import the class."""
    module = type(model).__module__
    is_ours = module.startswith("evomeans.estimators.")
    return "evomeans" if is_ours else ".".join(module.split(".")[:2])


def _changed_parameters(model: Any) -> list[str]:
    defaults = inspect.signature(type(model)).parameters
    required = "n_clusters" if "n_clusters" in defaults else "k_range"
    changed = [f"{required}={_literal(getattr(model, required))}"]
    for name, value in parameters_of(model).items():
        default, is_literal = defaults[name].default, _is_literal(value)
        # Only literals are compared: arrays would answer with an array.
        if name != required and value is not default and not (is_literal and value == default):
            changed.append(f"{name}={_literal(value)}")
    return changed


def _called(name: str, arguments: list[str]) -> str:
    call = f"{name}({', '.join(arguments)})"
    if len(call) > LONGEST_LINE:
        call = f"{name}(\n    " + ",\n    ".join(arguments) + ",\n)"
    return call


def _literal(value: Any) -> str:
    return repr(value) if _is_literal(value) else "..."


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, bool | int | float | str)
