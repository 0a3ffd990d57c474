"""Tasks that most experiments are made of: one method on one data set with one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lab.data import DATASETS, Dataset, is_available
from lab.measure import parse_setup
from lab.paper.experiment import Row, Size
from lab.paper.methods import Method, Result
from lab.paper.problems import Problem, problem

# Numbers in the largest data set of a small run, Skin's 735,171.
LARGEST_SMALL = 750_000


@dataclass(frozen=True)
class MethodTask:
    """Fit a method to a data set.

    Parameters
    ----------
    dataset : str
        A name that :func:`~lab.paper.problems.problem` knows.
    clusters : tuple of int
        Numbers of clusters: several for methods that return a path, one for all others.
    method : Method
    seed : int
    extra : callable, optional
        From the problem and the result to further columns.
    """

    dataset: str
    clusters: tuple[int, ...]
    method: Method
    seed: int
    extra: Callable[[Problem, Result], Row] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Data set, clusters, method and seed."""
        clusters = ",".join(str(m) for m in self.clusters)
        return self.dataset, clusters, self.method.name, str(self.seed)

    def run(self) -> list[Row]:
        """Fit, and return a row per result."""
        given = problem(self.dataset)
        rows: list[Row] = []
        for result in self.method.run(given.X, self.clusters, self.seed):
            row = row_of(self.dataset, given, result, self.seed)
            rows.append(row if self.extra is None else {**row, **self.extra(given, result)})
        return rows


@dataclass(frozen=True)
class SeedTask:
    """Something to be run on a problem, with one seed.

    Parameters
    ----------
    dataset : str
    m : int
    seed : int
    """

    dataset: str
    m: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """Set-up and seed."""
        return self.dataset, str(self.m), str(self.seed)


def row_of(dataset: str, given: Problem, result: Result, seed: int) -> Row:
    """Return the columns that all experiments have."""
    n, d = given.X.shape
    return {
        "dataset": dataset,
        "n": n,
        "d": d,
        "m": result.m,
        "method": result.method,
        "seed": seed,
        "inertia": result.inertia,
        "cpu_s": round(result.cpu_s, 6),
    }


def method_tasks(
    dataset: str, clusters: Sequence[int], methods: Iterable[Method], seeds: int
) -> Iterator[MethodTask]:
    """Yield a task for every method, number of clusters and seed; one for a whole path."""
    for method in methods:
        together = [tuple(clusters)] if method.is_path else [(m,) for m in clusters]
        for group in together:
            for seed in range(seeds if method.is_random else 1):
                yield MethodTask(dataset, group, method, seed)


def at_hand(datasets: Iterable[Dataset]) -> tuple[list[Dataset], list[str]]:
    """Split data sets into those that can be loaded without a download, and names of the rest."""
    wanted = list(datasets)
    found = [dataset for dataset in wanted if is_available(dataset.name)]
    return found, [dataset.name for dataset in wanted if dataset not in found]


def not_larger(datasets: Iterable[Dataset], size: Size) -> list[Dataset]:
    """Leave out what takes a small run too long, whatever is available."""
    return [one for one in datasets if size is not Size.SMALL or one.n * one.d <= LARGEST_SMALL]


def in_groups(*groups: str) -> list[Dataset]:
    """Return the data sets of these groups of the paper's Table 1."""
    return [dataset for dataset in DATASETS if dataset.group in groups]


def split_setups(setups: Iterable[str]) -> tuple[list[tuple[str, int]], list[str]]:
    """Split problems like ``liver:30`` into those whose data is available, and data that is not."""
    parsed = [parse_setup(setup) for setup in setups]
    found = [setup for setup in parsed if is_available(setup[0])]
    return found, sorted({name for name, _ in parsed} - {name for name, _ in found})
