"""A search that survives its process; docs/guide/checkpoints.md describes file and guarantees."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import FARTHEST_CENTER
from evomeans.search.history import OffspringRecord
from evomeans.search.keeper import Bounds, Drafts
from evomeans.search.plan import WIDEST
from evomeans.search.population import Individual
from evomeans.search.state import Draft, Lineage, SearchState
from evomeans.search.steps import SWAPPED
from evomeans.storage.archive import (
    Archive,
    ArchiveError,
    Arrays,
    Ranges,
    history_from_arrays,
    records_from_arrays,
    records_to_arrays,
)
from evomeans.storage.state_file import Problem, StateFile

FORMAT = "evomeans checkpoint"
VERSION = 11
# The member with the labels of all solutions, of models whose solutions have them.
LABELS = "solution_labels"
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


class Checkpoint(StateFile):
    """Keeps the state of a search in a file, and continues from it.

    Parameters
    ----------
    check_labels : callable, optional
        Raises ValueError for labels that no solution of the model can have.
    path, problem, **options
        As for :class:`~evomeans.storage.state_file.StateFile`.
    """

    format, version = FORMAT, VERSION
    _shape = (0, 0)

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: Problem,
        *,
        check_labels: Callable[[NDArray[Any]], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(path, problem, **options)
        self.check_labels = check_labels

    def begin(self, state: SearchState, bounds: Bounds) -> None:
        """Continue from the file, or write the first state if there is none.

        Writing here shows that it is possible, before there is anything to lose.
        """
        self._shape = bounds.n_clusters, bounds.n_features
        if self.path.exists():
            self.read(lambda archive: restore_state(archive, state, bounds, self.check_labels))
            self.has_read(state.n_made, state.seconds)
        else:
            # The clock of a search begins with the search.
            self.write(state.n_made, 0.0, *encode_state(state, *self._shape))

    def keep(self, state: SearchState, drafts: Drafts) -> None:
        """Write the state if it is time to."""
        if self.is_due(state.seconds):
            self._keep(state, drafts)

    def end(self, state: SearchState, drafts: Drafts) -> None:
        """Write the last state, unless the file has it."""
        if not self.has(state.n_made):
            self._keep(state, drafts)

    def _keep(self, state: SearchState, drafts: Drafts) -> None:
        state.waiting = drafts()
        meta, arrays = encode_state(state, *self._shape)
        self.try_to_write(state.n_made, state.seconds, meta, arrays)


# The fields of a state, by their types


def encode_state(state: SearchState, k: int, d: int) -> tuple[dict[str, Any], Arrays]:
    """Return all fields of a state as a JSON object and arrays."""
    meta: dict[str, Any] = {}
    arrays: Arrays = {}
    # Every solution once: the best ones are usually members too.
    solutions: list[Individual] = []
    for field in fields(state):
        name, value = field.name, getattr(state, field.name)
        match field.type:
            case "int" | "float" | "bool":
                meta[name] = value
            case "np.random.Generator":
                meta[name] = _storable(value.bit_generator.state)
            case "Individual | None":
                meta[name] = -1 if value is None else _place(solutions, value)
            case "list[Individual]":
                places = [_place(solutions, one) for one in value]
                arrays[name] = np.array(places, dtype=np.int64)
            case "list[Lineage]":
                meta[name] = [
                    [
                        one.rank,
                        one.n_agreeing,
                        *(_place(solutions, own) for own in (one.leader, *one.members)),
                    ]
                    for one in value
                ]
            case "list[int]":
                arrays[name] = np.array(value, dtype=np.int64)
            case "list[FloatArray]":
                arrays[name] = np.array(value, dtype=np.float64).reshape(-1, k, d)
            case "list[Draft]":
                arrays |= records_to_arrays(Draft, value, name, k, d)
            case "History":
                arrays |= records_to_arrays(OffspringRecord, value, name)
            case unknown:
                raise TypeError(f"A checkpoint cannot store {name} of type {unknown}.")
    arrays |= records_to_arrays(Individual, solutions, "solution", k, d)
    if solutions and all(one.labels is not None for one in solutions):
        arrays[LABELS] = np.array([one.labels for one in solutions], dtype=np.int32)
    return meta, arrays


def _place(solutions: list[Individual], wanted: Individual) -> int:
    """Return the place of this very solution; it is appended if it is not among them."""
    for place, one in enumerate(solutions):
        if one is wanted:
            return place
    solutions.append(wanted)
    return len(solutions) - 1


def restore_state(
    archive: Archive,
    state: SearchState,
    bounds: Bounds,
    check_labels: Callable[[NDArray[Any]], None] | None = None,
) -> None:
    """Give a new state the values of a stored one, unless anything is wrong with them.

    Nothing that passes here can harm a kernel, and no other place looks at the values again.
    """
    k, d = bounds.n_clusters, bounds.n_features
    archive.expect(encode_state(state, k, d)[1], optional=[LABELS])
    ranges = center_ranges(bounds.total_weight)
    solutions = records_from_arrays(archive, Individual, "solution", k, d, ranges)
    if LABELS in archive.arrays:
        solutions = _labelled(archive, solutions, bounds, check_labels)
    last = len(solutions) - 1
    stored: dict[str, Any] = {}
    for field in fields(state):
        name = field.name
        match field.type:
            case "int":
                stored[name] = archive.integer(name)
            case "float":
                stored[name] = archive.number(name)
            case "bool":
                stored[name] = archive.flag(name)
            case "list[Lineage]":
                stored[name] = [_lineage(one, solutions) for one in archive.counts(name)]
            case "np.random.Generator":
                random = _restored(archive.mapping(name), state.rng.bit_generator.state)
            case "Individual | None":
                place = archive.integer(name, -1, last)
                stored[name] = None if place < 0 else solutions[place]
            case "list[Individual]":
                places = archive.array(name, "int64", (None,), low=0, high=last).tolist()
                stored[name] = [solutions[place] for place in places]
            case "list[int]":
                stored[name] = archive.array(name, "int64", (None,)).tolist()
            case "list[FloatArray]":
                low, high = ranges["centers"]
                stack = archive.array(name, "float64", (None, k, d), low=low, high=high)
                stored[name] = [centers.copy() for centers in stack]
            case "list[Draft]":
                limited = {**ranges, "swaps": (0, bounds.most_swaps)}
                stored[name] = records_from_arrays(archive, Draft, name, k, d, limited)
            case "History":
                stored[name] = history_from_arrays(archive)
    _check_consistency(SearchState(**stored, rng=state.rng), most_founders=state.founders_due)
    for name, value in stored.items():
        setattr(state, name, value)
    # The generator belongs to the caller, who sees it advance.
    state.rng.bit_generator.state = random


def center_ranges(total_weight: float) -> Ranges:
    """Return the ranges of centres and of cluster weights in the frame of an engine."""
    # Rounding can let the parts of a sum exceed it.
    heaviest = total_weight * (1.0 + 1e-6)
    return {
        "centers": (-FARTHEST_CENTER, FARTHEST_CENTER),
        "cluster_weights": (0.0, heaviest),
    }


def _labelled(
    archive: Archive,
    solutions: list[Individual],
    bounds: Bounds,
    check_labels: Callable[[NDArray[Any]], None] | None,
) -> list[Individual]:
    """Return solutions with their labels, if they are possible ones."""
    shape = (len(solutions), bounds.n_samples)
    labels = archive.array(LABELS, "int32", shape, low=-1, high=bounds.n_clusters - 1)
    try:
        if check_labels is not None:
            for row in labels:
                check_labels(row)
    except ValueError as error:
        raise ArchiveError(f"its {LABELS} are impossible: {error}") from error
    return [replace(one, labels=row.copy()) for one, row in zip(solutions, labels, strict=True)]


def _lineage(numbers: list[int], solutions: list[Individual]) -> Lineage:
    """Return a lineage from its two numbers, and the places of its leader and its members."""
    rank_and_agreeing, places = numbers[:2], numbers[2:]
    if len(places) < 2 or max(places) >= len(solutions):
        raise ArchiveError("one of its lineages is incomplete")
    leader, *members = [solutions[place] for place in places]
    return Lineage(members, leader, *rank_and_agreeing)


def _check_consistency(state: SearchState, most_founders: int) -> None:
    """Refuse what no search can come to: it could run for ever, or fail later."""
    population, best, leader = state.population, state.best, state.leader
    begun = len(population) + len(state.waiting) + len(state.given)
    agreeing = [one.n_agreeing for one in state.lineages]
    if leader is not None:
        agreeing.append(state.n_agreeing)
    is_possible = {
        "population": (population or state.founders_due)
        and len(set(map(id, population))) == len(population),
        "founders_due": len(state.given) <= state.founders_due <= max(most_founders, begun),
        "n_sampled": state.n_sampled <= len(state.given),
        "last_improvement": state.n_earlier <= state.last_improvement <= state.n_offspring,
        "population_number": state.population_number >= 1,
        "n_agreeing": all(count >= 1 for count in agreeing),
        "spacing": state.spacing <= WIDEST,
        "waiting_made_by": population or all(one.made_by != SWAPPED for one in state.waiting),
        "leader": (leader is None) == (not population),
        "best": (best is None) == (not state.history) and (best is not None or not population),
    }
    if wrong := [name for name, is_fine in is_possible.items() if not is_fine]:
        raise ArchiveError(f"its {wrong[0]} contradicts the rest of it")
    if best is not None and not _is_ranked(state, best):
        raise ArchiveError("its solution_inertia contradicts its best solution or its history")


def _is_ranked(state: SearchState, best: Individual) -> bool:
    """Whether the best solution is the best, and every leader that of its population."""
    led = [(one.leader, one.members) for one in state.lineages]
    if state.leader is not None:
        led.append((state.leader, state.population))
    return state.history[-1].best == best.inertia and all(
        best.inertia <= leader.inertia <= min(one.inertia for one in members)
        for leader, members in led
    )


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
    is_array = isinstance(ours, np.ndarray)
    largest = np.iinfo(ours.dtype).max if is_array else LARGEST_INTEGER.get(name, 0)
    values = stored if is_array else [stored]
    is_possible = isinstance(values, list) and len(values) == np.size(ours)
    if not is_possible or not all(type(one) is int and 0 <= one <= largest for one in values):
        raise ArchiveError(f"the state of its random numbers is impossible ({name})")
    return np.array(values, dtype=ours.dtype) if is_array else stored
