"""Takes over what another copy of the library has found, for example on another machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.instances import library
from lab.instances.compaction import LARGEST_PACKED
from lab.instances.library import Instance
from lab.instances.records import BOUND, Records
from lab.instances.verification import certificate_faults


def merge(other: Path, folder: Path = library.FOLDER) -> Iterator[str]:
    """Keep the better solutions and the higher bounds of another folder; yield what is new.

    The inertia of a solution is computed here, and a certificate is checked here. A bound without
    a certificate is believed.
    """
    for name in library.names(other):
        records, theirs = Records.of(name, folder), library.read(name, other)
        solutions = library.read_solutions(name, other)
        if theirs.digest != records.read().digest:
            raise ValueError(f"{name}: the folders have different samples.")
        for k, one in theirs.instances.items():
            if k not in solutions:
                raise ValueError(f"{name}, k={k}: {other} has no solution.")
            labels = solutions[k][records.samples.places]
            if records.keep(k, labels, one.found_by, one.found_at):
                yield f"{name}:{k} {records.read().instances[k].inertia!r}"
            if one.bound is not None and _keep_bound(records, one, other):
                yield f"{name}:{k} {records.read().instances[k].status}"


def _keep_bound(records: Records, theirs: Instance, other: Path) -> bool:
    before = records.read().instances[theirs.k]
    content = None
    if theirs.certificate and before.inertia == theirs.inertia and not before.certificate:
        content = library.certificate_path(records.name, theirs.k, other).read_bytes()
        for fault in certificate_faults(records.name, theirs, records.samples.X, other):
            raise ValueError(fault)
        if len(content) > LARGEST_PACKED:
            content = None
    bounds = {one: getattr(theirs, one) for one in BOUND}
    records.keep_bound(theirs.k, theirs.inertia, bounds, content)
    return records.read().instances[theirs.k] != before
