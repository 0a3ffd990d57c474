"""The two readings of SAGA's publication, beside what the paper prints for it.

Run ``python -m lab.saga_readings`` (minutes), or name data sets. Gaps are in percent of the
best value known, averaged over 5, 10, 20, 30 and 50 clusters and all seeds; the paper's are of its
Table 2, less what it prints for HG-means. Data sets come from the folder EVOMEANS_DATA, or are
downloaded.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lab.baselines import SAGA
from lab.best_known import best_known
from lab.data import exit_on_data_errors, load
from lab.measure import Column, Table, parser_for
from lab.paper.methods import HG_MEANS
from lab.paper.printed import printed

DATASETS = ("heart", "ionosphere", "pima", "breast_cancer", "liver")
CLUSTERS = (5, 10, 20, 30, 50)
TABLE = 2
COLUMNS = (
    Column("data set", "dataset"),
    Column("elitist", "elitist", "{:.2f}"),
    Column("roulette", "roulette", "{:.2f}"),
    Column("printed", "printed", "{:.2f}"),
)


def mean_gap(dataset: str, reading: str, n_seeds: int) -> float:
    """Return the mean gap in percent."""
    X, gaps = load(dataset), []
    for m in CLUSTERS:
        known = best_known(dataset, m)
        assert known is not None
        for seed in range(n_seeds):
            model = SAGA(m, reading=reading, random_state=seed).fit(X)
            gaps.append(100.0 * (model.inertia_ / known.value - 1.0))
    return statistics.fmean(gaps)


def above_hg_means(dataset: str) -> float | None:
    """Return what the paper prints for SAGA above HG-means."""
    theirs = printed(TABLE, "gap", dataset=dataset, method="SAGA")
    best = printed(TABLE, "gap", dataset=dataset, method=HG_MEANS)
    return None if theirs is None or best is None else theirs - best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_for(__doc__)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--seeds", type=int, default=2)
    chosen = parser.parse_args(arguments)
    table = Table(COLUMNS, max(chosen.datasets, key=len))
    table.print_head()
    with exit_on_data_errors():
        for dataset in chosen.datasets:
            row = {one: mean_gap(dataset, one, chosen.seeds) for one in ("elitist", "roulette")}
            table.print_row({"dataset": dataset, **row, "printed": above_hg_means(dataset)})


if __name__ == "__main__":
    main()
