"""A search that survives its process; docs/checkpoints.md describes file and guarantees."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.search.individual import Individual
from evomeans.search.keeping import NoCheckpoint, Resumable
from evomeans.search.state import SearchState
from evomeans.storage.archive import Archive, ArchiveError, read_archive, write_archive
from evomeans.storage.arrays import (
    HISTORY_MEMBERS,
    POPULATION_MEMBERS,
    ROUND_MEMBERS,
    history_from_arrays,
    history_to_arrays,
    population_from_arrays,
    population_to_arrays,
    round_from_arrays,
    round_to_arrays,
)

FORMAT = "evomeans checkpoint"
VERSION = 3
MEMBERS = (*POPULATION_MEMBERS, *ROUND_MEMBERS, *HISTORY_MEMBERS, "given")
SECONDS_BETWEEN = 30.0
# Writing takes at most a twentieth of the time, however large the state.
PAUSE_PER_WRITE = 20.0
LARGEST_COUNT = 2**53
# Of the integers in states of NumPy's bit generators. Some are positions in arrays, and NumPy
# believes them.
LARGEST_INTEGER = {
    "state": 2**128 - 1,
    "inc": 2**128 - 1,
    "has_uint32": 1,
    "uinteger": 2**32 - 1,
    "pos": 624,
    "buffer_pos": 4,
}

Problem = Mapping[str, int | str | None]
"""Whatever decides about the course of a search beside its random numbers, by name."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be continued: of another problem, damaged, or of another format."""


