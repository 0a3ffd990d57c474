"""What the data of a report must look like; they may come from a file that anyone has written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from evomeans.plotting.palette import OKABE_ITO
from evomeans.report.data import FORMAT, VERSION

Check = Callable[[Any, str], None]


def check_report_data(data: Any) -> None:
    """Raise a ValueError that says where and why, unless the page can be made from ``data``."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ValueError(f'These are no data of a report: "format" should be {FORMAT!r}.')
    if data.get("version") != VERSION:
        raise ValueError(
            f"These data of a report have version {data.get('version')!r}; this evomeans reads "
            f"version {VERSION}. Make the report with the evomeans that made the data."
        )
    REPORT(data, "data")
    _check_agreement(data)


def _fail(where: str, expected: str, value: Any) -> None:
    came = repr(value)
    came = came if len(came) <= 60 else came[:59] + "…"
    raise ValueError(f"The data of the report are broken: {where} should be {expected}, is {came}.")


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        _fail(where, "a text", value)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        _fail(where, "a text without lone surrogates", value)


def _number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        _fail(where, "a finite number", value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond all floats
        return False


def _share(value: Any, where: str) -> None:
    _number(value, where)
    if not 0 <= value <= 1 + 1e-9:
        _fail(where, "a share from 0 to 1", value)


def _not_negative(value: Any, where: str) -> None:
    _number(value, where)
    if value < 0:
        _fail(where, "a number that is not negative", value)


def _positive(value: Any, where: str) -> None:
    _number(value, where)
    if value <= 0:
        _fail(where, "a positive number", value)


def _count(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        _fail(where, "a whole number that is not negative", value)


def _color(value: Any, where: str) -> None:
    _count(value, where)
    if value >= len(OKABE_ITO):
        _fail(where, f"below {len(OKABE_ITO)}", value)


def _setting(value: Any, where: str) -> None:
    if isinstance(value, float):
        _number(value, where)
    elif isinstance(value, str):
        _text(value, where)
    elif not (value is None or isinstance(value, int)):
        _fail(where, "a text, a number, a truth value or null", value)


def _optional(check: Check) -> Check:
    def check_unless_none(value: Any, where: str) -> None:
        if value is not None:
            check(value, where)

    return check_unless_none


def _list(check: Check, length: int | None = None) -> Check:
    def check_list(value: Any, where: str) -> None:
        if not isinstance(value, list | tuple):
            _fail(where, "a list", value)
        if length is not None and len(value) != length:
            _fail(where, f"a list of {length}", value)
        for i, item in enumerate(value):
            check(item, f"{where}[{i}]")

    return check_list


def _mapping(check: Check) -> Check:
    def check_mapping(value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            _fail(where, "an object", value)
        for name, item in value.items():
            _text(name, f"a name in {where}")
            check(item, f"{where}[{name!r}]")

    return check_mapping


def _fields(**checks: Check) -> Check:
    def check_fields(value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            _fail(where, "an object", value)
        for name, check in checks.items():
            if name not in value:
                raise ValueError(f"The data of the report are broken: {where}.{name} is missing.")
            check(value[name], f"{where}.{name}")

    return check_fields


_COURSE = _fields(
    x=_list(_not_negative),
    gap=_list(_not_negative),
    step_x=_list(_not_negative),
    step_gap=_list(_not_negative),
    floor=_positive,
    unit=_text,
)

REPORT = _fields(
    evomeans=_text,
    created=_text,
    title=_text,
    command=_text,
    python=_text,
    settings=_mapping(_setting),
    run=_fields(
        n_samples=_count,
        n_features=_count,
        n_clusters=_count,
        n_offspring=_count,
        seconds=_not_negative,
        inertia=_not_negative,
        first_inertia=_optional(_not_negative),
        founders_inertia=_optional(_not_negative),
        n_founders=_count,
        explained=_optional(_share),
        last_improvement=_count,
        last_improvement_seconds=_not_negative,
        stop_reason=_text,
    ),
    convergence=_fields(offspring=_COURSE, seconds=_COURSE),
    projection=_fields(
        points=_list(_list(_number), 2),
        labels=_list(_count),
        centers=_list(_list(_number), 2),
        axis_names=_list(_text, 2),
        view=_list(_list(_number, 2), 2),
    ),
    profiles=_fields(
        columns=_list(_text),
        clusters=_list(_count),
        values=_list(_list(_number)),
        centers=_list(_list(_number)),
    ),
    clusters=_list(
        _fields(
            color=_color,
            size=_count,
            weight=_not_negative,
            inertia_share=_share,
            spread=_not_negative,
            telling=_list(_fields(name=_text, value=_number, center=_number)),
        )
    ),
)


def _check_agreement(data: Mapping[str, Any]) -> None:
    """Check that lists which belong together are equally long, and that named clusters exist."""
    k = len(data["clusters"])
    projection, profiles = data["projection"], data["profiles"]
    lengths = {
        "the points of the projection": {
            *map(len, projection["points"]),
            len(projection["labels"]),
        },
        "the clusters": {
            k,
            data["run"]["n_clusters"],
            *map(len, projection["centers"]),
            len(profiles["clusters"]),
            len(profiles["values"]),
            len(profiles["centers"]),
        },
        "the columns of the profiles": {
            len(profiles["columns"]),
            *map(len, [*profiles["values"], *profiles["centers"]]),
        },
    }
    for name in ("offspring", "seconds"):
        course = data["convergence"][name]
        lengths[f"the solutions of convergence.{name}"] = {len(course["x"]), len(course["gap"])}
        lengths[f"the steps of convergence.{name}"] = {
            len(course["step_x"]),
            len(course["step_gap"]),
        }
    for what, counts in lengths.items():
        if len(counts) > 1:
            _fail(what, "equally many everywhere", sorted(counts))
    if k == 0:
        _fail("the clusters", "at least one", [])
    named = {*projection["labels"], *profiles["clusters"]}
    if named and max(named) >= k:
        _fail("every label", f"below the number of clusters ({k})", max(named))
    for low, high in projection["view"]:
        if not low < high:
            _fail("data.projection.view", "two ascending limits", [low, high])
