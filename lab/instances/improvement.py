"""Searches for better solutions and higher bounds, which write what they have found."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import evomeans
from lab.instances import library
from lab.instances.catalogue import sources
from lab.instances.compaction import compact
from lab.instances.records import Records
from lab.revisions import ROOT

PROOF_GAP = 5e-7
"""Half of what counts as optimal, so that multipliers can be rounded."""


def commit() -> str:
    """Return the last commit that changed the package."""
    command = ["git", "log", "-1", "--format=%h", "--", "src"]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def search(records: Records, k: int, strategy: str, seed: int, seconds: float) -> bool:
    """Search once, and keep what is better; say whether it is."""
    model = evomeans.HGMeans(k, strategy=strategy, random_state=seed, max_time=seconds)
    labels = model.fit(records.samples.X).labels_
    by = f"HGMeans, strategy={strategy!r}, random_state={seed}, max_time={seconds:g}"
    return records.keep(k, labels, by, commit())


def prove(records: Records, k: int, seconds: float) -> None:
    """Look for a proof, and keep its bound if it is higher, with its certificate if it is small."""
    labels, X = records.labels(k), records.samples.X
    found = evomeans.certify(X, labels, n_clusters=k, max_time=seconds, gap=PROOF_GAP)
    if found.improved:
        if records.keep(k, found.labels, f"certify, method {found.method}", commit()):
            prove(records, k, seconds)
        return
    if found.confidence is not None:
        return
    content = None
    if found.is_optimal:
        found, content = compact(found, X)
    bounds = {
        "bound": found.lower_bound,
        "bound_method": found.method,
        "bound_seconds": round(found.seconds, 2),
        "bound_at": commit(),
    }
    records.keep_bound(k, records.inertia(labels), bounds, content)


def wanted(instances: Sequence[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield data sets and numbers of clusters: those of ``iris:3``, or all of ``iris``."""
    for one in instances:
        name, _, k = one.partition(":")
        if name not in sources():
            raise ValueError(f"no data set {name!r}; expected {', '.join(sources())}")
        if k and not (k.isdecimal() and 2 <= int(k) <= 256):
            raise ValueError(f"k={k!r} of {one!r} should be an integer from 2 to 256")
        yield name, (int(k),) if k else sources()[name].clusters


def improve(
    instances: Sequence[str],
    *,
    minutes: float,
    seconds: float,
    proof_seconds: float = 0.0,
    seeds: Sequence[int] = (0,),
    strategies: Sequence[str] = ("deep",),
    folder: Path = library.FOLDER,
) -> int:
    """Search every instance with all strategies and seeds, then prove; return how many are lower.

    Every step writes what it has found, so it can be interrupted at any time. Without ``seconds``
    nothing is searched, and without ``proof_seconds`` nothing is proven.
    """
    ends, better = time.monotonic() + 60 * minutes, 0
    for name, clusters in wanted(instances):
        records = Records.of(name, folder)
        for k in clusters:
            if time.monotonic() > ends:
                print(f"time is up before {name}:{k}", flush=True)
                return better
            if k >= len(records.samples.rows):
                continue
            before = records.read().instances.get(k)
            if seconds > 0:
                for seed, strategy in product(seeds, strategies):
                    better += search(records, k, strategy, seed, seconds)
            instance = records.read().instances.get(k)
            if instance is None:
                print(f"{name}:{k} has no solution yet", flush=True)
                continue
            if proof_seconds > 0 and instance.status != library.PROVEN:
                prove(records, k, proof_seconds)
                instance = records.read().instances[k]
            is_lower = before is not None and instance.inertia < before.inertia
            was = f", was {before.inertia!r}" if before is not None and is_lower else ""
            print(f"{name}:{k} {instance.inertia!r} {instance.status}{was}", flush=True)
    return better
