"""Populations and histories as plain arrays, for model files and checkpoints, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Start
from evomeans.search.history import COLUMNS, History, OffspringRecord
from evomeans.search.individual import Individual
from evomeans.storage.archive import Archive, ArchiveError

Arrays = dict[str, NDArray[Any]]

BELOW_ONE = 1.0 - 2.0**-53

POPULATION_MEMBERS = tuple(
    f"population_{name}" for name in ("centers", "inertia", "cluster_weights", "alpha")
)
ROUND_MEMBERS = tuple(f"round_{name}" for name in ("centers", "alpha", "quantile", "removed"))
HISTORY_TYPES = {
    "number": "int64",
    "inertia": "float64",
    "best": "float64",
    "alpha": "float64",
    "n_iter": "int64",
    "seconds": "float64",
    "population_size": "int64",
    "accepted": "bool",
    "clone": "bool",
}
HISTORY_MEMBERS = tuple(f"history_{name}" for name in COLUMNS)


def population_to_arrays(population: Sequence[Individual], k: int, d: int) -> Arrays:
    """Stack the members of a population; the engine's memory of them is left out."""
    return {
        "population_centers": np.array([one.centers for one in population]).reshape(-1, k, d),
        "population_inertia": np.array([one.inertia for one in population], dtype=np.float64),
        "population_cluster_weights": np.array(
            [one.cluster_weights for one in population], dtype=np.float64
        ).reshape(-1, k),
        "population_alpha": np.array([one.alpha for one in population], dtype=np.float64),
    }


def population_from_arrays(archive: Archive, k: int, d: int) -> list[Individual]:
    """Return the members that an archive holds."""
    centers = archive.array("population_centers", "float64", (None, k, d))
    p = len(centers)
    inertia = archive.array("population_inertia", "float64", (p,), low=0.0)
    weights = archive.array("population_cluster_weights", "float64", (p, k), low=0.0)
    alpha = archive.array("population_alpha", "float64", (p,), low=0.0, high=1.0)
    return [
        # Copies: a member must not keep the whole population alive.
        Individual(centers[i].copy(), float(inertia[i]), weights[i].copy(), float(alpha[i]))
        for i in range(p)
    ]


def round_to_arrays(starts: Sequence[Start], k: int, d: int) -> Arrays:
    """Stack starts that wait for their turn."""
    return {
        "round_centers": np.array([one.centers for one in starts]).reshape(-1, k, d),
        "round_alpha": np.array([one.alpha for one in starts], dtype=np.float64),
        "round_quantile": np.array([one.quantile for one in starts], dtype=np.float64),
        "round_removed": np.array([one.removed for one in starts], dtype=np.int64),
    }


def round_from_arrays(archive: Archive, k: int, d: int, start: Callable[..., Start]) -> list[Start]:
    """Return the starts that an archive holds, made by ``start``."""
    centers = archive.array("round_centers", "float64", (None, k, d))
    q = len(centers)
    alpha = archive.array("round_alpha", "float64", (q,), low=0.0, high=1.0).tolist()
    quantile = archive.array("round_quantile", "float64", (q,), low=0.0, high=BELOW_ONE).tolist()
    removed = archive.array("round_removed", "int64", (q,), low=-1, high=k - 1).tolist()
    return [start(centers[i].copy(), alpha[i], quantile[i], removed[i]) for i in range(q)]


def history_to_arrays(history: History) -> Arrays:
    """Return one array per field of the records."""
    return {f"history_{name}": history.column(name).astype(HISTORY_TYPES[name]) for name in COLUMNS}


def history_from_arrays(archive: Archive) -> History:
    """Return the history that an archive holds."""
    columns = [
        archive.array(f"history_{name}", HISTORY_TYPES[name], (None,), low=0.0).tolist()
        for name in COLUMNS
    ]
    if len({len(column) for column in columns}) > 1:
        raise ArchiveError("the columns of its history differ in length")
    return History([OffspringRecord(*record) for record in zip(*columns, strict=True)])
