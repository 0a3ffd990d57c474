"""Files of ours that are taken apart, changed and put together again, for tests and fuzzers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import evomeans
from evomeans.storage.archive import write_archive

FLOATS = (
    *(np.nan, np.inf, -np.inf, 1e308, -1e308, 1e300, 1e200, 1e160, 1e153, 1e150, 1e100, 1e38, 1e30),
    *(1.01e6, -1e6, 1e9, 2.0, 1.0, 0.5, 1e-9, 1e-38, 1e-160, 1e-300, 1e-308, 5e-324, 0.0, -0.0),
    *(-1.0, 2.0**53),
)
INTEGERS = (
    *(-(2**63), -(2**62), -(2**31), -2, -1, 0, 1, 2, 3, 7, 24, 2**15, 10**6, 3 * 10**8, 2**31 - 1),
    *(2**40, 2**50, 2**53, 2**62, 2**63 - 1),
)
JSON: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 99, 2**31, 2**53, 2**64, 10**400, -1e308, 1e308, 1e-308, 0.5),
    *("", "x", "\x1b[31m", [], [0], [[0, 1]], [[0, 1, 0, 0]], [[0, 0, 0, 0]], {}, {"a": 1}),
    *("optimal", "bounded", "plane", ["optimal"], 3 * 10**8, 2**50),
)
FACTORS = (0.0, 0.5, 1 - 1e-7, 1 + 1e-7, 1.001, 1.01, 2.0, 1e3, -1.0)


def contents(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON object and the arrays of a file, whatever it is, without its checks."""
    with np.load(path) as members:
        arrays = {name: members[name] for name in members.files if name != "meta.json"}
        return json.loads(members["meta.json"]), arrays


def rewrite(
    path: Path,
    meta: dict[str, Any] | None = None,
    arrays: dict[str, Any] | None = None,
    without: tuple[str, ...] = (),
) -> None:
    """Write a file again with some fields and arrays replaced, and some fields left out.

    An array that is None is left out, too.
    """
    stored, members = contents(path)
    fields = {**stored, **(meta or {})}
    fields = {name: value for name, value in fields.items() if name not in without}
    given = {**members, **(arrays or {})}
    given = {name: values for name, values in given.items() if values is not None}
    write_archive(path, fields.pop("format"), fields.pop("version"), fields, given)


def tamper(path: Path, rng: np.random.Generator, share_of_arrays: float = 0.7) -> None:
    """Replace a value, type or shape of an array, or a field; the file stays a valid archive."""
    meta, arrays = contents(path)
    named = {name: meta.pop(name) for name in ("format", "version")}
    if rng.random() < share_of_arrays:
        replace_array(arrays, rng)
    else:
        replace_field(meta, rng)
    write_archive(path, *named.values(), meta, arrays)


def damage(path: Path, rng: np.random.Generator) -> None:
    """Flip bits, cut a file off, or fill a part of it with zeros."""
    data = bytearray(path.read_bytes())
    place = int(rng.integers(len(data)))
    match rng.integers(3):
        case 0:
            data[place] ^= 1 << int(rng.integers(8))
        case 1:
            del data[place:]
        case _:
            data[place : place + 512] = bytes(len(data[place : place + 512]))
    path.write_bytes(data)


def replace_array(arrays: dict[str, Any], rng: np.random.Generator) -> None:
    """Change a few entries of an array, its length, shape or type, or leave it out."""
    used = [name for name, values in arrays.items() if values.size or rng.random() < 0.3]
    name = str(rng.choice(used))
    values = arrays[name].copy()
    match rng.integers(12):
        case 0:
            values = values.astype(rng.choice(["f8", "f4", "i8", "i4", "?"]))
        case 1:
            values = values[: int(rng.integers(0, len(values) + 1))]
        case 2:
            values = np.concatenate([values, values])
        case 3:
            values = values.reshape(-1) if rng.random() < 0.5 else values[..., None][:, :2]
        case 4:
            values = arrays[str(rng.choice(list(arrays)))]
        case 5:
            values = rng.permutation(values)
        case 6 if rng.random() < 0.3:
            del arrays[name]
            return
        case _ if values.size:
            places = slice(None) if rng.random() < 0.2 else rng.integers(0, values.size, 3)
            values.reshape(-1)[places] = hostile_value(values, rng)
    if 1 <= values.ndim <= 3:
        arrays[name] = values


def hostile_value(values: Any, rng: np.random.Generator) -> Any:
    """Return what an array of this type can hold and should not, or what is nearly right."""
    if values.dtype.kind == "b":
        return bool(rng.random() < 0.5)
    if values.dtype.kind == "f":
        if rng.random() < 0.4:
            return rng.choice(values.reshape(-1)) * rng.choice(FACTORS)
        return FLOATS[rng.integers(len(FLOATS))]
    if rng.random() < 0.4:
        return int(rng.integers(-1, 9))
    limits = np.iinfo(values.dtype)
    return min(max(INTEGERS[rng.integers(len(INTEGERS))], limits.min), limits.max)


def replace_field(meta: dict[str, Any], rng: np.random.Generator) -> None:
    """Replace a field of the JSON object, or one within it."""
    place: Any = meta
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[rng.integers(len(keys))]
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner and rng.random() < 0.7):
            break
        place = inner
    scaled = inner * float(rng.choice(FACTORS)) if isinstance(inner, float) else math.inf
    if math.isfinite(scaled) and rng.random() < 0.6:
        place[key] = scaled
    elif isinstance(place, dict) and rng.random() < 0.1:
        del place[key]
    else:
        place[key] = JSON[rng.integers(len(JSON))]


def check_possible(model: Any, n_samples: int) -> None:
    """Check what is true of any fitted model, whatever it was given."""
    labels = model.labels_
    assert labels.shape == (n_samples,)
    assert labels.min() >= (-1 if isinstance(model, evomeans.TrimmedHGMeans) else 0)
    assert labels.max() < len(model.cluster_centers_)
    assert np.isfinite(model.cluster_centers_).all()
    assert 0.0 <= model.inertia_ < np.inf
