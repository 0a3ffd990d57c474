"""Searches for better solutions and higher bounds, which write what they have found."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evomeans
from evomeans.exact.cases import InvalidProofError
from evomeans.exact.plane_proof import PlaneProof
from evomeans.exact.tree import TreeProof
from lab.best_known import all_known
from lab.data.verification import digest
from lab.instances import library
from lab.instances.catalogue import Samples, samples_of, sources
from lab.instances.exact import ExactSamples, rounded
from lab.instances.library import DataFile, Instance
from lab.revisions import ROOT

LARGEST_PACKED = 500_000
"""Bytes of a certificate that is kept; a larger one only leaves its bound."""
BITS = (16, 20, 24, 28, 53)
"""Bits of rounded multipliers, relative to the largest; the coarsest that still prove it count."""


def commit() -> str:
    """Return the last commit that changed the package."""
    command = ["git", "log", "-1", "--format=%h", "--", "src"]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def data_file(name: str, folder: Path) -> tuple[DataFile, Samples]:
    """Return the file of a data set, a new one if there is none, and its samples."""
    if (folder / f"{name}.json").exists():
        data = library.read(name, folder)
        return data, samples_of(name, data.digest)
    source, samples = sources()[name], samples_of(name)
    n, d = samples.X.shape
    sizes = (n, d, len(samples.rows), digest(samples.X))
    return DataFile(name, source.title, *sizes, source.origin, source.licence), samples


def canonical_labels(samples: Samples, labels: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the labels of the distinct rows, numbered in the order of their first appearance.

    Equal samples with different labels all get the one whose mean is nearest.
    """
    _, labels = np.unique(labels, return_inverse=True)
    sizes = np.bincount(labels)
    means = np.zeros((len(sizes), samples.X.shape[1]))
    np.add.at(means, labels, samples.X)
    means /= sizes[:, None]
    distances = np.square(samples.X - means[labels]).sum(axis=1)
    order = np.lexsort((distances, samples.places))
    _, first = np.unique(samples.places[order], return_index=True)
    found = labels[order[first]]
    _, appears, places = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(appears))[places].astype(np.uint8)


def record(
    data: DataFile,
    samples: Samples,
    exact: ExactSamples,
    k: int,
    labels: NDArray[Any],
    found_by: str,
    found_at: str,
    folder: Path,
) -> tuple[DataFile, bool]:
    """Keep a solution if it is better than the one that is known; also say whether it is."""
    solution = canonical_labels(samples, labels)
    inertia = rounded(exact.inertia(solution[samples.places]))
    known = data.instances.get(k)
    if known is not None and inertia >= known.inertia:
        return data, False
    bounds: dict[str, Any] = {}
    if known is not None and known.bound is not None:
        # The bound is still true; a certificate speaks of the solution that is replaced.
        library.certificate_path(data.name, k, folder).unlink(missing_ok=True)
        bounds = {
            one: getattr(known, one)
            for one in ("bound", "bound_method", "bound_seconds", "bound_at")
        }
    instance = Instance(
        k, inertia, found_by, found_at, **bounds, **_literature(data.name, k, inertia)
    )
    solutions = {**library.read_solutions(data.name, folder), k: solution}
    library.write_solutions(data.name, solutions, folder)
    data = data.with_instance(instance)
    library.write(data, folder)
    return data, True


def _literature(name: str, k: int, inertia: float) -> dict[str, str]:
    known = all_known().get((name, k))
    if known is None or known.literature is None:
        return {}
    if abs(known.literature.value - inertia) <= known.literature.rounding:
        return {}
    return {
        "literature": repr(known.literature.value),
        "literature_source": known.literature_source,
    }


def search(
    data: DataFile,
    samples: Samples,
    exact: ExactSamples,
    k: int,
    seed: int,
    seconds: float,
    folder: Path,
    strategy: str = "deep",
) -> tuple[DataFile, bool]:
    """Search once, and keep what is better."""
    model = evomeans.HGMeans(k, strategy=strategy, random_state=seed, max_time=seconds)
    labels = model.fit(samples.X).labels_
    by = f"HGMeans, strategy={strategy!r}, random_state={seed}"
    return record(data, samples, exact, k, labels, by, commit(), folder)


