"""One dimension, solved to proven optimality: how long it takes, compared with one run of KMeans.

Run with ``python -m lab line``; by default 1,000,000 samples and 50 clusters.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from evomeans.exact import cluster_line
from lab.measure import Column, Table, parser_for

COLUMNS = (
    Column("samples from", "name"),
    Column("proven optimum", "exact", "{:.1f} s"),
    Column("one KMeans", "kmeans", "{:.1f} s"),
    Column("above the optimum", "above", "{:.2f} %"),
)


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("line", __doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=50)
    arguments = parser.parse_args(given)
    rng = np.random.default_rng(0)
    cluster_line(rng.random(1000), 5)  # compiles
    table = Table(COLUMNS, "uniform")
    table.print_head()
    for name, x in {
        "uniform": rng.random(arguments.samples),
        "normal": rng.normal(size=arguments.samples),
        "cauchy": rng.standard_cauchy(arguments.samples),
    }.items():
        began = time.process_time()
        optimum = cluster_line(x, arguments.clusters)
        between = time.process_time()
        with threadpool_limits(1):
            model = KMeans(arguments.clusters, n_init=1, random_state=0).fit(x[:, None])
        ended = time.process_time()
        table.print_row(
            {
                "name": name,
                "exact": between - began,
                "kmeans": ended - between,
                "above": 100 * (model.inertia_ / optimum.inertia - 1),
            }
        )
