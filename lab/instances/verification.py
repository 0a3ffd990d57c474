"""Everything that the library says, computed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lab.instances import library
from lab.instances.catalogue import samples_of
from lab.instances.exact import ExactSamples, rounded
from lab.instances.library import Instance
from lab.instances.records import printed_elsewhere

LITERATURE = ("literature", "literature_source", "literature_why")


def faults(name: str, folder: Path = library.FOLDER) -> Iterator[str]:
    """Yield a sentence for everything about a data set that is not true."""
    data = library.read(name, folder)
    samples = samples_of(name, data.digest)
    shape = (*samples.X.shape, len(samples.rows))
    if shape != (data.samples, data.features, data.distinct):
        yield f"{name}: its samples, features and distinct samples are {shape}."
    exact = ExactSamples(samples.X)
    solutions = library.read_solutions(name, folder)
    for k in sorted(solutions.keys() - data.instances.keys()):
        yield f"{name}: there is a solution for k={k} and no instance."
    for k, instance in data.instances.items():
        where = f"{name}, k={k}"
        if k not in solutions:
            yield f"{where}: there is no solution."
            continue
        labels = solutions[k]
        if labels.shape != (data.distinct,) or len(np.unique(labels)) > k or labels.dtype != "u1":
            yield f"{where}: the solution is not one of {data.distinct} labels below {k}."
            continue
        found = rounded(exact.inertia(labels[samples.places]))
        if found != instance.inertia:
            yield f"{where}: the solution has the inertia {found!r}, not {instance.inertia!r}."
        if instance.bound is not None and not 0 <= instance.bound <= instance.inertia:
            yield f"{where}: the bound {instance.bound!r} is not within 0 and the inertia."
        stated = {one: getattr(instance, one) for one in LITERATURE if getattr(instance, one)}
        if stated != (expected := printed_elsewhere(name, k, instance.inertia)):
            yield f"{where}: the printed value should be {expected or 'left out'}."
        if instance.certificate:
            yield from certificate_faults(name, instance, samples.X, folder)


def certificate_faults(name: str, instance: Instance, X: np.ndarray, folder: Path) -> Iterator[str]:
    """Yield a sentence for everything about a certificate that is not true."""
    where = f"{name}, k={instance.k}"
    path = library.certificate_path(name, instance.k, folder)
    try:
        certificate = library.unpacked(path.read_bytes())
        bound = certificate.verify(X)
    except Exception as error:  # whatever a damaged file does, it is a fault of that file
        yield f"{where}: the certificate does not hold: {error}"
        return
    if certificate.n_clusters != instance.k or not certificate.is_optimal:
        yield f"{where}: the certificate does not prove an optimum for k={instance.k}."
    stated = instance.bound or 0.0
    if not bound >= stated * (1 - 1e-9):
        yield f"{where}: the certificate proves the bound {bound!r}, not {stated!r}."
    if not abs(certificate.upper_bound - instance.inertia) <= 1e-9 * instance.inertia:
        yield f"{where}: the certificate speaks of the inertia {certificate.upper_bound!r}."
