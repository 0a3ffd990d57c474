"""Solutions and histories as plain arrays, for model files and checkpoints, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.search.history import COLUMNS, History, OffspringRecord
from evomeans.search.individual import IMPROVEMENT, Individual
from evomeans.search.state import Draft
from evomeans.storage.archive import Archive, ArchiveError

Arrays = dict[str, NDArray[Any]]

BELOW_ONE = 1.0 - 2.0**-53
LONGEST_NAME = 200

POPULATION_MEMBERS = tuple(
    f"population_{name}" for name in ("centers", "inertia", "cluster_weights", "alpha")
)
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
    "population": "int64",
    "founder": "bool",
    "made_by": "int64",
    "since_improvement": "int64",
    "population_best": "float64",
    "population_median": "float64",
    "population_worst": "float64",
    "population_distinct": "int64",
}
"""``made_by`` is a place in the list of names that ``history_operators`` holds."""
HISTORY_MEMBERS = (*(f"history_{name}" for name in COLUMNS), "history_operators")
LATER_HISTORY_MEMBERS = HISTORY_MEMBERS[9:]
"""Members that model files of version 1 do not have."""


def population_to_arrays(
    population: Sequence[Individual], k: int, d: int, prefix: str = "population"
) -> Arrays:
    """Stack solutions; the engine's memory of them is left out."""
    return {
        f"{prefix}_centers": np.array([one.centers for one in population]).reshape(-1, k, d),
        f"{prefix}_inertia": np.array([one.inertia for one in population], dtype=np.float64),
        f"{prefix}_cluster_weights": np.array(
            [one.cluster_weights for one in population], dtype=np.float64
        ).reshape(-1, k),
        f"{prefix}_alpha": np.array([one.alpha for one in population], dtype=np.float64),
    }


def population_from_arrays(
    archive: Archive, k: int, d: int, prefix: str = "population"
) -> list[Individual]:
    """Return the solutions that an archive holds."""
    centers = archive.array(f"{prefix}_centers", "float64", (None, k, d))
    p = len(centers)
    inertia = archive.array(f"{prefix}_inertia", "float64", (p,), low=0.0)
    weights = archive.array(f"{prefix}_cluster_weights", "float64", (p, k), low=0.0)
    alpha = archive.array(f"{prefix}_alpha", "float64", (p,), low=0.0, high=1.0)
    return [
        # Copies: a member must not keep the whole population alive.
        Individual(centers[i].copy(), float(inertia[i]), weights[i].copy(), float(alpha[i]))
        for i in range(p)
    ]


def drafts_to_arrays(drafts: Sequence[Draft], k: int, d: int, prefix: str) -> Arrays:
    """Stack solutions that wait for their refinement."""
    codes, names = _coded([one.made_by for one in drafts])
    return {
        f"{prefix}_centers": np.array([one.centers for one in drafts]).reshape(-1, k, d),
        f"{prefix}_alpha": np.array([one.alpha for one in drafts], dtype=np.float64),
        f"{prefix}_quantile": np.array([one.quantile for one in drafts], dtype=np.float64),
        f"{prefix}_removed": np.array([one.removed for one in drafts], dtype=np.int64),
        f"{prefix}_made_by": codes,
        f"{prefix}_operators": names,
    }


def drafts_from_arrays(archive: Archive, k: int, d: int, prefix: str) -> list[Draft]:
    """Return the solutions that wait in an archive."""
    centers = archive.array(f"{prefix}_centers", "float64", (None, k, d))
    q = len(centers)
    alpha = archive.array(f"{prefix}_alpha", "float64", (q,), low=0.0, high=1.0).tolist()
    quantile = archive.array(f"{prefix}_quantile", "float64", (q,), low=0.0, high=BELOW_ONE)
    removed = archive.array(f"{prefix}_removed", "int64", (q,), low=-1, high=k - 1).tolist()
    names = _names(archive, f"{prefix}_operators")
    made_by = archive.array(f"{prefix}_made_by", "int64", (q,), low=0, high=len(names) - 1)
    return [
        Draft(centers[i].copy(), alpha[i], float(quantile[i]), removed[i], names[made_by[i]])
        for i in range(q)
    ]


def history_to_arrays(history: History) -> Arrays:
    """Return one array per field of the records."""
    codes, names = _coded([record.made_by for record in history])
    arrays = {
        f"history_{name}": history.column(name).astype(kind)
        for name, kind in HISTORY_TYPES.items()
        if name != "made_by"
    }
    return {**arrays, "history_made_by": codes, "history_operators": names}


def history_from_arrays(archive: Archive) -> History:
    """Return the history that an archive holds."""
    columns = {
        name: archive.array(f"history_{name}", kind, (None,), low=0.0).tolist()
        for name, kind in HISTORY_TYPES.items()
        # All of the later ones, or none.
        if f"history_{name}" not in LATER_HISTORY_MEMBERS or "history_population" in archive.arrays
    }
    if "made_by" in columns:
        names = _names(archive, "history_operators")
        if max(columns["made_by"], default=0) >= max(1, len(names)):
            raise ArchiveError("its history names an operator that it does not list")
        columns["made_by"] = [names[code] for code in columns["made_by"]]
    if len({len(column) for column in columns.values()}) > 1:
        raise ArchiveError("the columns of its history differ in length")
    if "population" not in columns:
        columns |= _derived_columns(columns)
    rows = zip(*columns.values(), strict=True)
    records = [OffspringRecord(**dict(zip(columns, row, strict=True))) for row in rows]
    return History(records)


def _derived_columns(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Complete a history of version 1, as far as it can be told from the rest.

    A founder has the number of the offspring before it, and the first of a population is alone.
    """
    names = ("number", "population_size", "inertia")
    populations: list[int] = []
    founders: list[bool] = []
    since: list[int] = []
    last, improved, lowest = 0, 0, float("inf")
    for number, size, inertia in zip(*(columns[name] for name in names), strict=True):
        is_founder = number == last
        is_new = is_founder and size == 1
        if is_new or inertia < lowest * (1.0 - IMPROVEMENT):
            lowest, improved = inertia, number
        populations.append((populations[-1] if populations else 0) + is_new)
        founders.append(is_founder)
        since.append(number - improved)
        last = number
    return {"population": populations, "founder": founders, "since_improvement": since}


def _coded(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the place of each text in a list of different ones, and that list as code points."""
    names = list(dict.fromkeys(texts))
    codes = np.array([names.index(text) for text in texts], dtype=np.int64)
    return codes, np.array([ord(letter) for letter in "\n".join(names)], dtype=np.int64)


def _names(archive: Archive, member: str) -> list[str]:
    points = archive.array(member, "int64", (None,), low=0, high=0x10FFFF).tolist()
    names = "".join(map(chr, points)).split("\n")
    if any(len(name) > LONGEST_NAME for name in names):
        raise ArchiveError(f"its {member} has a name that is too long")
    return names
