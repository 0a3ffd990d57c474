"""Arrays and one JSON object in a ZIP file: the format of model files and checkpoints.

An archive may come from anyone. Reading it runs nothing, imports nothing and unpacks nothing to
disk. Members are not compressed, so every size that the file declares is compared with the bytes
that are there before memory is allocated for it. Any fault raises :class:`ArchiveError`.

Of solutions and histories, every field of a record becomes an array. Texts become places in a list
of names in the JSON object. What only an engine needs is left out.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from evomeans._version import __version__
from evomeans.files import write_atomically
from evomeans.search.history import History, OffspringRecord
from evomeans.search.population import Individual

META = "meta.json"
META_LIMIT = 1 << 26
MEMBER_LIMIT = 64
MEMBER_NAME = re.compile(r"[a-z_]{1,60}\.npy|meta\.json")
# The one form in which NumPy writes the headers of our arrays. NumPy itself would evaluate a header
# as a Python literal, which accepts more and can warn or fail in many ways.
ARRAY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<dtype><f8|<f4|<i8|<i4|\|b1)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>\d{1,18}(?:,|(?:, \d{1,18}){1,2}))\), \} {0,128}\n",
    re.DOTALL,
)
ARRAY_START = 10  # bytes before the text of a header, whose length excludes them
LARGEST_COUNT = 2**53
JSON_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "an integer"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "a text"),
    "dict": ((dict,), "a JSON object"),
}
MANY = {"int": "integers", "float": "numbers", "str": "texts"}
MANY |= {f"list[{kind}]": f"lists of {words}" for kind, words in MANY.items()}
LARGEST: dict[str, float] = {"int": LARGEST_COUNT, "float": 1e308}


class ArchiveError(ValueError):
    """Raised for an archive that cannot be read; the text continues "it …"."""


@dataclass(frozen=True)
class Archive:
    """The JSON object and the arrays of an archive; its methods check what they return."""

    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def expect(self, names: Iterable[str], optional: Iterable[str] = ()) -> None:
        """Demand these arrays and no others."""
        required = set(names)
        if missing := sorted(required - self.arrays.keys()):
            raise ArchiveError(f"it lacks the member {missing[0]}.npy")
        if unknown := sorted(self.arrays.keys() - required - set(optional)):
            raise ArchiveError(f"it has the unknown member {unknown[0]}.npy")

    def array(
        self,
        name: str,
        dtypes: str | Sequence[str],
        shape: tuple[int | None, ...],
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> NDArray[Any]:
        """Return a finite array of a type, a shape (None for any length) and a range."""
        if name not in self.arrays:
            raise ArchiveError(f"it lacks the member {name}.npy")
        values = self.arrays[name]
        names = (dtypes,) if isinstance(dtypes, str) else dtypes
        if values.dtype.name not in names:
            raise ArchiveError(f"its {name} is of type {values.dtype}, not {' or '.join(names)}")
        if values.ndim != len(shape) or any(
            wanted not in (None, length) for wanted, length in zip(shape, values.shape, strict=True)
        ):
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise ArchiveError(f"its {name} has the shape {values.shape}, not ({wanted})")
        if not np.isfinite(values).all():
            raise ArchiveError(f"its {name} contains NaN or infinity")
        if values.size and not (low <= values.min() and values.max() <= high):
            raise ArchiveError(f"its {name} is not within {low:g} and {high:g}")
        return values

    def field(self, name: str, kind: str, low: float = 0, high: float | None = None) -> Any:
        """Return a field of the JSON object, if it is of a type as a dataclass declares it.

        ``kind`` is "int", "float", "bool", "str" or "dict", a list of these, or perhaps None; all
        numbers in it are within a range.
        """
        if name not in self.meta and not kind.endswith(" | None"):
            raise ArchiveError(f"its {META} lacks {name}")
        return _checked(name, self.meta.get(name), kind, low, high)


def _checked(name: str, value: Any, kind: str, low: float, high: float | None) -> Any:
    if kind.endswith(" | None"):
        kind = kind.removesuffix(" | None")
        return None if value is None else _checked(name, value, kind, low, high)
    if kind.startswith("list["):
        inner = kind[5:-1]
        try:
            if isinstance(value, list):
                return [_checked(name, one, inner, low, high) for one in value]
        except ArchiveError as error:
            raise ArchiveError(f"its {name} are not a list of {MANY[inner]} ({error})") from error
        raise ArchiveError(f"its {name} are not a list of {MANY[inner]}")
    types, word = JSON_TYPES[kind]
    if type(value) not in types:
        raise ArchiveError(f"its {name} is not {word}")
    # Compared before it is converted: JSON has integers that are too large for a float.
    high = LARGEST.get(kind) if high is None else high
    if high is not None and not low <= value <= high:
        range_of = "an integer within" if kind == "int" else "within"
        raise ArchiveError(f"its {name} is not {range_of} {low:g} and {high:g}")
    return float(value) if kind == "float" else value


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write an archive atomically; equal contents give equal bytes."""
    header = {"format": kind, "version": version, "evomeans": __version__, **meta}
    text = json.dumps(header, allow_nan=False, indent=1).encode("ascii")
    if len(text) > META_LIMIT:
        raise ValueError(f"The texts to store in {os.fspath(path)} exceed {META_LIMIT} bytes.")

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo(META), text)
            for name, values in arrays.items():
                ordered = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    npy.write_array(member, ordered, version=(1, 0), allow_pickle=False)

    write_atomically(path, write)


