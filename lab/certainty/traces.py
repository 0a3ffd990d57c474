"""Searches that continue past their end, and what they know after each population.

The default search ends when it is certain enough. A trace is the same search, to the same bits,
that continues until many independent starts have led to its best solution, or the limit of
offspring is reached. So one trace tells where a search ends by any rule, with which inertia, and
after how much CPU time.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from evomeans import HGMeans
from evomeans.search.certainty import SearchEvidence, gather, work
from evomeans.search.history import OffspringRecord
from evomeans.search.settings import DEEP
from lab.certainty.problems import Problem
from lab.measure import read_rows

# Traces end when so many independent starts agree. Searches end far below.
ENOUGH = 12
MOST_OFFSPRING = 5000
DEFAULT, FAST = "default", "fast"


@dataclass(frozen=True)
class Moment:
    """What a search has found and seen at some time.

    Parameters
    ----------
    problem : str
    setting : str
        Of the search: default or fast.
    seed : int
    cpu_s : float
        Since the search began.
    offspring : int
    inertia : float
        Of the best solution so far.
    work : float
        See :func:`~evomeans.search.certainty.work`.
    has_ended : bool
        Whether a population has ended, so the search may.
    n_starts, lateness, waited
        See :class:`~evomeans.search.certainty.SearchEvidence`.
    """

    problem: str
    setting: str
    seed: int
    cpu_s: float
    offspring: int
    inertia: float
    work: float
    has_ended: bool
    n_starts: int
    lateness: float
    waited: float

    @property
    def evidence(self) -> SearchEvidence:
        """What certainty is computed from."""
        return SearchEvidence(self.n_starts, self.lateness, self.waited)


def trace(problem: Problem, seed: int, setting: str = DEFAULT, **changed: Any) -> list[Moment]:
    """Search with one thread; return the moments of the search."""
    X, seconds = problem.samples(), []

    def watch(_: OffspringRecord) -> None:
        seconds.append(time.process_time() - began)

    common: dict[str, Any] = {"n_jobs": 1, "random_state": seed, "observers": watch}
    if setting == FAST:
        model = HGMeans.fast(problem.k, certainty=1.0, **common)
    else:
        strategy = replace(DEEP, name="trace", agreement=ENOUGH)
        limits = {"max_offspring": MOST_OFFSPRING, "certainty": 0.0, **changed}
        model = HGMeans(problem.k, strategy=strategy, **common, **limits)
    began = time.process_time()
    model.fit(X)
    return list(moments(problem, setting, seed, model.history_, seconds))


def moments(
    problem: Problem,
    setting: str,
    seed: int,
    history: Sequence[OffspringRecord],
    seconds: Sequence[float],
) -> Iterable[Moment]:
    """Yield what was known after each population, and after 1, 2, 4, 8, ... solutions.

    Parameters
    ----------
    problem, setting, seed
        Of the search.
    history : sequence of OffspringRecord
    seconds : sequence of float
        CPU seconds until each record.
    """
    patience, (n, d) = DEEP.longest_wait(problem.k), problem.samples().shape
    pairs = enumerate(pairwise(history), start=1)
    ends = {made for made, (one, two) in pairs if one.population != two.population}
    ends.add(len(history))
    early = {2**power for power in range(len(history).bit_length())}
    for made in sorted(ends | early):
        last = history[made - 1]
        evidence = gather(history[:made], patience, DEEP.tolerance)
        yield Moment(
            problem.name,
            setting,
            seed,
            round(seconds[made - 1], 4),
            last.number,
            last.best,
            work(made, n, d, problem.k),
            made in ends,
            *evidence,
        )


def write_moments(path: Path, rows: Sequence[Moment]) -> None:
    """Append the moments of a search to a file."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])))
        if is_new:
            writer.writeheader()
        for row in rows:
            shown = {one: round(getattr(row, one), 4) for one in ("lateness", "waited")}
            writer.writerow({**asdict(row), "has_ended": int(row.has_ended), **shown})


@cache
def read_searches(path: Path) -> tuple[tuple[Moment, ...], ...]:
    """Read the moments of all searches, search by search."""
    rows = [Moment(**row) for row in read_rows(path)]
    return tuple(
        tuple(own) for _, own in groupby(rows, key=lambda row: (row.problem, row.setting, row.seed))
    )