class Checkpoint(NoCheckpoint):
    """Keeps the state of a search in a file, and continues from it.

    Parameters
    ----------
    path : path-like
        The file. It is always complete: a new state replaces the old one in a single step.
    problem : mapping
        Only a search of the same problem may go on from the file.
    seed : int, optional
        If given, the search in the file must have begun with it.
    every : float, optional
        Seconds between two writes, by the clock of the search.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: Problem,
        *,
        seed: int | None = None,
        every: float | None = None,
    ) -> None:
        self.path = Path(path)
        self.problem = dict(problem)
        self.seed = seed
        self.every = SECONDS_BETWEEN if every is None else every
        self._due = 0.0
        self._written = -1

    def begin(self, search: Resumable) -> None:
        """Continue from the file, or write the first state if there is none.

        Writing here shows that it is possible, before there is anything to lose.
        """
        if self.path.exists():
            state = self._read(search)
            search.restore(state)
            self._written = len(state.history)
            self._due = search.seconds + self.every
        else:
            self._write(search)

    def keep(self, search: Resumable) -> None:
        """Write the state if it is time to."""
        if search.seconds >= self._due:
            self._try_to_write(search)

    def end(self, search: Resumable) -> None:
        """Write the last state, unless the file has it."""
        if self._written != len(search.state().history):
            self._try_to_write(search)

    def _try_to_write(self, search: Resumable) -> None:
        """Write; if that fails, say so, and go on with the search."""
        try:
            self._write(search)
        except OSError as error:
            self._due = search.seconds + self.every
            warnings.warn(
                f"The checkpoint {self.path} could not be written ({error}); the search goes on, "
                "and the file, if there was one, is as it was.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _write(self, search: Resumable) -> None:
        began = search.seconds
        state = search.state()
        k, d = search.shape
        # The best need not be members any more.
        members = list(state.population)
        for one in (state.best, state.leader):
            if one is not None and _place(members, one) is None:
                members.append(one)
        meta = {
            "problem": self.problem,
            "seed": self.seed,
            "population_size": len(state.population),
            "best": None if state.best is None else _place(members, state.best),
            "leader": None if state.leader is None else _place(members, state.leader),
            "finds": state.finds,
            "is_first": int(state.is_first),
            "founders_due": state.founders_due,
            "n_offspring": state.n_offspring,
            "last_improvement": state.last_improvement,
            "seconds": state.seconds,
            "random": _storable(state.random),
        }
        arrays = {
            **population_to_arrays(members, k, d),
            **round_to_arrays(state.round, k, d),
            **history_to_arrays(state.history),
            "given": np.array(state.given, dtype=np.float64).reshape(-1, k, d),
        }
        write_archive(self.path, FORMAT, VERSION, meta, arrays)
        self._written = len(state.history)
        now = search.seconds
        self._due = now + max(self.every, PAUSE_PER_WRITE * (now - began))

    def _read(self, search: Resumable) -> SearchState:
        try:
            archive = read_archive(self.path, FORMAT, VERSION)
            self._check_problem(archive)
            return _state_of(archive, search)
        except ArchiveError as error:
            raise CheckpointError(
                f"The checkpoint {self.path} cannot be continued: {error}. Nothing was changed. "
                "Choose another path, or remove the file to begin anew."
            ) from error

    def _check_problem(self, archive: Archive) -> None:
        stored = dict(archive.mapping("problem"))
        ours = dict(self.problem)
        if self.seed is not None:
            stored["random_state"], ours["random_state"] = archive.meta.get("seed"), self.seed
        differences = [
            _difference(name, stored.get(name), ours.get(name))
            for name in sorted(stored.keys() | ours.keys())
            if stored.get(name) != ours.get(name)
        ]
        if differences:
            raise ArchiveError(f"it is of another search; {', '.join(differences)}")


def _difference(name: str, stored: object, ours: object) -> str:
    if any(isinstance(value, str) and len(value) == 64 for value in (stored, ours)):
        return f"{name[:40]} differs"
    return f"{name[:40]} is {ascii(stored)[:40]} in the file and {ascii(ours)[:40]} now"


def _place(members: Sequence[Individual], wanted: Individual) -> int | None:
    """Return where this very individual stands, None if it does not."""
    return next((i for i, one in enumerate(members) if one is wanted), None)


def _state_of(archive: Archive, search: Resumable) -> SearchState:
    archive.expect(MEMBERS)
    k, d = search.shape
    members = population_from_arrays(archive, k, d)
    size = archive.integer("population_size", 0, len(members))
    given = archive.array("given", "float64", (None, k, d))
    n_offspring = archive.integer("n_offspring", 0, LARGEST_COUNT)
    begun = round_from_arrays(archive, k, d, search.start)
    # Founders come before any limit of offspring: there must not be more than a search begins with.
    founders = max(search.settings.max_population, size + len(begun) + len(given))
    state = SearchState(
        population=members[:size],
        best=members[archive.integer("best", 0, len(members) - 1)] if members else None,
        leader=members[archive.integer("leader", 0, len(members) - 1)] if size else None,
        finds=archive.integer("finds", 0, LARGEST_COUNT),
        is_first=bool(archive.integer("is_first", 0, 1)),
        given=[centers.copy() for centers in given],
        round=begun,
        founders_due=archive.integer("founders_due", 0, founders),
        n_offspring=n_offspring,
        last_improvement=archive.integer("last_improvement", 0, n_offspring),
        history=history_from_arrays(archive),
        seconds=archive.number("seconds"),
        random=_restored(archive.mapping("random"), search.state().random),
    )
    if len(state.given) > state.founders_due or (not state.population and not state.founders_due):
        raise ArchiveError("its population is incomplete")
    return state


# The state of the random numbers


def _storable(state: Any) -> Any:
    """Return the state of a bit generator with lists for arrays, as JSON has it."""
    if isinstance(state, dict):
        return {name: _storable(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _restored(stored: Any, ours: Any, name: str = "random") -> Any:
    """Return a stored state in the form of ours, that of the same kind of bit generator."""
    if isinstance(ours, dict):
        if not isinstance(stored, dict) or stored.keys() != ours.keys():
            raise ArchiveError("its random numbers are of another bit generator")
        return {key: _restored(stored[key], ours[key], key) for key in ours}
    if isinstance(ours, str):
        if stored != ours:
            raise ArchiveError(f"its random numbers are not of the bit generator {ours}")
        return ours
    largest = LARGEST_INTEGER.get(name, 0)
    if isinstance(ours, np.ndarray):
        largest = int(np.iinfo(ours.dtype).max)
        values = stored if isinstance(stored, list) else []
        if len(values) != ours.size or not all(_is_within(value, largest) for value in values):
            raise ArchiveError(f"the state of its random numbers is impossible ({name})")
        return np.array(values, dtype=ours.dtype)
    if not _is_within(stored, largest):
        raise ArchiveError(f"the state of its random numbers is impossible ({name})")
    return stored


def _is_within(value: object, largest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest
