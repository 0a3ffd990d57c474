"""The files inside a downloaded one."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from lab.data.errors import MissingDataError, WrongContentsError
from lab.data.records import Dataset

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile, ValueError, KeyError)


def read_parts(path: Path, dataset: Dataset) -> list[bytes]:
    """Read the files that a data set is made of, decompressed, in the order of the registry.

    Parameters
    ----------
    path : Path
        What was downloaded: a zip archive, a ``.gz`` file or a plain file.
    dataset : Dataset

    Raises
    ------
    WrongContentsError
        If something is damaged or lacking, or a file is not the one that is known.
    MissingDataError
        If a file was written by the program compress, and there is no gzip to read it.
    """
    assert dataset.source is not None
    source = dataset.source
    try:
        if not source.members:
            return [_decompressed(path.name, path.read_bytes())]
        with zipfile.ZipFile(path) as archive:
            names = [find_member(archive.namelist(), member.path) for member in source.members]
            parts = [_decompressed(name, archive.read(name)) for name in names]
    except DAMAGED as error:
        raise WrongContentsError(
            f"{path} cannot be read as what {source.url} should give: {error} "
            "Remove it, so that it is downloaded again."
        ) from error
    for member, part in zip(source.members, parts, strict=True):
        if member.sha256 is not None and hashlib.sha256(part).hexdigest() != member.sha256:
            raise WrongContentsError(
                f"{member.path} in {path} is not the file that is known: its SHA-256 is not "
                f"{member.sha256}."
            )
    return parts


def find_member(names: Sequence[str], wanted: str) -> str:
    """Find a file in an archive: by its path, or by its name in any folder, with or without .Z."""
    if wanted in names:
        return wanted
    stem = PurePosixPath(wanted.removesuffix(".Z")).name
    found = [n for n in names if PurePosixPath(n).name in (stem, f"{stem}.Z")]
    if len(found) != 1:
        listed = ", ".join(names) or "nothing"
        raise KeyError(f"no file {wanted} in the archive, which holds {listed}.")
    return found[0]


def _decompressed(name: str, content: bytes) -> bytes:
    if name.endswith(".Z"):
        return _uncompressed(name, content)
    if name.endswith(".gz"):
        return gzip.decompress(content)
    return content


def _uncompressed(name: str, content: bytes) -> bytes:
    """Read a file of the Unix program compress, which Python cannot read, by the program gzip."""
    command = ["gzip", "-dc"]
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False)
    except OSError as error:
        raise MissingDataError(
            f"{name} was written by the program compress, and the program gzip, which reads such "
            f"files, cannot be run here ({error}). Install gzip."
        ) from error
    if done.returncode:
        raise ValueError(f"gzip cannot read {name}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
