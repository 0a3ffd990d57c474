"""Searches and paths that survive their process; docs/guide/checkpoints.md describes the files."""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import Engine, is_dask
from evomeans.engines.frame import FARTHEST_CENTER, is_sparse
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.path import Entry, PathState
from evomeans.search import SearchSettings
from evomeans.search.history import SWAPPED, OffspringRecord, SearchObserver
from evomeans.search.levels import level_sizes
from evomeans.search.plan import WIDEST
from evomeans.search.population import Individual, Population, PopulationRules
from evomeans.search.search import Bounds, SearchState
from evomeans.storage.archive import (
    Archive,
    ArchiveError,
    Arrays,
    Ranges,
    history_from_arrays,
    read_archive,
    records_from_arrays,
    records_to_arrays,
    stored_fields,
    write_archive,
)

SECONDS_BETWEEN = 30.0
PAUSE_PER_WRITE = 20.0  # how many times as long as a write the pause after it is

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
    progress: str  # the field of a state that says how far it is

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
        """Return the state in the file, if it is to be resumed, or write the new one as a test."""
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
    if is_dask(X):
        # Block by block, because the sizes of the blocks determine the course too.
        blocks, weight_blocks = engine.digests(digest)  # type: ignore[attr-defined]
        samples, weights = digest(blocks), None if weight_blocks is None else digest(weight_blocks)
    else:
        samples = digest(*((X.data, X.indices, X.indptr) if is_sparse(X) else (X,)))
        weights = None if sample_weight is None else digest(sample_weight)
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