def read_archive(path: str | os.PathLike[str], kind: str, version: int, oldest: int = 1) -> Archive:
    """Read an archive of one kind; OSError if there is no file, ArchiveError if it is invalid."""
    members = _read_members(Path(path))
    if META not in members:
        raise ArchiveError(f"it lacks the member {META}")
    meta = _parse_meta(members.pop(META))
    if meta.get("format") != kind:
        raise ArchiveError(f"it is of the format {_shown(meta.get('format'))}, not {kind!r}")
    number = meta.get("version")
    if type(number) is not int or number < 1:
        raise ArchiveError("it has no valid version number")
    if not oldest <= number <= version:
        is_newer = number > version
        known = f"versions {oldest} to {version}" if oldest < version else f"version {version} only"
        raise ArchiveError(
            f"it has version {_shown(number)} of the format, written by "
            f"{'a newer' if is_newer else 'an older'} evomeans ({_shown(meta.get('evomeans'))}); "
            f"this one, {__version__}, reads {known}. "
            f"{'Update evomeans' if is_newer else 'Use the one that wrote it, or begin anew'}"
        )
    arrays = {name.removesuffix(".npy"): _parse_array(name, members[name]) for name in members}
    return Archive(meta, arrays)


def _read_members(path: Path) -> dict[str, bytes]:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ArchiveError("it is not a regular file")
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive.infolist(), len(data))
            return {member.filename: archive.read(member) for member in archive.infolist()}
    except (ArchiveError, MemoryError):
        raise
    # A damaged file can raise almost anything in zipfile.
    except Exception as error:
        raise ArchiveError(f"it is damaged, or no ZIP file at all ({error})") from error


def _check_members(members: Sequence[zipfile.ZipInfo], n_bytes: int) -> None:
    """Refuse what a reader need not even open."""
    if len(members) > MEMBER_LIMIT:
        raise ArchiveError(f"it has {len(members)} members")
    for member in members:
        if not MEMBER_NAME.fullmatch(member.filename):
            raise ArchiveError(f"it has a member of the strange name {_shown(member.filename)}")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise ArchiveError(f"its member {member.filename} is compressed or encrypted")
        if member.filename == META and member.file_size > META_LIMIT:
            raise ArchiveError(f"its {META} is larger than {META_LIMIT} bytes")
    if len({member.filename for member in members}) < len(members):
        raise ArchiveError("it has two members of the same name")
    if any(member.file_size != member.compress_size for member in members) or (
        sum(member.file_size for member in members) > n_bytes
    ):
        raise ArchiveError("its members claim to be larger than the file")


