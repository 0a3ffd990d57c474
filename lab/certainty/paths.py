"""Paths over k: how often populations that agree there are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from evomeans import HGMeansPath
from evomeans.search.certainty import path_certainty, path_features
from lab.certainty.fitting import Fitted, is_right, maximum_likelihood
from lab.certainty.problems import FEWEST, Problem, problems_of
from lab.certainty.report import Said
from lab.measure import append_row, in_parallel, read_rows

# More populations that agree must not make a path less certain, nor more clusters more.
FREE = ((None, None), (0.0, None), (None, 0.0))


@dataclass(frozen=True)
class PathEnd:
    """What a path found for one of the problems.

    Parameters
    ----------
    half, problem : str
    seed : int
    n_clusters : int
    n_agreeing : int
        Independent populations that came to the best solution.
    inertia : float
    """

    half: str
    problem: str
    seed: int
    n_clusters: int
    n_agreeing: int
    inertia: float

    @property
    def features(self) -> tuple[float, ...]:
        """What the logit is linear in."""
        return path_features(self.n_clusters, self.n_agreeing)


def collect_paths(half: str, seeds: Iterable[int], file: Path, processes: int) -> None:
    """Follow a path on each data set, up to the most clusters of its problems in a half."""
    done = {(one.half, one.problem, one.seed) for one in read_paths(file)}
    of_sets: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems_of(half):
        of_sets[problem.dataset].append(problem)
    missing = [
        (problems, seed)
        for seed in seeds
        for problems in of_sets.values()
        if (half, problems[0].name, seed) not in done
    ]
    for ends in in_parallel(follow, missing, processes):
        for end in ends:
            append_row(file, asdict(end))


def follow(problems: Sequence[Problem], seed: int) -> list[PathEnd]:
    """Follow one path with one thread; return what it found for problems of one data set."""
    ks = FEWEST, max(FEWEST + 1, *(problem.k for problem in problems))
    path = HGMeansPath(ks, criteria=(), select=None, n_jobs=1, random_state=seed)
    path.fit(problems[0].samples())
    models = [path.at(problem.k) for problem in problems]
    return [
        PathEnd(one.half, one.name, seed, one.k, model.n_rediscoveries_ + 1, model.inertia_)
        for one, model in zip(problems, models, strict=True)
    ]


def read_paths(file: Path) -> list[PathEnd]:
    """Read what paths have found."""
    return [PathEnd(**row) for row in read_rows(file)]


def fit_paths(ends: Sequence[PathEnd], best: Mapping[str, float]) -> Fitted:
    """Fit by maximum likelihood; every problem has the same weight, spread over its seeds."""
    seeds = Counter(end.problem for end in ends)
    intercept, *coefficients = maximum_likelihood(
        np.array([(1.0, *end.features) for end in ends]),
        np.array([is_right(end, best) for end in ends], dtype=float),
        np.array([1.0 / seeds[end.problem] for end in ends]),
        FREE,
    )
    return Fitted(intercept, tuple(coefficients))


def said_by(ends: Iterable[PathEnd], best: Mapping[str, float]) -> list[Said]:
    """Return what paths say of each problem, and whether it is right."""
    return [
        Said(path_certainty(end.n_clusters, end.n_agreeing), is_right(end, best)) for end in ends
    ]
