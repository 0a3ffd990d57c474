"""The files of the library: one JSON file per data set, its solutions and its certificates."""

from __future__ import annotations

import json
import lzma
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.certificate import Certificate
from evomeans.files import write_atomically
from evomeans.storage.certificate_file import load_certificate, save_certificate

FOLDER = Path(__file__).parent
LARGEST_CERTIFICATE = 1 << 28
"""Bytes of a certificate when it is unpacked."""
WORDS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2}]
"""How certificates are compressed; words of four bytes take 3 % less than plain bytes."""
PROVEN, GAP, OPEN = "proven", "gap", "open"
OPTIMAL_GAP = 1e-6


@dataclass(frozen=True)
class Instance:
    """What is known of a data set and a number of clusters.

    Parameters
    ----------
    k : int
    inertia : float
        Of the solution: the float64 nearest to the exact sum of squared distances of the samples
        to the exact means of their clusters.
    found_by, found_at : str
        The method and the commit that found the solution.
    searches : int
        How many searches came to no lower inertia, the one that found it included; at least.
    bound : float or None
        No clustering has a lower inertia.
    bound_method, bound_seconds, bound_at
        How the bound was proven, in how many seconds, and at which commit.
    certificate : bool
        Whether the library holds the proof of the bound.
    literature : str or None
        The lowest printed value, if it differs from the inertia by more than its last digit.
    literature_source, literature_why : str or None
        Where it is printed, and why it differs.
    """

    k: int
    inertia: float
    found_by: str
    found_at: str
    searches: int = 1
    bound: float | None = None
    bound_method: str | None = None
    bound_seconds: float | None = None
    bound_at: str | None = None
    certificate: bool = False
    literature: str | None = None
    literature_source: str | None = None
    literature_why: str | None = None

    @property
    def gap(self) -> float | None:
        """The share of the inertia by which the optimum can be lower at most."""
        return None if self.bound is None else max(0.0, 1 - self.bound / self.inertia)

    @property
    def status(self) -> str:
        """Whether the value is proven here, bounded, or open."""
        if self.gap is None:
            return OPEN
        return PROVEN if self.certificate and self.gap <= OPTIMAL_GAP else GAP


@dataclass(frozen=True)
class DataFile:
    """A data set and its instances."""

    name: str
    title: str
    samples: int
    features: int
    distinct: int
    digest: str
    origin: str
    licence: str
    instances: Mapping[int, Instance] = field(default_factory=dict)

    def with_instance(self, instance: Instance) -> DataFile:
        """Return the data set with one instance added or replaced."""
        found = {**self.instances, instance.k: instance}
        return replace(self, instances=dict(sorted(found.items())))


def names(folder: Path = FOLDER) -> list[str]:
    """Return the data sets that have a file."""
    return sorted(path.stem for path in folder.glob("*.json"))


def read(name: str, folder: Path = FOLDER) -> DataFile:
    """Read the file of a data set; refuse one that contradicts itself."""
    path = folder / f"{name}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    found: dict[int, Instance] = {}
    for row in content.pop("instances"):
        status = row.pop("status")
        instance = Instance(**row)
        if instance.status != status:
            raise ValueError(
                f"{path.name}: k={instance.k} is called {status!r}, and its bound and certificate "
                f"make it {instance.status!r}."
            )
        if instance.k in found:
            raise ValueError(f"{path.name} has two entries for k={instance.k}.")
        found[instance.k] = instance
    return DataFile(**content, instances=found)


def write(data: DataFile, folder: Path = FOLDER) -> None:
    """Write the file of a data set, an instance per line."""
    head = {key: value for key, value in asdict(data).items() if key != "instances"}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n".join(f"    {json.dumps(_row(one))}" for one in data.instances.values())
    text = "\n".join(["{", *lines, f'  "instances": [\n{rows}\n  ]', "}", ""])
    write_atomically(folder / f"{data.name}.json", text.encode())


def _row(instance: Instance) -> dict[str, Any]:
    row = {key: value for key, value in asdict(instance).items() if value is not None}
    return {"k": row.pop("k"), "inertia": row.pop("inertia"), "status": instance.status, **row}


def read_solutions(name: str, folder: Path = FOLDER) -> dict[int, NDArray[np.uint8]]:
    """Return the labels of the distinct rows in canonical order, by the number of clusters."""
    path = folder / "solutions" / f"{name}.npz"
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return {int(key[1:]): stored[key] for key in stored.files}


def write_solutions(
    name: str, solutions: Mapping[int, NDArray[np.uint8]], folder: Path = FOLDER
) -> None:
    """Write the labels of a data set."""
    (folder / "solutions").mkdir(exist_ok=True)
    arrays: dict[str, Any] = {f"k{k}": solutions[k] for k in sorted(solutions)}
    path = folder / "solutions" / f"{name}.npz"
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))


def certificate_path(name: str, k: int, folder: Path = FOLDER) -> Path:
    """Return where the certificate of an instance is."""
    return folder / "certificates" / f"{name}-{k}.xz"


def packed(certificate: Certificate) -> bytes:
    """Return a certificate file, compressed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate"
        save_certificate(certificate, path)
        return lzma.compress(path.read_bytes(), filters=WORDS)


def unpacked(content: bytes) -> Certificate:
    """Return the certificate in a compressed file."""
    decompressor = lzma.LZMADecompressor(memlimit=1 << 30)
    plain = decompressor.decompress(content, LARGEST_CERTIFICATE)
    if not decompressor.eof:
        raise ValueError(f"it unpacks to more than {LARGEST_CERTIFICATE} bytes, or is cut off")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate"
        path.write_bytes(plain)
        return load_certificate(path)
