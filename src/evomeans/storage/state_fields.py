"""The fields of the states of searches and paths as JSON and arrays, by their types, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from evomeans.engines.frame import FARTHEST_CENTER
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.path.state import Entry
from evomeans.search.history import OffspringRecord
from evomeans.search.population import Individual, Population, PopulationRules
from evomeans.storage.archive import (
    NO_RANGES,
    Archive,
    ArchiveError,
    Arrays,
    Ranges,
    history_from_arrays,
    records_from_arrays,
    records_to_arrays,
)

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


@dataclass
class Solutions:
    """The solutions of a state, each of which is stored once: the best ones are members too."""

    stored: list[Individual] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)

    def place(self, wanted: Individual) -> int:
        """Return the place of this very solution; it is appended if it is not among them."""
        if id(wanted) not in self._places:
            self._places[id(wanted)] = len(self.stored)
            self.stored.append(wanted)
        return self._places[id(wanted)]

    def at(self, places: list[int]) -> list[Individual]:
        """Return the solutions at some places."""
        return [self.stored[place] for place in places]


def encode_fields(
    record: Any, solutions: Solutions, arrays: Arrays | None = None, k: int = 0, d: int = 0
) -> dict[str, Any]:
    """Return the fields of a record as JSON, and append its solutions.

    Lists go into ``arrays``, with centres of shape (k, d); without, they are part of the JSON.
    """
    meta: dict[str, Any] = {}
    for one in fields(record):
        name, value = one.name, getattr(record, one.name)
        match one.type:
            case "int" | "float" | "bool" | "list[float]":
                meta[name] = value
            case "list[int]" | "list[Individual]" | "Sequence[Individual]":
                is_plain = one.type == "list[int]"
                numbers = value if is_plain else [solutions.place(own) for own in value]
                if arrays is None:
                    meta[name] = numbers
                else:
                    arrays[name] = np.array(numbers, dtype=np.int64)
            case "dict[int, float]":
                meta[name] = [list(pair) for pair in value.items()]
            case "dict[int, Entry]":
                meta[name] = {str(key): encode_fields(own, solutions) for key, own in value.items()}
            case "Individual | None":
                meta[name] = -1 if value is None else solutions.place(value)
            case "Population":
                meta[name] = encode_fields(value, solutions)
            case "list[Population]":
                meta[name] = [encode_fields(own, solutions) for own in value]
            case "PopulationRules":
                # They follow from the problem.
                continue
            case "np.random.Generator":
                meta[name] = _storable(value.bit_generator.state)
            case "list[FloatArray]" if arrays is not None:
                arrays[name] = np.array(value, dtype=np.float64).reshape(-1, k, d)
            case "list[Order]" if arrays is not None:
                arrays |= records_to_arrays(Order, value, name, k, d)
                arrays |= records_to_arrays(LocalSearch, [own.local_search for own in value], name)
            case "History" if arrays is not None:
                arrays |= records_to_arrays(OffspringRecord, value, name)
            case unknown:
                raise TypeError(f"A checkpoint cannot store {name} of type {unknown}.")
    return meta


def decode_fields(
    kind: type,
    archive: Archive,
    solutions: Solutions,
    k: int = 0,
    d: int = 0,
    ranges: Ranges = NO_RANGES,
    rng: np.random.Generator | None = None,
    rules: PopulationRules | None = None,
) -> dict[str, Any]:
    """Return the fields that :func:`encode_fields` stored, unless anything is wrong with them.

    Of a generator of random numbers, this is the state, in the form of that of ``rng``. Populations
    get ``rules``.
    """
    stored: dict[str, Any] = {}
    for one in fields(kind):
        name = one.name
        match one.type:
            case "int" | "float" | "bool":
                stored[name] = archive.field(name, one.type)
            case "list[float]":
                stored[name] = archive.field(name, "list[float]")
            case "list[int]":
                stored[name] = _integers(archive, name)
            case "list[Individual]" | "Sequence[Individual]":
                stored[name] = solutions.at(_integers(archive, name, len(solutions.stored) - 1))
            case "dict[int, float]":
                pairs = archive.field(name, "list[list[float]]")
                if not all(len(pair) == 2 and pair[0].is_integer() for pair in pairs):
                    raise ArchiveError(f"its {name} are not pairs of an integer and a number")
                stored[name] = {int(key): number for key, number in pairs}
            case "dict[int, Entry]":
                stored[name] = _entries(archive, name, solutions)
            case "Individual | None":
                place = archive.integer(name, -1, len(solutions.stored) - 1)
                stored[name] = None if place < 0 else solutions.stored[place]
            case "Population":
                stored[name] = _population(name, archive.meta.get(name), solutions, rules)
            case "list[Population]":
                archived = archive.meta.get(name)
                if not isinstance(archived, list):
                    raise ArchiveError(f"its {name} is not a list")
                found = [_population(name, own, solutions, rules) for own in archived]
                stored[name] = [one.frozen() for one in found]
            case "PopulationRules":
                stored[name] = rules
            case "np.random.Generator" if rng is not None:
                stored[name] = _restored(archive.mapping(name), rng.bit_generator.state)
            case "list[FloatArray]":
                low, high = ranges["centers"]
                stack = archive.array(name, "float64", (None, k, d), low=low, high=high)
                stored[name] = [centers.copy() for centers in stack]
            case "list[Order]":
                orders = records_from_arrays(archive, Order, name, k, d, ranges)
                searches = records_from_arrays(archive, LocalSearch, name, ranges=ranges)
                if len(orders) != len(searches):
                    raise ArchiveError(f"its {name}_swaps are not as many as its {name}_centers")
                stored[name] = [
                    replace(own, local_search=search)
                    for own, search in zip(orders, searches, strict=True)
                ]
            case "History":
                stored[name] = history_from_arrays(archive)
    return stored


def _integers(archive: Archive, name: str, high: float = math.inf) -> list[int]:
    """Return a list of integers, wherever it is."""
    if name in archive.arrays:
        whole: list[int] = archive.array(name, "int64", (None,), low=0, high=high).tolist()
        return whole
    # Entropy has more than 64 bits.
    return list(archive.field(name, "list[int]", high=high))


def _entries(archive: Archive, name: str, solutions: Solutions) -> dict[int, Entry]:
    """Return what is known of each number of clusters."""
    found: dict[int, Entry] = {}
    for key, own in archive.mapping(name).items():
        try:
            inner = Archive(own if isinstance(own, dict) else {}, {})
            entry = Entry(**decode_fields(Entry, inner, solutions))
        except ArchiveError as error:
            raise ArchiveError(f"one of its {name} is impossible: {error}") from error
        inertias = [one.inertia for one in entry.members]
        if not inertias or inertias != sorted(inertias):
            raise ArchiveError(f"one of its {name} is impossible: its first member is not the best")
        if any(str(len(one.centers)) != key for one in (*entry.members, *entry.up, *entry.down)):
            raise ArchiveError(f"one of its {name} is impossible: it has solutions of another")
        found[int(key)] = entry
    return found


def _population(
    name: str, stored: object, solutions: Solutions, rules: PopulationRules | None
) -> Population:
    """Return a population from its fields."""
    if not isinstance(stored, dict):
        raise ArchiveError(f"its {name} is not a JSON object")
    try:
        found = decode_fields(Population, Archive(stored, {}), solutions, rules=rules)
    except ArchiveError as error:
        raise ArchiveError(f"its {name} is impossible: {error}") from error
    return Population(**found)


def center_ranges(total_weight: float) -> Ranges:
    """Return the ranges of centres and of cluster weights in the frame of an engine."""
    # Rounding can let the parts of a sum exceed it.
    heaviest = total_weight * (1.0 + 1e-6)
    return {"centers": (-FARTHEST_CENTER, FARTHEST_CENTER), "cluster_weights": (0.0, heaviest)}


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
