"""The records of a data set, which any number of processes may change at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.best_known import all_known
from lab.data.locking import exclusive
from lab.data.verification import digest
from lab.instances import library
from lab.instances.catalogue import Samples, samples_of, sources
from lab.instances.exact import ExactSamples, rounded
from lab.instances.library import DataFile, Instance

BOUND = ("bound", "bound_method", "bound_seconds", "bound_at")


@dataclass(frozen=True)
class Records:
    """A data set of the library with its samples.

    Files are read again before every change, under a lock, so no process overwrites the record of
    another one.

    Parameters
    ----------
    name : str
    samples : Samples
    exact : ExactSamples
        Of the same samples.
    folder : Path
        Of the library.
    """

    name: str
    samples: Samples
    exact: ExactSamples
    folder: Path = library.FOLDER

    @classmethod
    def of(cls, name: str, folder: Path = library.FOLDER) -> Records:
        """Load a data set; it need not have a file yet."""
        expected = library.read(name, folder).digest if name in library.names(folder) else None
        samples = samples_of(name, expected)
        return cls(name, samples, ExactSamples(samples.X), folder)

    def read(self) -> DataFile:
        """Return what the library says, or an empty file if it does not have the data set."""
        if self.name in library.names(self.folder):
            return library.read(self.name, self.folder)
        source, (n, d) = sources()[self.name], self.samples.X.shape
        sizes = (n, d, len(self.samples.rows), digest(self.samples.X))
        return DataFile(self.name, source.title, *sizes, source.origin, source.licence)

    def labels(self, k: int) -> NDArray[np.int64]:
        """Return the labels of all samples in the best known solution."""
        solution = library.read_solutions(self.name, self.folder)[k]
        return solution[self.samples.places].astype(np.int64)

    def inertia(self, labels: NDArray[Any]) -> float:
        """Return the inertia of labels of all samples, rounded once."""
        return rounded(self.exact.inertia(np.unique(labels, return_inverse=True)[1]))

    @contextmanager
    def _locked(self) -> Iterator[DataFile]:
        with exclusive(self.folder / ".locks" / f"{self.name}.lock"):
            yield self.read()

    def keep(
        self,
        k: int,
        labels: NDArray[Any],
        found_by: str,
        found_at: str,
        *,
        is_search: bool = False,
    ) -> bool:
        """Keep a solution if it is better than the one that is known; say whether it is.

        A search that finds nothing better is counted.
        """
        solution = canonical_labels(self.samples, labels)
        inertia = self.inertia(solution[self.samples.places])
        with self._locked() as data:
            known = data.instances.get(k)
            if known is not None and inertia >= known.inertia:
                searched = replace(known, searches=known.searches + is_search)
                library.write(data.with_instance(searched), self.folder)
                return False
            bounds: dict[str, Any] = {}
            if known is not None and known.bound is not None:
                # The bound is still true; a certificate speaks of the solution that is replaced.
                library.certificate_path(self.name, k, self.folder).unlink(missing_ok=True)
                bounds = {one: getattr(known, one) for one in BOUND}
            literature = printed_elsewhere(self.name, k, inertia)
            instance = Instance(k, inertia, found_by, found_at, **bounds, **literature)
            solutions = {**library.read_solutions(self.name, self.folder), k: solution}
            library.write_solutions(self.name, solutions, self.folder)
            library.write(data.with_instance(instance), self.folder)
        return True

    def keep_bound(
        self, k: int, inertia: float, bounds: dict[str, Any], certificate: bytes | None
    ) -> None:
        """Keep a bound if it is higher or comes with the first certificate.

        The certificate speaks of the solution with this inertia; if another process has found a
        better one meanwhile, only the bound is kept.
        """
        with self._locked() as data:
            known = data.instances[k]
            content = certificate if known.inertia == inertia else None
            is_first = content is not None and not known.certificate
            if not is_first and (known.certificate or bounds["bound"] <= (known.bound or 0.0)):
                return
            bounds = {**bounds, "bound": min(bounds["bound"], known.inertia)}
            if content is not None:
                path = library.certificate_path(self.name, k, self.folder)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            found = replace(known, **bounds, certificate=content is not None)
            library.write(data.with_instance(found), self.folder)


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


def printed_elsewhere(name: str, k: int, inertia: float) -> dict[str, str]:
    """Return the lowest printed value, its source and why it differs; nothing if it does not."""
    known = all_known().get((name, k))
    if known is None or known.literature is None:
        return {}
    printed = known.literature
    if abs(printed.value - inertia) <= printed.rounding:
        return {}
    percent = 100 * (printed.value / inertia - 1)
    why = f"{percent:.2g} % above the solution of the library, so it is not the optimum"
    if printed.value < inertia:
        why = f"{-percent:.2g} % below; its solution is not published, so it cannot be checked"
    return {
        "literature": repr(printed.value),
        "literature_source": known.literature_source,
        "literature_why": why,
    }