def digest(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the types, shapes and values of arrays."""
    total = hashlib.sha256()
    for values in arrays:
        total.update(f"{values.dtype.str} {values.shape};".encode("ascii"))
        total.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


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
class Fields:
    """Turns the fields of records into JSON and arrays, and back.

    Every solution is stored once; the JSON has its place among all. Centres have the shape (k, d).
    ``rules`` of populations, and the form of the state of ``rng``, come from the search. Encoding
    fills ``solutions`` and ``arrays``.
    """

    solutions: list[Individual] = field(default_factory=list)
    k: int = 0
    d: int = 0
    ranges: Ranges = field(default_factory=dict)
    rng: np.random.Generator | None = None
    rules: PopulationRules | None = None
    arrays: Arrays = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)

    def place(self, wanted: Individual) -> int:
        """Return the place of this very solution; it is appended if it is not among them."""
        if id(wanted) not in self._places:
            self._places[id(wanted)] = len(self.solutions)
            self.solutions.append(wanted)
        return self._places[id(wanted)]

    def encoded(self, record: Any) -> dict[str, Any]:
        """Return the fields of a record as JSON."""
        meta: dict[str, Any] = {}
        for one in stored_fields(record):
            name, value = one.name, getattr(record, one.name)
            match one.type:
                case "int" | "float" | "bool" | "list[int]" | "list[float]":
                    meta[name] = value
                case "list[Individual]" | "Sequence[Individual]":
                    meta[name] = [self.place(own) for own in value]
                case "dict[int, float]":
                    meta[name] = [list(pair) for pair in value.items()]
                case "dict[int, Entry]":
                    meta[name] = {str(key): self.encoded(own) for key, own in value.items()}
                case "Individual | None":
                    meta[name] = -1 if value is None else self.place(value)
                case "Population":
                    meta[name] = self.encoded(value)
                case "list[Population]":
                    meta[name] = [self.encoded(own) for own in value]
                case "PopulationRules":
                    # They follow from the problem.
                    continue
                case "np.random.Generator":
                    meta[name] = _storable(value.bit_generator.state)
                case "list[FloatArray]":
                    stack = np.array(value, dtype=np.float64)
                    self.arrays[name] = stack.reshape(-1, self.k, self.d)
                case "list[Order]":
                    searches = [own.local_search for own in value]
                    self.arrays |= records_to_arrays(Order, value, name, meta, self.k, self.d)
                    self.arrays |= records_to_arrays(LocalSearch, searches, name, meta)
                case "History":
                    self.arrays |= records_to_arrays(OffspringRecord, value, name, meta)
                case unknown:
                    raise TypeError(f"A checkpoint cannot store {name} of type {unknown}.")
        return meta

    def decoded(self, kind: type, archive: Archive) -> dict[str, Any]:
        """Return the fields that were encoded; of a generator of random numbers, its state."""
        return {
            one.name: self._decoded(str(one.type), one.name, archive) for one in stored_fields(kind)
        }

    def _decoded(self, kind: str, name: str, archive: Archive) -> Any:
        match kind:
            case "int" | "float" | "bool" | "list[float]":
                return archive.field(name, kind)
            case "list[int]":
                # Entropy has more than 64 bits.
                return archive.field(name, kind, high=math.inf if name == "entropy" else 2**63 - 1)
            case "list[Individual]" | "Sequence[Individual]":
                places = archive.field(name, "list[int]", high=len(self.solutions) - 1)
                return [self.solutions[place] for place in places]
            case "dict[int, float]":
                pairs = archive.field(name, "list[list[float]]")
                if not all(len(pair) == 2 and pair[0].is_integer() for pair in pairs):
                    raise ArchiveError(f"its {name} are not pairs of an integer and a number")
                return {int(key): number for key, number in pairs}
            case "dict[int, Entry]":
                stored = archive.field(name, "dict")
                if not all(re.fullmatch(r"[1-9][0-9]{0,8}", key) for key in stored):
                    raise ArchiveError(f"its {name} are not by numbers of clusters")
                records = {key: self._record(Entry, name, own) for key, own in stored.items()}
                return {int(key): own for key, own in records.items()}
            case "Individual | None":
                place = archive.field(name, "int", -1, len(self.solutions) - 1)
                return None if place < 0 else self.solutions[place]
            case "Population":
                return self._record(Population, name, archive.meta.get(name))
            case "list[Population]":
                archived = archive.meta.get(name)
                if not isinstance(archived, list):
                    raise ArchiveError(f"its {name} is not a list")
                return [self._record(Population, name, own).frozen() for own in archived]
            case "PopulationRules":
                return self.rules
            case "np.random.Generator" if self.rng is not None:
                return _restored(archive.field(name, "dict"), self.rng.bit_generator.state)
            case "list[FloatArray]":
                low, high = self.ranges["centers"]
                shape = (None, self.k, self.d)
                stack = archive.array(name, "float64", shape, low=low, high=high)
                return [centers.copy() for centers in stack]
            case "list[Order]":
                orders = records_from_arrays(archive, Order, name, self.k, self.d, self.ranges)
                searches = records_from_arrays(archive, LocalSearch, name, ranges=self.ranges)
                if len(orders) != len(searches):
                    raise ArchiveError(f"its {name}_swaps are not as many as its {name}_centers")
                pairs = zip(orders, searches, strict=True)
                return [replace(own, local_search=search) for own, search in pairs]
            case "History":
                return history_from_arrays(archive)
        raise TypeError(f"A checkpoint cannot hold {name} of type {kind}.")

    def _record(self, kind: type, name: str, stored: object) -> Any:
        """Return a record within the JSON object."""
        if not isinstance(stored, dict):
            raise ArchiveError(f"its {name} is not a JSON object")
        try:
            return kind(**self.decoded(kind, Archive(stored, {})))
        except ArchiveError as error:
            raise ArchiveError(f"its {name} is impossible: {error}") from error


def center_ranges(total_weight: float) -> Ranges:
    """Return the ranges of centres and of cluster weights in the frame of an engine."""
    # Rounding can let the parts of a sum exceed it.
    heaviest = total_weight * (1.0 + 1e-6)
    return {"centers": (-FARTHEST_CENTER, FARTHEST_CENTER), "cluster_weights": (0.0, heaviest)}


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


FORMAT = "evomeans checkpoint"
VERSION = 15
LABELS = "solution_labels"  # of models whose solutions have them


class Checkpoint(StateFile[SearchState]):
    """Keeps the state of a search in a file, and continues from it.

    ``check_labels`` raises ValueError for labels that no solution of the model can have.
    """

    format, version, progress = FORMAT, VERSION, "n_made"

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

    def on_start(self, state: SearchState) -> None:
        """Continue from the file, or write the first state if there is none."""
        self.read_or_write(state)

    def encoded(self, state: SearchState) -> tuple[dict[str, Any], Arrays]:
        """Return all fields of a state as a JSON object and arrays."""
        state.waiting = state.ask_waiting()
        return encode_state(state)

    def restored(self, archive: Archive, state: SearchState) -> SearchState:
        """Give a new state the values of a stored one, unless anything is wrong with them.

        Nothing that passes here can harm a kernel, and no other place looks at the values again.
        """
        bounds = state.bounds
        k, d = bounds.n_clusters, bounds.n_features
        archive.expect(encode_state(state)[1], optional=[LABELS])
        ranges = {**center_ranges(bounds.total_weight), "swaps": (0, bounds.most_swaps)}
        solutions = records_from_arrays(archive, Individual, "solution", k, d, ranges)
        if LABELS in archive.arrays:
            solutions = self._labelled(archive, solutions, bounds)
        rules, most_founders = state.population.rules, state.population.founders_due
        known = Fields(solutions, k, d, ranges, state.rng, rules)
        stored = known.decoded(SearchState, archive)
        random = stored.pop("rng")
        _check_consistency(SearchState(**stored, rng=state.rng, bounds=bounds), most_founders)
        for name, value in stored.items():
            setattr(state, name, value)
        # The generator belongs to the caller, who sees it advance.
        state.rng.bit_generator.state = random
        return state

    def _labelled(
        self, archive: Archive, solutions: list[Individual], bounds: Bounds
    ) -> list[Individual]:
        """Return solutions with their labels, if they are possible ones."""
        shape, high = (len(solutions), bounds.n_samples), bounds.n_clusters - 1
        labels = archive.array(LABELS, "int32", shape, low=-1, high=high)
        try:
            if self.check_labels is not None:
                for row in labels:
                    self.check_labels(row)
        except ValueError as error:
            raise ArchiveError(f"its {LABELS} are impossible: {error}") from error
        return [replace(one, labels=row.copy()) for one, row in zip(solutions, labels, strict=True)]


def encode_state(state: SearchState) -> tuple[dict[str, Any], Arrays]:
    """Return all fields of a state as a JSON object and arrays."""
    k, d = state.bounds.n_clusters, state.bounds.n_features
    known = Fields(k=k, d=d)
    meta, solutions, arrays = known.encoded(state), known.solutions, known.arrays
    arrays |= records_to_arrays(Individual, solutions, "solution", meta, k, d)
    if solutions and all(one.labels is not None for one in solutions):
        arrays[LABELS] = np.array([one.labels for one in solutions], dtype=np.int32)
    return meta, arrays


def _check_consistency(state: SearchState, most_founders: int) -> None:
    """Refuse what no search can come to: it could run for ever, or fail later."""
    population, best, due = state.population, state.best, state.population.founders_due
    members, begun = population.members, len(population) + len(state.waiting) + len(state.given)
    populations = [population, *state.settled]
    numbers = [*(record.number for record in state.history), state.n_offspring]
    is_possible = {
        "population": (members or due) and len(set(map(id, members))) == len(members),
        "founders_due": len(state.given) <= due <= max(most_founders, begun),
        "n_sampled": state.n_sampled <= len(state.given),
        "last_improvement": population.last_improvement <= population.n_offspring,
        "n_offspring": sum(one.n_offspring for one in populations) <= state.n_offspring,
        "number": population.number >= 1,
        "n_agreeing": all(one.n_agreeing >= 1 for one in populations if one.leader is not None),
        "spacing": state.spacing <= WIDEST,
        "waiting_made_by": members or all(one.made_by != SWAPPED for one in state.waiting),
        "waiting_momentum": all(
            one.local_search.needs <= state.bounds.abilities for one in state.waiting
        ),
        "history_number": numbers == sorted(numbers),
        "leader": all((one.leader is None) == (not one.members) for one in populations),
        "settled": all(one.members for one in state.settled),
        "best": (best is None) == (not state.history) and (best is not None or not members),
    }
    if wrong := [name for name, is_fine in is_possible.items() if not is_fine]:
        raise ArchiveError(f"its {wrong[0]} contradicts the rest of it")
    if best is not None and not _is_ranked(state, best):
        raise ArchiveError("its solution_inertia contradicts its best solution or its history")


def _is_ranked(state: SearchState, best: Individual) -> bool:
    """Whether the best solution is the best, and every leader that of its population."""
    lowest = list(accumulate((record.inertia for record in state.history), min))
    return [*lowest, lowest[-1]] == [*(one.best for one in state.history), best.inertia] and all(
        best.inertia <= one.leader.inertia <= min(own.inertia for own in one.members)
        for one in (state.population, *state.settled)
        if one.leader is not None
    )


PATH_FORMAT = "evomeans path checkpoint"
PATH_VERSION = 3


class PathCheckpoint(StateFile[PathState]):
    """Keeps the state of a path in a file, and continues from it.

    A step that was interrupted is made again with the same random numbers, and gives the same bits.
    """

    format, version, progress = PATH_FORMAT, PATH_VERSION, "n_steps"

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

    def encoded(self, state: PathState) -> tuple[dict[str, Any], Arrays]:
        """Return a state as a JSON object and arrays."""
        known = Fields()
        meta, stored = known.encoded(state), known.solutions
        weights = [one.cluster_weights for one in stored]
        return meta, {
            "solution_k": np.array([len(one.centers) for one in stored], np.int64),
            "solution_inertia": np.array([one.inertia for one in stored], np.float64),
            "solution_alpha": np.array([one.alpha for one in stored], np.float64),
            "centers": np.concatenate(
                [np.empty((0, self.n_features)), *(one.centers for one in stored)]
            ),
            "cluster_weights": np.concatenate([np.empty(0), *weights]),
        }

    def restored(self, archive: Archive, state: PathState) -> PathState:
        """Return the state that an archive holds, unless anything is wrong with it."""
        archive.expect(self.encoded(state)[1])
        found = PathState(**Fields(self._solutions(archive)).decoded(PathState, archive))
        if found.ks != state.ks or not set(found.entries) <= set(found.ks):
            raise ArchiveError("its numbers of clusters are not those of the path")
        for k, entry in found.entries.items():
            inertias = [one.inertia for one in entry.members]
            sizes = {len(one.centers) for one in (*entry.members, *entry.up, *entry.down)}
            if not inertias or inertias != sorted(inertias) or sizes != {k}:
                raise ArchiveError(
                    f"its entries for k={k} are impossible: the first is not the best, or some "
                    "have another number of clusters"
                )
        return found

    def _solutions(self, archive: Archive) -> list[Individual]:
        """Return the solutions of an archive, whose centres come one after the other."""
        counts = archive.array("solution_k", "int64", (None,), low=1).tolist()
        p, rows = len(counts), sum(counts)
        inertias = archive.array("solution_inertia", "float64", (p,), low=0.0).tolist()
        alphas = archive.array("solution_alpha", "float64", (p,), low=0.0, high=1.0).tolist()
        ranges, shape = center_ranges(self.total_weight), (rows, self.n_features)
        (low, high), (lightest, heaviest) = ranges["centers"], ranges["cluster_weights"]
        centers = archive.array("centers", "float64", shape, low=low, high=high)
        weights = archive.array("cluster_weights", "float64", (rows,), low=lightest, high=heaviest)
        ends = np.cumsum(counts).tolist()
        rows_of = [slice(end - k, end) for k, end in zip(counts, ends, strict=True)]
        return [
            Individual(centers[own].copy(), inertia, weights[own].copy(), alpha)
            for own, inertia, alpha in zip(rows_of, inertias, alphas, strict=True)
        ]
