"""A path that survives its process; docs/guide/checkpoints.md describes file and guarantees."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from evomeans.path.state import Entry, PathState
from evomeans.search.population import Individual
from evomeans.storage.archive import Archive, ArchiveError, Arrays
from evomeans.storage.checkpoint import center_ranges
from evomeans.storage.state_file import Problem, StateFile

FORMAT = "evomeans path checkpoint"
VERSION = 2
LISTS = ("members", "up", "down")


class PathCheckpoint(StateFile):
    """Keeps the state of a path in a file, and continues from it.

    A step that was interrupted is made again from its beginning, with the same random numbers: so
    a path that continues ends with the same bits as one that was never interrupted.

    Parameters
    ----------
    n_features : int
        Coordinates of a centre.
    total_weight : float
        Of all samples.
    path, problem, **options
        As for :class:`~evomeans.storage.state_file.StateFile`.
    """

    format, version = FORMAT, VERSION

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: Problem,
        *,
        n_features: int,
        total_weight: float,
        **options: Any,
    ) -> None:
        super().__init__(path, problem, **options)
        self.n_features, self.total_weight = n_features, total_weight

    def begin(self, state: PathState, *, resume: bool = True) -> PathState:
        """Return the state in the file, or write the new one if there is no file.

        Without ``resume``, the state at hand replaces that in the file.
        """
        if resume and self.path.exists():
            bounds = self.n_features, self.total_weight
            state = self.read(lambda archive: restored(archive, state.ks, *bounds))
            self.has_read(state.n_steps, state.seconds)
        else:
            self.write(state.n_steps, 0.0, *stored(state, self.n_features))
        return state

    def keep(self, state: PathState) -> None:
        """Write the state if it is time to."""
        if self.is_due(state.seconds):
            self.try_to_write(state.n_steps, state.seconds, *stored(state, self.n_features))

    def end(self, state: PathState) -> None:
        """Write the last state, unless the file has it."""
        if not self.has(state.n_steps):
            self.try_to_write(state.n_steps, state.seconds, *stored(state, self.n_features))


def stored(state: PathState, n_features: int) -> tuple[dict[str, Any], Arrays]:
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
    arrays = {
        "solution_k": np.array([len(one.centers) for one in solutions], np.int64),
        "solution_inertia": np.array([one.inertia for one in solutions], np.float64),
        "solution_alpha": np.array([one.alpha for one in solutions], np.float64),
        "centers": np.concatenate([np.empty((0, n_features)), *(one.centers for one in solutions)]),
        "cluster_weights": np.concatenate(
            [np.empty(0), *(one.cluster_weights for one in solutions)]
        ),
    }
    return meta, arrays


def restored(archive: Archive, ks: list[int], d: int, total_weight: float) -> PathState:
    """Return the state that an archive holds, unless anything is wrong with it.

    Nothing that passes here can harm a kernel, and no other place looks at the values again.
    """
    archive.expect(
        ["solution_k", "solution_inertia", "solution_alpha", "centers", "cluster_weights"]
    )
    counts = archive.array("solution_k", "int64", (None,), low=1).tolist()
    p, rows = len(counts), sum(counts)
    inertias = archive.array("solution_inertia", "float64", (p,), low=0.0).tolist()
    alphas = archive.array("solution_alpha", "float64", (p,), low=0.0, high=1.0).tolist()
    ranges = center_ranges(total_weight)
    (low, high), (lightest, heaviest) = ranges["centers"], ranges["cluster_weights"]
    centers = archive.array("centers", "float64", (rows, d), low=low, high=high)
    weights = archive.array("cluster_weights", "float64", (rows,), low=lightest, high=heaviest)
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
    inertias = [one.inertia for one in lists["members"]]
    if inertias != sorted(inertias):
        raise ValueError("the first of its members is not the best")
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
