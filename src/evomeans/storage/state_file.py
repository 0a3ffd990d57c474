"""A file that keeps the state of a long computation, and for which problem it is."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import Engine, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.path.state import PathState
from evomeans.search import SearchSettings
from evomeans.search.history import SearchObserver
from evomeans.search.levels import level_sizes
from evomeans.search.search import SearchState
from evomeans.storage.archive import Archive, ArchiveError, Arrays, read_archive, write_archive

SECONDS_BETWEEN = 30.0
# Writing takes at most a twentieth of the time, however large the state.
PAUSE_PER_WRITE = 20.0

Problem = Mapping[str, int | str | None]
"""Whatever decides about the course of a search besides its random numbers, by name."""

State = TypeVar("State", SearchState, PathState)


class CheckpointError(ValueError):
    """Raised for a checkpoint that is damaged, or of another problem or format."""


class StateFile(SearchObserver, ABC, Generic[State]):
    """An observer that writes a state now and then; what it consists of is left to subclasses.

    The file is always complete: a new state replaces the old one in a single step. Only a search
    of the same problem, and of the same ``seed`` if there is one, may continue from it. ``every``
    is the seconds between two writes, and ``clock`` measures the time that writing takes.
    """

    format: str
    version: int
    progress: str
    """The field of a state that says how far it is."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: Problem,
        *,
        seed: int | None = None,
        every: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.path = Path(path)
        self.problem = dict(problem)
        self.seed = seed
        self.every = SECONDS_BETWEEN if every is None else every
        self.clock = clock
        self._due = 0.0
        self._written = -1

    @abstractmethod
    def encoded(self, state: State) -> tuple[dict[str, Any], Arrays]:
        """Return a state as a JSON object and arrays."""

    @abstractmethod
    def restored(self, archive: Archive, state: State) -> State:
        """Return the state in an archive, given a new one; refuse what no search can come to."""

    def read_or_write(self, state: State, *, resume: bool = True) -> State:
        """Return the state in the file, if it is to be resumed, or write the new one.

        Writing here shows that it is possible, before there is anything to lose.
        """
        if resume and self.path.exists():
            state = self._read(state)
            self._written, self._due = self._reached(state), state.seconds + self.every
        else:
            self.write(state)
        return state

    def on_round(self, state: State, is_last: bool) -> None:
        """Write the state if it is time to; the last one, unless the file has it."""
        is_due = self._written != self._reached(state) if is_last else state.seconds >= self._due
        if not is_due:
            return
        try:
            self.write(state)
        except OSError as error:
            self._due = state.seconds + self.every
            warnings.warn(
                f"The checkpoint {self.path} could not be written ({error}). The search continues, "
                "and the file, if there was one, is as it was.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _read(self, state: State) -> State:
        try:
            # Only the same version continues a search with the same bits.
            archive = read_archive(self.path, self.format, self.version, oldest=self.version)
            check_problem(archive, self.problem, self.seed)
            return self.restored(archive, state)
        except ArchiveError as error:
            raise CheckpointError(
                f"The checkpoint {self.path} cannot be continued: {error}. Nothing was changed. "
                "Choose another path, or remove the file to begin anew."
            ) from error

    def _reached(self, state: State) -> int:
        return int(getattr(state, self.progress))

    def write(self, state: State) -> None:
        """Write a state."""
        began = self.clock()
        meta, arrays = self.encoded(state)
        meta |= {"problem": self.problem, "seed": self.seed}
        write_archive(self.path, self.format, self.version, meta, arrays)
        self._written = self._reached(state)
        self._due = state.seconds + max(self.every, PAUSE_PER_WRITE * (self.clock() - began))


def check_problem(archive: Archive, problem: Problem, seed: int | None) -> None:
    """Refuse the file of another problem, or of another seed if one is given."""
    stored, ours = {**archive.field("problem", "dict")}, dict(problem)
    if seed is not None:
        stored["random_state"], ours["random_state"] = archive.meta.get("seed"), seed
    differences = []
    for name in sorted(stored.keys() | ours.keys()):
        theirs, own = stored.get(name), ours.get(name)
        if theirs != own:
            is_digest = any(isinstance(one, str) and len(one) == 64 for one in (theirs, own))
            how = f"is {ascii(theirs)[:40]} in the file and {ascii(own)[:40]} now"
            differences.append(f"{name[:40]} {'differs' if is_digest else how}")
    if differences:
        raise ArchiveError(f"it is of another search; {', '.join(differences)}")


def describe_problem(
    engine: Engine,
    X: Any,
    sample_weight: NDArray[np.float64] | None,
    n_clusters: int,
    settings: SearchSettings,
    init: Sequence[NDArray[np.float64]],
) -> Problem:
    """Describe everything that determines the course of a search except its random numbers.

    Large arrays are given by their digests. Criteria that only end a search are left out, and so is
    the number of threads: a search may be continued with others.
    """
    frame = engine.frame
    samples, weights = _digests(engine, X, sample_weight)
    # It may change if it only ends a search.
    wait = settings.longest_wait(n_clusters) if settings.strategy.agreement > 1 else None
    return {
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "dtype": str(X.dtype),
        "layout": "csr" if is_sparse(X) else "blocks" if is_dask(X) else "dense",
        "samples": samples,
        "sample_weight": weights,
        "n_clusters": int(n_clusters),
        "init": digest(*init) if init else None,
        "min_population": settings.min_population,
        "max_population": settings.max_population,
        "roulette_power": settings.roulette_power,
        "strategy": settings.strategy.identity,
        "n_iter_no_change": wait,
        "levels": str(level_sizes(settings, X.shape[0], n_clusters, engine.most_sampled)),
        "batch": engine.batch,
        "frame": digest(frame.shift, np.array(frame.exponent)),
    }


def _digests(engine: Any, X: Any, sample_weight: Any) -> tuple[str, str | None]:
    """Return the digests of the samples and of their weights."""
    if is_dask(X):
        # Block by block, because the sizes of the blocks determine the course too.
        samples, weights = engine.digests(digest)
        return digest(samples), None if weights is None else digest(weights)
    stored = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    return digest(*stored), None if sample_weight is None else digest(sample_weight)


def digest(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the types, shapes and values of arrays."""
    total = hashlib.sha256()
    for values in arrays:
        total.update(f"{values.dtype.str} {values.shape};".encode("ascii"))
        total.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return total.hexdigest()
