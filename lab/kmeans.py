"""One K-means run of the CPU engine compared with scikit-learn's Lloyd, both on one thread.

Run with ``python -m lab kmeans``, or with cases of your own: ``dataset:clusters`` for a data
set in EVOMEANS_DATA, ``mixture:n:d:clusters`` for a mixture of Gaussians of which typical centres
are ``--separation`` deviations apart.

Both programs start from the same centres and run to the fixed point, in turns, so that a noisy
machine hurts both. Random starts are samples. Child starts are bred from the population of a short
search as the search itself does it: tournaments, crossover, one relocation; ours also gets what it
remembers of the parent, as in a search. Ratios are those of CPU times. The columns:

  random, child   our time, and how many times faster than scikit-learn we are
  equal           starts from which both reached the same inertia (to 1e-9); they may part where
                  a cluster runs empty, which the two repair differently, or where a sample is as
                  close to one centre as to another
  float32         how many times faster the short search is in single precision (CPU time)
  2 threads       how many times faster it is with two threads (wall time)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evomeans.engines import Order, create_engine
from evomeans.search import Individual, SearchSettings, solve
from evomeans.search.crossover import Breeding, squared_matching_crossover
from evomeans.search.population import different_parents
from lab.anatomy import bare_seconds, gain_from_threads, relocated_start, warm_up
from lab.measure import (
    Column,
    Samples,
    Table,
    parser_for,
    timed,
    timed_lloyd,
)
from lab.setups import KMEANS_RUNS, SEPARATION, samples_of

SAME_INERTIA = 1e-9
COLUMNS = (
    Column("case", "case"),
    Column("n", "n"),
    Column("d", "d"),
    Column("m", "m"),
    Column("random", "random_s", "{:.1f} ms", 1e3),
    Column("sklearn", "random_theirs_s", "{:.1f} ms", 1e3),
    Column("ratio", "random_ratio", "{:.1f}x"),
    Column("child", "child_s", "{:.1f} ms", 1e3),
    Column("sklearn", "child_theirs_s", "{:.1f} ms", 1e3),
    Column("ratio", "child_ratio", "{:.1f}x"),
    Column("equal", "equal"),
    Column("float32", "float32", "{:.2f}x"),
    Column("2 threads", "two_threads", "{:.2f}x"),
)


@dataclass(frozen=True)
class Comparison:
    """Runs of both programs from the same starts.

    Parameters
    ----------
    ours, theirs : float
        CPU seconds in all.
    equal : int
        Runs that ended in the same inertia.
    """

    ours: float
    theirs: float
    equal: int


def compare(engine: Any, X: Samples, starts: Sequence[Order]) -> Comparison:
    """Run both programs from every start, in turns."""
    ours = theirs = 0.0
    equal = 0
    for start in starts:
        (refinement,), seconds = timed(partial(engine.refine, [start]))
        ours += seconds
        init = engine.frame.decode(start.centers)
        model, seconds = timed_lloyd(X, len(init), init)
        theirs += seconds
        equal += math.isclose(refinement.inertia, model.inertia_, rel_tol=SAME_INERTIA)
    return Comparison(ours, theirs, equal)


def random_starts(engine: Any, m: int, count: int) -> list[Order]:
    """Return starts at distinct random samples."""
    rng = np.random.default_rng(0)
    n = engine.n_samples
    return [
        Order(engine.samples_at((rng.choice(n, m, replace=False) + 0.5) / n)) for _ in range(count)
    ]


def child_starts(
    engine: Any, population: Sequence[Individual], power: int, count: int
) -> list[Order]:
    """Breed children and relocate one centre of each, as the search does."""
    rng = np.random.default_rng(0)
    return [relocated_start(engine, bred(engine, population, power, rng)) for _ in range(count)]


def bred(
    engine: Any, population: Sequence[Individual], power: int, rng: np.random.Generator
) -> Order:
    """Return the child of two selected parents, with a centre that is to be relocated."""
    parents = different_parents(population, rng.random(4).tolist())
    m = len(parents[0].centers)
    child = squared_matching_crossover(*parents, Breeding(engine, rng.random(m), 0.5))
    return Order(
        child.centers,
        alpha=(parents[0].alpha + parents[1].alpha) / 2.0,
        quantile=rng.random(),
        removed=int(rng.integers(m)),
        power=power,
        parent=child.parent.handle,
    )


def measure(case: str, X: Samples, m: int, runs: int, settings: SearchSettings) -> dict[str, Any]:
    """Fill a row of the table."""
    warm_up(X, m)
    engine = create_engine("cpu", X, None)
    population = solve(engine, m, settings, np.random.default_rng(1)).population
    random = compare(engine, X, random_starts(engine, m, runs))
    child = compare(engine, X, child_starts(engine, population, settings.roulette_power, runs))
    return {
        "case": case,
        "n": X.shape[0],
        "d": X.shape[1],
        "m": m,
        "random_s": random.ours / runs,
        "random_theirs_s": random.theirs / runs,
        "random_ratio": random.theirs / random.ours,
        "child_s": child.ours / runs,
        "child_theirs_s": child.theirs / runs,
        "child_ratio": child.theirs / child.ours,
        "equal": f"{random.equal + child.equal}/{2 * runs}",
        "float32": gain_from_single_precision(X, m, settings),
        "two_threads": gain_from_threads(X, m, settings),
    }


def gain_from_single_precision(X: Samples, m: int, settings: SearchSettings) -> float:
    """How many times faster a search is, engine included, if the samples come in float32."""
    seconds = {np.float32: math.inf, np.float64: math.inf}
    for _ in range(2):
        for kind in seconds:
            seconds[kind] = min(seconds[kind], bare_seconds(X.astype(kind), m, settings))
    return seconds[np.float64] / seconds[np.float32]


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("kmeans", __doc__)
    parser.add_argument("cases", nargs="*", help="dataset:clusters or mixture:n:d:clusters")
    parser.add_argument("--runs", type=int, default=5, help="of each kind of start")
    parser.add_argument("--offspring", type=int, default=50, help="of the short search")
    parser.add_argument("--separation", type=float, default=SEPARATION, help="of mixtures")
    arguments = parser.parse_args(given)
    settings = SearchSettings(5, 10, max_offspring=arguments.offspring)
    cases = arguments.cases or KMEANS_RUNS
    table = Table(COLUMNS, max(cases, key=len))
    table.print_head()
    for case in cases:
        X, m = samples_of(case, arguments.separation)
        table.print_row(measure(case, X, m, arguments.runs, settings))