def prove(
    data: DataFile, samples: Samples, exact: ExactSamples, k: int, seconds: float, folder: Path
) -> DataFile:
    """Look for a proof, and keep its bound if it is higher, with its certificate if it is small."""
    known = data.instances[k]
    labels = library.read_solutions(data.name, folder)[k][samples.places].astype(np.int64)
    found = evomeans.certify(samples.X, labels, n_clusters=k, max_time=seconds, gap=2e-7)
    if found.improved:
        by = f"certify, method {found.method}"
        data, _ = record(data, samples, exact, k, found.labels, by, commit(), folder)
        return prove(data, samples, exact, k, seconds, folder)
    is_higher = found.lower_bound > (known.bound or 0.0)
    is_new_proof = found.is_optimal and not known.certificate
    if found.confidence is not None or not (is_higher or is_new_proof):
        return data
    content = None
    if found.is_optimal:
        found, content = compact(found, samples)
    if content is not None:
        path = library.certificate_path(data.name, k, folder)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    bound = min(found.lower_bound, known.inertia)
    method, took = found.method, round(found.seconds, 2)
    data = data.with_instance(
        replace(
            known,
            bound=bound,
            bound_method=method,
            bound_seconds=took,
            bound_at=commit(),
            certificate=content is not None,
        )
    )
    library.write(data, folder)
    return data


def compact(certificate: Any, samples: Samples) -> tuple[Any, bytes | None]:
    """Round the multipliers of a proof as coarsely as it stays one; None if it stays too large.

    Any multipliers prove some bound, and what the rounded ones prove is computed again.
    """
    if not isinstance(certificate.proof, TreeProof | PlaneProof):
        content = library.packed(certificate)
        return certificate, content if len(content) <= LARGEST_PACKED else None
    for bits in BITS:
        steps = tuple(_rounded_step(step, bits) for step in certificate.proof.steps)
        proof = replace(certificate.proof, steps=steps)
        open_one = replace(
            certificate, proof=proof, lower_bound=0.0, status="bounded", stop_reason="gap_reached"
        )
        try:
            lower = min(open_one.verify(samples.X), certificate.upper_bound)
        except InvalidProofError:  # a step no longer decides what later steps rely on
            continue
        if certificate.upper_bound - lower <= 0.9e-6 * certificate.upper_bound:
            rounded_one = replace(certificate, proof=proof, lower_bound=lower)
            content = library.packed(rounded_one)
            if len(content) <= LARGEST_PACKED:
                return rounded_one, content
            break
    return certificate, None


def _rounded_step(step: Any, bits: int) -> Any:
    given = step.multipliers
    if given is None:
        return step
    if isinstance(given, np.ndarray):
        return replace(step, multipliers=_rounded(given, np.abs(given).max(initial=0.0), bits))
    largest = np.abs(given.slack).max(initial=0.0)
    prices = _rounded(given.prices, largest, bits)
    kept = prices > 0
    multipliers = replace(
        given,
        slack=_rounded(given.slack, largest, bits),
        prices=prices[kept],
        cuts=np.ascontiguousarray(given.cuts[kept]),
    )
    return replace(step, multipliers=multipliers)


def _rounded(values: Any, largest: float, bits: int) -> Any:
    if largest == 0:
        return values
    unit = np.ldexp(1.0, int(np.frexp(largest)[1]) - bits)
    return np.round(values / unit) * unit


def improve(
    chosen: list[str],
    *,
    minutes: float,
    seconds: float,
    proof_seconds: float,
    seed: int,
    folder: Path = library.FOLDER,
    clusters: list[int] | None = None,
) -> int:
    """Search every instance of some data sets, then prove; return how many values are lower.

    Every step writes what it has found, so that it can be interrupted at any time.
    """
    ends, better = time.monotonic() + 60 * minutes, 0
    for name in chosen:
        if time.monotonic() > ends:
            print(f"time is up before {name}", flush=True)
            break
        data, samples = data_file(name, folder)
        exact = ExactSamples(samples.X)
        for k in clusters or sources()[name].clusters:
            if k >= len(samples.rows) or time.monotonic() > ends:
                continue
            before = data.instances.get(k)
            data, is_better = search(data, samples, exact, k, seed, seconds, folder)
            better += is_better
            instance = data.instances[k]
            if proof_seconds > 0 and instance.status != library.PROVEN:
                data = prove(data, samples, exact, k, proof_seconds, folder)
                instance = data.instances[k]
            was = "" if before is None or not is_better else f", was {before.inertia!r}"
            print(f"{name}:{k} {instance.inertia!r} {instance.status}{was}", flush=True)
    return better
