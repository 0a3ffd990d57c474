"""How long the crossovers of many centres take, compared with the K-means that follows.

Run ``python -m lab crossovers`` for 200,000 × 96 samples and 10,000 clusters, which takes about two
minutes of one thread, or choose: ``--rows 20000 --features 384 --clusters 1000``. Samples are a
mixture of a normal cloud for every four clusters, as noisy as its centres are far apart. The
parents are two K-means runs from random samples.

The seconds are those of one thread, without swaps, the least of ``--rounds``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from evomeans.engines import Order, create_engine
from evomeans.search.crossover import (
    Breeding,
    Crossing,
    merging_crossover,
    squared_matching_crossover,
)
from evomeans.search.population import Individual
from lab.measure import Column, Table, mixture, parser_for

COLUMNS = (
    Column("crossover", "name", "{}"),
    Column("seconds", "crossover", "{:.3f} s"),
    Column("K-means", "kmeans", "{:.2f} s"),
    Column("of both", "share", "{:.0f} %", 100.0),
)


def least(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the shortest CPU time of some rounds, and what the last one returned."""
    times, result = [], None
    for _ in range(rounds):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return min(times), result


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_for("crossovers", __doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=96)
    parser.add_argument("--clusters", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(arguments)
    k, rng = args.clusters, np.random.default_rng(0)
    X = mixture(args.rows, args.features, k // 4, math.sqrt(2 * args.features))
    engine = create_engine("cpu", X.astype(np.float32), None)
    starts = [Order(engine.samples_at(rng.random(k))) for _ in range(2)]
    first, second = (Individual.of(engine.refine([start])[0], 0.5) for start in starts)
    breeding, table = Breeding(engine, rng.random(k), 0.5), Table(COLUMNS, "squared matching")
    table.print_head()
    for crossover in (merging_crossover, squared_matching_crossover):
        crossing, child = least(args.rounds, partial(crossover, first, second, breeding))
        order = Order(child.centers, parent=child.parent.handle)
        kmeans, _ = least(args.rounds, partial(engine.refine, [order]))
        row = {"name": Crossing(crossover).name, "crossover": crossing, "kmeans": kmeans}
        table.print_row({**row, "share": crossing / (crossing + kmeans)})