def _parse_meta(data: bytes) -> dict[str, Any]:
    try:
        meta = json.loads(data.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"its {META} is not valid JSON ({error})") from error
    if not isinstance(meta, dict):
        raise ArchiveError(f"its {META} is not a JSON object")
    return meta


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key occurs twice")
    return fields


def _parse_array(name: str, data: bytes) -> NDArray[Any]:
    """Read the header, and believe it only if the bytes that follow agree."""
    header = ARRAY_HEADER.match(data)
    if not header or header.end() != ARRAY_START + int.from_bytes(header["length"], "little"):
        raise ArchiveError(f"its {name} is not an array of numbers as NumPy writes it")
    dtype = np.dtype(header["dtype"].decode("ascii"))
    shape = tuple(int(length) for length in header["shape"].split(b",") if length)
    body = memoryview(data)[header.end() :]
    if math.prod(shape) * dtype.itemsize != len(body):
        raise ArchiveError(f"its {name} has {len(body)} bytes, which is not what {shape} needs")
    if dtype.kind == "b" and len(body) and np.frombuffer(body, np.uint8).max() > 1:
        raise ArchiveError(f"its {name} has truth values that are neither true nor false")
    try:
        return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))
    except (ValueError, OverflowError) as error:
        raise ArchiveError(f"its {name} has the impossible shape {shape}") from error


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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


def records_to_arrays(
    kind: type, records: Collection[Any], prefix: str, meta: dict[str, Any], k: int = 0, d: int = 0
) -> Arrays:
    """Stack the fields of records with k centres in d dimensions; names go into ``meta``."""
    arrays: Arrays = {}
    for field in _columns(kind):
        values = [getattr(record, field.name) for record in records]
        if field.type == "str":
            meta[f"{prefix}_operators"] = names = list(dict.fromkeys(values))
            values = [names.index(value) for value in values]
        stack = np.array(values, dtype=ARRAY_TYPES[field.type])
        arrays[f"{prefix}_{field.name}"] = stack.reshape(-1, *_shape(field.name, k, d))
    return arrays


def records_from_arrays(
    archive: Archive, kind: type, prefix: str, k: int = 0, d: int = 0, ranges: Ranges = NO_RANGES
) -> list[Any]:
    """Return the records that an archive holds, whose fields are within ranges."""
    columns: dict[str, list[Any]] = {}
    length = None
    for field in _columns(kind):
        member = f"{prefix}_{field.name}"
        shape = _shape(field.name, k, d)
        low, high = ranges.get(field.name) or _range(field.name, k)
        names = None
        if field.type == "str":
            names = archive.field(f"{prefix}_operators", "list[str]")
            high = len(names) - 1
        kept, wanted = ARRAY_TYPES[field.type], (length, *shape)
        values = archive.array(member, kept, wanted, low=low, high=high)
        length = len(values)
        # Copies: a solution must not keep all others alive.
        columns[field.name] = [row.copy() for row in values] if shape else values.tolist()
        if names is not None:
            columns[field.name] = [names[place] for place in values]
    rows = zip(*columns.values(), strict=True)
    return [kind(**dict(zip(columns, row, strict=True))) for row in rows]


def history_from_arrays(archive: Archive) -> History:
    """Return the history that an archive holds."""
    return History(records_from_arrays(archive, OffspringRecord, "history"))


def stored_fields(record: Any) -> list[Field[Any]]:
    """Return the fields of a record, or of a class of records, that files hold."""
    return [field for field in fields(record) if field.metadata.get("is_stored", True)]


def _columns(kind: type) -> list[Field[Any]]:
    return [field for field in stored_fields(kind) if field.type in ARRAY_TYPES]


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
        "power": (1, 2),
    }
    return special.get(name, (0.0, math.inf))


POPULATION_MEMBERS = tuple(records_to_arrays(Individual, (), "population", {}, 1, 1))
HISTORY_MEMBERS = tuple(records_to_arrays(OffspringRecord, (), "history", {}))
