"""The Python code that reads a table as a command does."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from evomeans.cli.options import ModelOptions, SampleOptions, TableOptions

if TYPE_CHECKING:
    from evomeans.report.snippet import SampleCode


def sample_code(
    name: str, read: TableOptions, samples: SampleOptions, model: ModelOptions
) -> SampleCode:
    """Return the lines that read the table, and the arguments of a fit to it."""
    from evomeans.report.snippet import SampleCode

    options = {**_changed(read), **_changed(samples)}
    given = [f"{option}={value!r}" for option, value in options.items()]
    call = f"table = open_table({', '.join([repr(name), *given])})"
    if len(call) > 80:
        call = "table = open_table(\n    " + ",\n    ".join([repr(name), *given]) + ",\n)"
    arguments = ["table.X"]
    if samples.weights is not None:
        arguments.append("sample_weight=table.weights")
    links = {name: getattr(model, name) for name in ("must_link", "cannot_link")}
    links = {name: str(path) for name, path in links.items() if path is not None}
    lines = [call, *(f"{name} = read_pairs({path!r}, table)" for name, path in links.items())]
    arguments += [f"{name}={name}" for name in links]
    tools = "open_table, read_pairs" if links else "open_table"
    return SampleCode(
        imports=(f"from evomeans.cli.tables import {tools}",),
        lines=tuple(lines),
        arguments=", ".join(arguments),
    )


def _changed(options: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    given = {one.name: (getattr(options, one.name), one.default) for one in fields(options)}
    return {name: value for name, (value, default) in given.items() if value != default}
