"""Certificates that were tampered with: no crash, no false claim that passes verify.

A case certifies a tiny problem, changes figures, arrays, proof or samples, and loads and verifies
what came of it. Only the documented errors may be raised. What passes must be true, by exact
arithmetic over all clusterings.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import evomeans
from evomeans.exact.cases import InvalidProofError
from evomeans.storage.archive import read_archive, write_archive
from evomeans.storage.certificate_file import FORMAT, VERSION
from tests.fuzz import running

CASE_SECONDS = 60.0
# Libraries take half of it; a file of a tiny problem must not make its reader take the rest.
MEMORY = 3 * 2**30
METHODS = ("auto", "relaxation", "plane", "separation", "parts", "direct")
NUMBERS = (0, 1, -1, 2, 7, 10**6, 3 * 10**8, 2**31 - 1, 2**40, 2**50, 2**62, -(2**62))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-300, 1e-9, 0.5, 1e9, 1e160, 1e300, 1.7e308, -1e308)
JSON_VALUES: tuple[Any, ...] = (
    None,
    True,
    [],
    {},
    "",
    "optimal",
    "bounded",
    [1],
    {"a": 1},
    "plane",
)

Samples = tuple[np.ndarray, np.ndarray | None]


def case(rng: np.random.Generator) -> str:
    """Tamper with a certificate once or several times; return what came of it."""
    X, weights, k = drawn_problem(rng)
    try:
        certificate = drawn_certificate(rng, X, weights, k)
    except ValueError:
        return "not certified"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.evomeans"
        evomeans.save_certificate(certificate, path)
        samples: Samples = X, weights
        for _ in range(int(rng.integers(1, 4))):
            tamper = CHANGES[int(rng.integers(len(CHANGES)))]
            samples = tamper(rng, path, samples)
        return judged(path, samples)


def drawn_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None, int]:
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 4)))
    X = X + rng.choice([0.0, 0.0, 50.0, 1e6])
    weights = rng.random(n).round(2) + 0.01 if rng.random() < 0.3 else None
    return X, weights, int(rng.integers(1, n + 1))


def drawn_certificate(
    rng: np.random.Generator, X: np.ndarray, weights: np.ndarray | None, k: int
) -> evomeans.Certificate:
    return evomeans.certify(
        X,
        rng.integers(0, k, len(X)),
        weights,
        n_clusters=k,
        method=METHODS[int(rng.integers(len(METHODS)))],
        max_time=2.0,
        part_size=2,
        constrained=bool(rng.random() < 0.2),
    )


# Judging


def judged(path: Path, samples: Samples) -> str:
    """Load and verify a file; raise if what passes is false."""
    try:
        certificate = evomeans.load_certificate(path)
    except evomeans.CertificateFileError:
        return "file refused"
    said = str(certificate)
    try:
        bound = certificate.verify(*samples)
    except InvalidProofError:
        return "refused by verify"
    except ValueError:
        return "samples refused"
    check_truth(certificate, bound, *samples)
    assert ("Proven optimal" in said) == certificate.is_optimal, said
    return "true"


def check_truth(
    certificate: evomeans.Certificate, bound: float, X: np.ndarray, weights: np.ndarray | None
) -> None:
    """Compare the claims of a verified certificate with exact arithmetic."""
    X, k = np.asarray(X, np.float64), certificate.n_clusters
    w = np.ones(len(X)) if weights is None else np.asarray(weights, np.float64)
    costs = subset_costs(X, w)
    optimum = least_cost(costs, min(k, len(X)))
    assert certificate.n_samples == len(X)
    assert certificate.n_features in (None, X.shape[1])
    # A bound may differ by a share of 1e-9 on another machine.
    slack = 1 + Fraction(3, 10**9)
    assert Fraction(certificate.lower_bound) <= optimum * slack, ("lower bound", float(optimum))
    assert Fraction(bound) <= optimum * slack, ("recomputed bound", bound, float(optimum))
    labels = np.asarray(certificate.labels)
    assert labels.shape == (len(X),)
    assert 0 <= labels.min() <= labels.max() < k
    own = sum(costs[bits_of(labels == label)] for label in set(labels.tolist()))
    assert abs(Fraction(certificate.upper_bound) - own) <= own / 10**9 + rounding(X, w), float(own)
    if certificate.is_optimal:
        assert own <= optimum * (1 + Fraction(2, 10**6)), (float(own), float(optimum))


def rounding(X: np.ndarray, w: np.ndarray) -> Fraction:
    """Return what the means of older versions may add by being rounded to the grid of values."""
    grid = Fraction(64) / 2**53 * Fraction(float(np.abs(X).max()))
    return Fraction(float(w.sum())) * X.shape[1] * grid**2 * len(X) ** 2


def bits_of(members: np.ndarray) -> int:
    return sum(1 << i for i in np.flatnonzero(members).tolist())


def subset_costs(X: np.ndarray, w: np.ndarray) -> list[Fraction]:
    """Return the inertia of every set of samples, by the numbers of their bits."""
    n = len(X)
    rows = [[Fraction(x) for x in row] for row in X.tolist()]
    weights = [Fraction(x) for x in w.tolist()]
    pairs = [
        [sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) for j in range(n)]
        for i in range(n)
    ]
    costs = [Fraction(0)] * (1 << n)
    for bits in range(1, 1 << n):
        inside = [i for i in range(n) if bits >> i & 1 and weights[i] > 0]
        total = sum(weights[i] for i in inside)
        if total:
            scatter = sum(weights[i] * weights[j] * pairs[i][j] for i in inside for j in inside)
            costs[bits] = scatter / (2 * total)
    return costs


def least_cost(costs: list[Fraction], k: int) -> Fraction:
    """Return the least inertia of clusterings of all samples into at most k clusters."""

    @cache
    def least(left: int, clusters: int) -> Fraction:
        if left == 0:
            return Fraction(0)
        if clusters == 1:
            return costs[left]
        lowest = left & -left
        return min(costs[one] + least(left & ~one, clusters - 1) for one in subsets(left, lowest))

    return least(len(costs) - 1, k)


def subsets(of: int, fixed: int) -> Iterator[int]:
    """Yield the sets of bits with the fixed one."""
    rest = of & ~fixed
    part = rest
    while True:
        yield part | fixed
        if part == 0:
            return
        part = (part - 1) & rest


# Tampering


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], Any]) -> None:
    """Write a file again after a change of its figures and arrays, if it can still be read."""
    try:
        archive = read_archive(path, FORMAT, 10**6)
    except ValueError:
        return
    meta, arrays = dict(archive.meta), dict(archive.arrays)
    version = meta.pop("version")
    for name in ("format", "evomeans"):
        meta.pop(name, None)
    change(meta, arrays)
    write_archive(path, FORMAT, version, meta, arrays)


def change_figure(rng: np.random.Generator, path: Path, samples: Samples) -> Samples:
    """Set a field of the JSON text to something else."""

    def change(meta: dict[str, Any], _: object) -> None:
        name = sorted(meta)[int(rng.integers(len(meta)))]
        value = meta[name]
        kind = rng.random()
        if isinstance(value, float) and kind < 0.6:
            factor = rng.choice([0.0, 0.5, 1 - 1e-7, 1 + 1e-7, 1.001, 2.0])
            meta[name] = float(value * factor)
        elif kind < 0.7:
            meta[name] = int(NUMBERS[int(rng.integers(len(NUMBERS)))])
        elif kind < 0.8:
            meta[name] = FLOATS[int(rng.integers(len(FLOATS)))]
        elif kind < 0.85:
            del meta[name]
        else:
            meta[name] = JSON_VALUES[int(rng.integers(len(JSON_VALUES)))]

    rewrite(path, change)
    return samples


def claim_the_optimum(rng: np.random.Generator, path: Path, samples: Samples) -> Samples:
    """State that the clustering is optimal, in one of the ways that might look consistent."""

    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta |= {"status": "optimal", "stop_reason": "proven_optimal", "confidence": None}
        way = int(rng.integers(4))
        if way == 0:
            meta["upper_bound"] = meta.get("lower_bound")
        elif way == 1:
            meta["lower_bound"] = meta.get("upper_bound")
        elif way == 2 and "labels" in arrays:
            arrays["labels"] = rng.permutation(arrays["labels"])
        else:
            meta["n_clusters"] = int(rng.integers(1, 9))

    rewrite(path, change)
    return samples


def change_array(rng: np.random.Generator, path: Path, samples: Samples) -> Samples:
    """Change a few entries of an array, its length, its type, or leave it out."""

    def change(_: object, arrays: dict[str, np.ndarray]) -> None:
        used = sorted(name for name, values in arrays.items() if values.size or rng.random() < 0.1)
        name = used[int(rng.integers(len(used)))]
        values = arrays[name].copy()
        kind = rng.random()
        if kind < 0.65 and values.size:
            places = rng.integers(0, values.size, int(rng.integers(1, 4)))
            values.flat[places] = entries(rng, values, len(places))
        elif kind < 0.75:
            values = values[: int(rng.integers(0, len(values) + 1))]
        elif kind < 0.85:
            values = np.concatenate([values, values])
        elif kind < 0.9:
            values = values.astype(rng.choice(["float64", "int64", "int32", "float32"]))
        elif kind < 0.95:
            del arrays[name]
            return
        elif values.size:
            values = rng.permutation(values)
        arrays[name] = values

    with np.errstate(all="ignore"):
        rewrite(path, change)
    return samples


def entries(rng: np.random.Generator, values: np.ndarray, count: int) -> Any:
    if values.dtype.kind == "f":
        if rng.random() < 0.6:
            return rng.choice(values.ravel(), count) * rng.choice(
                [-1.0, 0.5, 1.01, 2.0, 1e3], count
            )
        return rng.choice(FLOATS, count)
    limits = np.iinfo(values.dtype)
    chosen = [NUMBERS[int(i)] for i in rng.integers(len(NUMBERS), size=count)]
    if rng.random() < 0.6:
        chosen = rng.integers(-1, 9, count).tolist()
    return np.clip(chosen, limits.min, limits.max)


def add_an_array(rng: np.random.Generator, path: Path, samples: Samples) -> Samples:
    """Add parts, of which most proofs have none, or steps."""

    def change(_: object, arrays: dict[str, np.ndarray]) -> None:
        n = len(samples[0])
        arrays["parts"] = rng.integers(0, int(rng.integers(1, 4)), n)
        arrays["kinds"] = rng.integers(0, 5, int(rng.integers(1, 5)))
        arrays["separated_labels"] = rng.integers(0, 3, 2 * n)

    rewrite(path, change)
    return samples


def change_version(rng: np.random.Generator, path: Path, samples: Samples) -> Samples:
    """Pretend that an older version wrote the file."""
    archive = read_text(path)
    if archive is not None:
        archive["version"] = int(rng.integers(1, VERSION + 1))
        write_text(path, archive)
    return samples


def read_text(path: Path) -> dict[str, Any] | None:
    with zipfile.ZipFile(path) as file:
        meta = json.loads(file.read("meta.json"))
    return meta if isinstance(meta, dict) else None


def write_text(path: Path, meta: dict[str, Any]) -> None:
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["meta.json"] = json.dumps(meta).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name), data)


def change_samples(rng: np.random.Generator, path: Path, samples: Samples) -> Samples:
    """Verify with other samples or weights than those of the proof."""
    X, weights = samples
    n, d = X.shape
    kind = int(rng.integers(8))
    if kind == 0:
        X = 2 * X
    elif kind == 1:
        X = X[:, :1]
    elif kind == 2:
        X = np.c_[X, rng.integers(0, 2, n)]
    elif kind == 3:
        X = rng.permutation(X)
    elif kind == 4:
        X = X + rng.choice([1e-9, 1e-3, 1.0]) * rng.normal(size=(n, d))
    elif kind == 5 and n > 2:
        X, weights = X[:-1], None
    elif kind == 6:
        weights = rng.random(n)
    else:
        X = np.round(rng.normal(size=(n, d)), 1)
    return X, weights


CHANGES = (
    *(change_figure, change_figure, claim_the_optimum, claim_the_optimum),
    *(change_array, change_array, change_array, change_array),
    *(add_an_array, change_version, change_samples, change_samples),
)

run = partial(running.run, "tests.fuzz.certificate_files")

if __name__ == "__main__":
    sys.exit(running.main("tests.fuzz.certificate_files"))
