"""A path that survives its process; docs/guide/checkpoints.md describes file and guarantees."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from evomeans.path.state import PathState
from evomeans.search.population import Individual
from evomeans.storage.archive import Archive, ArchiveError, Arrays
from evomeans.storage.state_fields import Solutions, center_ranges, decode_fields, encode_fields
from evomeans.storage.state_file import Problem, StateFile

FORMAT = "evomeans path checkpoint"
VERSION = 2


class PathCheckpoint(StateFile[PathState]):
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

    format, version, progress = FORMAT, VERSION, "n_steps"

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
        return self.read_or_write(state, resume=resume)

    def keep(self, state: PathState) -> None:
        """Write the state if it is time to."""
        if self.is_due(state):
            self.try_to_write(state)

    def end(self, state: PathState) -> None:
        """Write the last state, unless the file has it."""
        if not self.has(state):
            self.try_to_write(state)

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
