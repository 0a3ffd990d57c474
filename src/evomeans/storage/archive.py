"""Arrays and one JSON object in a ZIP file: the format of model files and checkpoints.

An archive may come from anyone. Reading it runs nothing, imports nothing and unpacks nothing to
disk. Members are not compressed, so every size that the file declares is compared with the bytes
that are there before memory is allocated for it. Any fault raises :class:`ArchiveError`.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from evomeans._version import __version__
from evomeans.files import write_atomically

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
# Bytes before the text of a header, whose length excludes them.
ARRAY_START = 10
LARGEST_COUNT = 2**53


class ArchiveError(ValueError):
    """An archive that cannot be read; the text continues "it …"."""


@dataclass(frozen=True)
class Archive:
    """The contents of an archive; its methods check what they return.

    Parameters
    ----------
    meta : dict
        The JSON object.
    arrays : dict of str to array
        The other members, without their ``.npy``.
    """

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

    def integer(self, name: str, low: int = 0, high: int = LARGEST_COUNT) -> int:
        """Return an integer of the JSON object."""
        value = self._field(name)
        if type(value) is not int or not low <= value <= high:
            raise ArchiveError(f"its {name} is not an integer within {low} and {high}")
        return value

    def number(self, name: str, low: float = 0.0) -> float:
        """Return a finite number of the JSON object, at least ``low``."""
        value = self._field(name)
        if type(value) not in (int, float):
            raise ArchiveError(f"its {name} is not a number")
        # Compared before it is converted: JSON has integers that are too large for a float.
        if not low <= value <= 1e308:
            raise ArchiveError(f"its {name} is not within {low:g} and 1e308")
        return float(value)

    def flag(self, name: str) -> bool:
        """Return a truth value of the JSON object."""
        value = self._field(name)
        if type(value) is not bool:
            raise ArchiveError(f"its {name} is neither true nor false")
        return value

    def counts(self, name: str) -> list[list[int]]:
        """Return a list of lists of integers, none negative, of the JSON object."""
        rows: list[list[int]] = self._field(name)
        is_fine = isinstance(rows, list) and all(
            isinstance(row, list)
            and all(type(one) is int and 0 <= one <= LARGEST_COUNT for one in row)
            for row in rows
        )
        if not is_fine:
            raise ArchiveError(f"its {name} is not a list of lists of integers")
        return rows

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object within the JSON object."""
        value = self._field(name)
        if not isinstance(value, dict):
            raise ArchiveError(f"its {name} is not a JSON object")
        return value

    def _field(self, name: str) -> Any:
        if name not in self.meta:
            raise ArchiveError(f"its {META} lacks {name}")
        return self.meta[name]


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


def read_archive(path: str | os.PathLike[str], kind: str, version: int) -> Archive:
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
    if number > version:
        raise ArchiveError(
            f"it has version {_shown(number)} of the format, written by a newer evomeans "
            f"({_shown(meta.get('evomeans'))}); this one, {__version__}, reads up to version "
            f"{version}. Update evomeans"
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
