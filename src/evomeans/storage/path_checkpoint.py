"""A path that survives its process; docs/checkpoints.md describes file and guarantees."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.path.state import Entry, PathState
from evomeans.search.individual import Individual
from evomeans.storage.archive import Archive, ArchiveError, read_archive, write_archive
from evomeans.storage.arrays import Arrays
from evomeans.storage.checkpoint import (
    PAUSE_PER_WRITE,
    SECONDS_BETWEEN,
    CheckpointError,
    Problem,
    check_problem,
    check_version,
)

FORMAT = "evomeans path checkpoint"
VERSION = 2
LISTS = ("members", "up", "down")


class PathCheckpoint:
    """Keeps the state of a path in a file, and continues from it.

    A step that was interrupted is made again from its beginning, with the same random numbers: so
    a path that continues ends with the same bits as one that was never interrupted.

    Parameters
    ----------
    path : path-like
        The file. It is always complete: a new state replaces the old one in a single step.
    problem : mapping
        Only a path of the same problem may continue from the file.
    seed : int, optional
        If given, the path in the file must have begun with it.
    every : float, optional
        Seconds between two writes, by the clock of the path.
    clock : callable
        Seconds, for the time that writing takes.
    """

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

    def begin(self, state: PathState, *, resume: bool = True) -> PathState:
        """Return the state in the file, or write the new one if there is no file.

        Without ``resume``, the state at hand replaces that in the file.
        """
        if not resume or not self.path.exists():
            self._due = self._write(state)
            return state
        try:
            archive = read_archive(self.path, FORMAT, VERSION)
            check_version(archive, VERSION)
            check_problem(archive, self.problem, self.seed)
            state = restored(archive, state.ks)
        except ArchiveError as error:
            raise CheckpointError(
                f"The checkpoint {self.path} cannot be continued: {error}. Nothing was changed. "
                "Choose another path, or remove the file to begin anew."
            ) from error
        self._written, self._due = state.n_steps, state.seconds + self.every
        return state

    def keep(self, state: PathState) -> None:
        """Write the state if it is time to."""
        if state.seconds >= self._due:
            self._try_to_write(state)

    def end(self, state: PathState) -> None:
        """Write the last state, unless the file has it."""
        if self._written != state.n_steps:
            self._try_to_write(state)

    def _try_to_write(self, state: PathState) -> None:
        """Write; if that fails, say so, and let the search continue."""
        try:
            self._due = state.seconds + self._write(state)
        except OSError as error:
            self._due = state.seconds + self.every
            warnings.warn(
                f"The checkpoint {self.path} could not be written ({error}). The search continues, "
                "and the file, if there was one, is as it was.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _write(self, state: PathState) -> float:
        """Write the state, and return how many seconds to wait before the next time."""
        began = self.clock()
        meta, arrays = stored(state)
        meta |= {"problem": self.problem, "seed": self.seed}
        write_archive(self.path, FORMAT, VERSION, meta, arrays)
        self._written = state.n_steps
        return max(self.every, PAUSE_PER_WRITE * (self.clock() - began))


def stored(state: PathState) -> tuple[dict[str, Any], Arrays]:
    """Return a state as a JSON object and arrays; every solution is stored once."""
    places: dict[int, int] = {}
    solutions: list[Individual] = []

    def place(one: Individual) -> int:
        if id(one) not in places:
            places[id(one)] = len(solutions)
            solutions.append(one)
        return places[id(one)]

    entries = {
        str(k): {
            **{name: [place(one) for one in getattr(entry, name)] for name in LISTS},
            "alone": entry.alone,
            "is_united": entry.is_united,
            "n_fresh": entry.n_fresh,
            "n_solutions": entry.n_solutions,
            "tested": [[j, inertia] for j, inertia in entry.tested.items()],
        }
        for k, entry in state.entries.items()
    }
    meta = {
        "ks": state.ks,
        "entropy": state.entropy,
        "n_steps": state.n_steps,
        "seconds": state.seconds,
        "entries": entries,
    }
    d = solutions[0].centers.shape[1] if solutions else 0
    arrays = {
        "solution_k": np.array([len(one.centers) for one in solutions], np.int64),
        "solution_inertia": np.array([one.inertia for one in solutions], np.float64),
        "solution_alpha": np.array([one.alpha for one in solutions], np.float64),
        "centers": np.concatenate([np.empty((0, d)), *(one.centers for one in solutions)]),
        "cluster_weights": np.concatenate(
            [np.empty(0), *(one.cluster_weights for one in solutions)]
        ),
    }
    return meta, arrays


def restored(archive: Archive, ks: list[int]) -> PathState:
    """Return the state that an archive holds, unless anything is wrong with it."""
    archive.expect(
        ["solution_k", "solution_inertia", "solution_alpha", "centers", "cluster_weights"]
    )
    counts = archive.array("solution_k", "int64", (None,), low=1).tolist()
    p, rows = len(counts), sum(counts)
    inertias = archive.array("solution_inertia", "float64", (p,), low=0.0).tolist()
    alphas = archive.array("solution_alpha", "float64", (p,), low=0.0, high=1.0).tolist()
    centers = archive.array("centers", "float64", (rows, None))
    weights = archive.array("cluster_weights", "float64", (rows,), low=0.0)
    ends = np.cumsum(counts).tolist()
    solutions = [
        Individual(centers[end - k : end].copy(), inertia, weights[end - k : end].copy(), alpha)
        for k, end, inertia, alpha in zip(counts, ends, inertias, alphas, strict=True)
    ]
    entries = archive.mapping("entries")
    n_steps, seconds = archive.integer("n_steps"), archive.number("seconds")
    try:
        state = PathState(
            ks=[_count(k) for k in archive.meta["ks"]],
            entropy=[_count(number) for number in archive.meta["entropy"]],
            n_steps=n_steps,
            seconds=seconds,
            entries={int(k): _entry(entry, int(k), solutions) for k, entry in entries.items()},
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ArchiveError("one of its entries is impossible") from error
    if state.ks != ks or not set(state.entries) <= set(ks):
        raise ArchiveError("its numbers of clusters are not those of the path")
    return state


def _entry(stored_entry: Any, k: int, solutions: list[Individual]) -> Entry:
    """Return an entry from what JSON holds of it."""
    lists = {name: [solutions[_count(place)] for place in stored_entry[name]] for name in LISTS}
    if not lists["members"] or any(len(one.centers) != k for own in lists.values() for one in own):
        raise ValueError("solutions of another number of clusters")
    return Entry(
        **lists,
        alone=[_finite(value) for value in stored_entry["alone"]],
        is_united=stored_entry["is_united"] is True,
        n_fresh=_count(stored_entry["n_fresh"]),
        n_solutions=_count(stored_entry["n_solutions"]),
        tested={_count(j): _finite(value) for j, value in stored_entry["tested"]},
    )


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a count")
    return value


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("not a number")
    return float(value)
