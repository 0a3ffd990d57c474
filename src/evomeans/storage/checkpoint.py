"""Searches and paths that survive their process; docs/guide/checkpoints.md describes the files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.path.state import PathState
from evomeans.search.history import SWAPPED
from evomeans.search.plan import WIDEST
from evomeans.search.population import Individual
from evomeans.search.state import Bounds, SearchState
from evomeans.storage.archive import (
    Archive,
    ArchiveError,
    Arrays,
    records_from_arrays,
    records_to_arrays,
)
from evomeans.storage.state_fields import Solutions, center_ranges, decode_fields, encode_fields
from evomeans.storage.state_file import Problem, StateFile

FORMAT = "evomeans checkpoint"
VERSION = 12
# The member with the labels of all solutions, of models whose solutions have them.
LABELS = "solution_labels"


class Checkpoint(StateFile[SearchState]):
    """Keeps the state of a search in a file, and continues from it.

    ``check_labels`` raises ValueError for labels that no solution of the model can have.
    """

    format, version, progress = FORMAT, VERSION, "n_made"
    _bounds: Bounds

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
        """Continue from the file, or write the first state if there is none."""
        self._bounds = bounds
        self.read_or_write(state)

    def encoded(self, state: SearchState) -> tuple[dict[str, Any], Arrays]:
        """Return all fields of a state as a JSON object and arrays."""
        return encode_state(state, self._bounds.n_clusters, self._bounds.n_features)

    def restored(self, archive: Archive, state: SearchState) -> SearchState:
        """Give a new state the values of a stored one, unless anything is wrong with them."""
        restore_state(archive, state, self._bounds, self.check_labels)
        return state


def encode_state(state: SearchState, k: int, d: int) -> tuple[dict[str, Any], Arrays]:
    """Return all fields of a state as a JSON object and arrays."""
    arrays: Arrays = {}
    solutions = Solutions()
    meta = encode_fields(state, solutions, arrays, k, d)
    arrays |= records_to_arrays(Individual, solutions.stored, "solution", k, d)
    if solutions.stored and all(one.labels is not None for one in solutions.stored):
        arrays[LABELS] = np.array([one.labels for one in solutions.stored], dtype=np.int32)
    return meta, arrays


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
    ranges = {**center_ranges(bounds.total_weight), "swaps": (0, bounds.most_swaps)}
    solutions = records_from_arrays(archive, Individual, "solution", k, d, ranges)
    if LABELS in archive.arrays:
        solutions = _labelled(archive, solutions, bounds, check_labels)
    rules, most_founders = state.population.rules, state.population.founders_due
    stored = decode_fields(
        SearchState, archive, Solutions(solutions), k, d, ranges, state.rng, rules
    )
    random = stored.pop("rng")
    _check_consistency(SearchState(**stored, rng=state.rng), most_founders, bounds)
    for name, value in stored.items():
        setattr(state, name, value)
    # The generator belongs to the caller, who sees it advance.
    state.rng.bit_generator.state = random


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


def _check_consistency(state: SearchState, most_founders: int, bounds: Bounds) -> None:
    """Refuse what no search can come to: it could run for ever, or fail later."""
    population, best, due = state.population, state.best, state.population.founders_due
    members, begun = population.members, len(population) + len(state.waiting) + len(state.given)
    populations = [population, *state.settled]
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
            one.local_search.needs <= bounds.abilities for one in state.waiting
        ),
        "history_number": _is_in_order(state),
        "leader": all((one.leader is None) == (not one.members) for one in populations),
        "settled": all(one.members for one in state.settled),
        "best": (best is None) == (not state.history) and (best is not None or not members),
    }
    if wrong := [name for name, is_fine in is_possible.items() if not is_fine]:
        raise ArchiveError(f"its {wrong[0]} contradicts the rest of it")
    if best is not None and not _is_ranked(state, best):
        raise ArchiveError("its solution_inertia contradicts its best solution or its history")


def _is_in_order(state: SearchState) -> bool:
    """Whether the solutions of the history were made one after the other."""
    numbers = [record.number for record in state.history]
    return numbers == sorted(numbers) and all(n <= state.n_offspring for n in numbers[-1:])


def _is_ranked(state: SearchState, best: Individual) -> bool:
    """Whether the best solution is the best, and every leader that of its population."""
    lowest = list(accumulate((record.inertia for record in state.history), min))
    return [*lowest, lowest[-1]] == [*(one.best for one in state.history), best.inertia] and all(
        best.inertia <= one.leader.inertia <= min(own.inertia for own in one.members)
        for one in (state.population, *state.settled)
        if one.leader is not None
    )


PATH_FORMAT = "evomeans path checkpoint"
PATH_VERSION = 2


class PathCheckpoint(StateFile[PathState]):
    """Keeps the state of a path in a file, and continues from it.

    A step that was interrupted is made again from its beginning, with the same random numbers: so
    a path that continues ends with the same bits as one that was never interrupted.
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
        solutions = Solutions()
        meta, stored = encode_fields(state, solutions), solutions.stored
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
        """Return the state that an archive holds, unless anything is wrong with it.

        Nothing that passes here can harm a kernel, and no other place looks at the values again.
        """
        archive.expect(self.encoded(state)[1])
        found = PathState(**decode_fields(PathState, archive, self._solutions(archive)))
        if found.ks != state.ks or not set(found.entries) <= set(found.ks):
            raise ArchiveError("its numbers of clusters are not those of the path")
        return found

    def _solutions(self, archive: Archive) -> Solutions:
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
        return Solutions(
            [
                Individual(centers[own].copy(), inertia, weights[own].copy(), alpha)
                for own, inertia, alpha in zip(rows_of, inertias, alphas, strict=True)
            ]
        )
