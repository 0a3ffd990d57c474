"""Searches for better solutions and higher bounds, which write what they have found."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
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
    return records.keep(k, labels, by, commit(), is_search=True)


def prove(records: Records, k: int, seconds: float) -> None:
    """Look for a proof, and keep its bound if it is higher, with its certificate if it is small."""
    labels, X = records.labels(k), records.samples.X
    found = evomeans.certify(X, labels, n_clusters=k, max_time=seconds, gap=PROOF_GAP)
    if found.improved:
        if records.keep(k, found.labels, f"certify, method {found.method}", commit()):
            prove(records, k, seconds)
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


@dataclass(frozen=True)
class Effort:
    """What is spent on an instance.

    Parameters
    ----------
    seconds, proof_seconds : float
        For each search, and for the proof; without them nothing is searched, or proven.
    seeds, strategies : sequence
        All pairs of them are tried.
    """

    seconds: float
    proof_seconds: float = 0.0
    seeds: Sequence[int] = (0,)
    strategies: Sequence[str] = ("deep",)


@lru_cache(maxsize=2)
def records_of(name: str, folder: Path) -> Records:
    """Load a data set once for all of its instances."""
    return Records.of(name, folder)


def improve_one(name: str, k: int, effort: Effort, folder: Path, ends: float) -> tuple[int, str]:
    """Search an instance and prove it; return how many values are lower, and what to say."""
    if time.time() > ends:
        return 0, f"time was up before {name}:{k}"
    records = records_of(name, folder)
    if k >= len(records.samples.rows):
        return 0, f"{name}:{k} has only {len(records.samples.rows)} distinct samples"
    before, better = records.read().instances.get(k), 0
    if effort.seconds > 0:
        for seed, strategy in product(effort.seeds, effort.strategies):
            if time.time() < ends:
                better += search(records, k, strategy, seed, effort.seconds)
    instance = records.read().instances.get(k)
    if instance is None:
        return 0, f"{name}:{k} has no solution yet"
    limit = min(effort.proof_seconds, ends - time.time())
    if limit > 0 and instance.status != library.PROVEN:
        prove(records, k, limit)
        instance = records.read().instances[k]
    is_lower = before is not None and instance.inertia < before.inertia
    was = f", was {before.inertia!r}" if before is not None and is_lower else ""
    return better, f"{name}:{k} {instance.inertia!r} {instance.status}{was}"


def improve(
    instances: Sequence[str],
    effort: Effort,
    *,
    minutes: float,
    processes: int = 1,
    folder: Path = library.FOLDER,
) -> int:
    """Search and prove every instance; print what comes of it and return how many are lower.

    Every step writes what it has found, so it can be interrupted at any time. Several processes
    work on an instance each.
    """
    ends, better = time.time() + 60 * minutes, 0
    tasks = [(name, k, effort, folder, ends) for name, ks in wanted(instances) for k in ks]
    with ExitStack() as stack:
        run: Callable[..., Iterable[tuple[int, str]]] = map
        if processes > 1:
            run = stack.enter_context(ProcessPoolExecutor(processes, get_context("spawn"))).map
        for count, text in run(improve_one, *zip(*tasks, strict=True)):
            better += count
            print(text, flush=True)
    return better
