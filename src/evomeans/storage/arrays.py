"""Solutions and histories as plain arrays, for model files and checkpoints, and back.

Every field of a record becomes an array, whose type follows from that of the field. Texts become
places in a list of names, which has an array of its own. What only an engine needs is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.search.history import History, OffspringRecord
from evomeans.search.individual import IMPROVEMENT, Individual
from evomeans.storage.archive import Archive, ArchiveError

Arrays = dict[str, NDArray[Any]]
Ranges = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of fields, by their names."""
NO_RANGES: Ranges = MappingProxyType({})

ARRAY_TYPES: dict[Any, str] = {
    "int": "int64",
    "float": "float64",
    "bool": "bool",
    "FloatArray": "float64",
    "str": "int64",
}
LONGEST_NAME = 200


def records_to_arrays(
    kind: type, records: Collection[Any], prefix: str, k: int = 0, d: int = 0
) -> Arrays:
    """Stack the fields of records with k centres in d dimensions."""
    arrays: Arrays = {}
    for field in _stored_fields(kind):
        values = [getattr(record, field.name) for record in records]
        texts = list(dict.fromkeys(values)) if field.type == "str" else None
        if texts is not None:
            values = [texts.index(value) for value in values]
        stack = np.array(values, dtype=ARRAY_TYPES[field.type])
        arrays[f"{prefix}_{field.name}"] = stack.reshape(-1, *_shape(field.name, k, d))
        if texts is not None:
            for text in texts:
                _check_name(text)
            points = [ord(letter) for letter in "\n".join(texts)]
            arrays[f"{prefix}_operators"] = np.array(points, dtype=np.int64)
    return arrays


def records_from_arrays(
    archive: Archive, kind: type, prefix: str, k: int = 0, d: int = 0, ranges: Ranges = NO_RANGES
) -> list[Any]:
    """Return the records that an archive holds, whose fields are within ranges."""
    columns: dict[str, list[Any]] = {}
    length = None
    is_older = kind is OffspringRecord and f"{prefix}_population" not in archive.arrays
    for field in _stored_fields(kind):
        if is_older and field.default is not MISSING:
            continue
        member = f"{prefix}_{field.name}"
        shape = _shape(field.name, k, d)
        low, high = ranges.get(field.name) or _range(field.name, k)
        texts = _texts(archive, f"{prefix}_operators", length or 0) if field.type == "str" else []
        values = archive.array(
            member,
            ARRAY_TYPES[field.type],
            (length, *shape),
            low=low,
            high=len(texts) - 1 if texts else high,
        )
        length = len(values)
        # Copies: a solution must not keep all others alive.
        columns[field.name] = [row.copy() for row in values] if shape else values.tolist()
        if texts:
            columns[field.name] = [texts[place] for place in values]
    if is_older:
        columns |= _derived_columns(columns)
    rows = zip(*columns.values(), strict=True)
    return [kind(**dict(zip(columns, row, strict=True))) for row in rows]


def history_from_arrays(archive: Archive) -> History:
    """Return the history that an archive holds."""
    return History(records_from_arrays(archive, OffspringRecord, "history"))


def _stored_fields(kind: type) -> list[Field[Any]]:
    """Return the fields of records that are stored, texts last."""
    stored = [field for field in fields(kind) if field.type in ARRAY_TYPES]
    return sorted(stored, key=lambda field: field.type == "str")


def _shape(name: str, k: int, d: int) -> tuple[int, ...]:
    """Return the shape of a field of one record."""
    return {"centers": (k, d), "cluster_weights": (k,)}.get(name, ())


def _range(name: str, k: int) -> tuple[float, float]:
    """Return the range of the values of a field, wherever the record comes from."""
    special: dict[str, tuple[float, float]] = {
        "centers": (-math.inf, math.inf),
        "alpha": (0.0, 1.0),
        "quantile": (0.0, 1.0 - 2.0**-53),
        "removed": (-1, k - 1),
    }
    return special.get(name, (0.0, math.inf))


def _check_name(name: str) -> None:
    """Refuse names of operators, which may be the user's own, that could not be read again."""
    if "\n" in name or len(name) > LONGEST_NAME:
        raise ValueError(
            f"The operator {name[:60]!r} cannot be stored: its name must be a single line of at "
            f"most {LONGEST_NAME} characters, and it has {len(name)}. Rename the operator."
        )


def _texts(archive: Archive, member: str, n_records: int) -> list[str]:
    """Return the names of the operators of some records, which are at most as many."""
    points = archive.array(member, "int64", (None,), low=0, high=0x10FFFF)
    if len(points) > n_records * (LONGEST_NAME + 1):
        raise ArchiveError(f"its {member} is too long for {n_records} records")
    texts = "".join(map(chr, points.tolist())).split("\n")
    if any(len(text) > LONGEST_NAME for text in texts):
        raise ArchiveError(f"its {member} has a name that is too long")
    return texts


def _derived_columns(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Complete a history of version 1, as far as it can be told from the rest.

    A founder has the number of the offspring before it, and the first of a population is alone.
    """
    names = ("number", "population_size", "inertia")
    populations: list[int] = []
    founders: list[bool] = []
    since: list[int] = []
    last, improved, lowest = 0, 0, float("inf")
    for number, size, inertia in zip(*(columns[name] for name in names), strict=True):
        is_founder = number == last
        is_new = is_founder and size == 1
        if is_new or inertia < lowest * (1.0 - IMPROVEMENT):
            lowest, improved = inertia, number
        populations.append((populations[-1] if populations else 0) + is_new)
        founders.append(is_founder)
        since.append(number - improved)
        last = number
    return {"population": populations, "founder": founders, "since_improvement": since}


POPULATION_MEMBERS = tuple(records_to_arrays(Individual, (), "population", 1, 1))
HISTORY_MEMBERS = tuple(records_to_arrays(OffspringRecord, (), "history"))
LATER_HISTORY_MEMBERS = (
    *(
        f"history_{field.name}"
        for field in _stored_fields(OffspringRecord)
        if field.default is not MISSING
    ),
    "history_operators",
)
"""Members that model files of version 1 do not have."""
