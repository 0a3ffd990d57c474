"""Whether deeper solutions of a mixture are closer to the Gaussians it was drawn from.

Run ``python -m lab.truth``; ``--mixture 200:20``, ``--samples`` and ``--limit`` (seconds of
each search, on one thread) change what is run. The mixture is one of section 4.5, see
``lab/mixtures.py``. Printed are solutions with their objective, their gap to the best of
them, the same gap on as many fresh samples of the mixture, and their centroid index (CI) to the
true means, the number of Gaussians that have no centre of their own:

  true means             K-means from the true means
  and single moves       the same, until no sample can be moved to a lower objective
  search from there      a search whose first solution that is
  search                 a search that knows nothing of the truth

The last lines give the median CI of all solutions that the second search made, by their gap to the
best solution of all. The measurements go to lab/results/truth.csv.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from typing import Any

from evomeans import HGMeans, OffspringRecord
from evomeans.engines import Start, create_engine
from evomeans.engines.protocol import LocalSearch
from evomeans.metrics import centroid_index
from lab.measure import RESULTS, Column, Samples, Table, append_row, parser_for
from lab.mixtures import N_SAMPLES, Mixture, gaussian_mixture

COLUMNS = (
    Column("solution", "solution"),
    Column("objective", "objective", "{:.8g}"),
    Column("gap", "gap", "{:.3f} %"),
    Column("fresh", "fresh gap", "{:.3f} %"),
    Column("CI", "CI"),
)
# Ends of the classes of gaps, in percent.
GAPS = (0.01, 0.03, 0.1, 0.3, 1.0, 100.0)


def from_truth(mixture: Mixture) -> list[tuple[str, float, Any]]:
    """Return solutions that begin at the true means: name, objective and centres."""
    engine = create_engine("cpu", mixture.X, None, n_jobs=1)
    means = engine.frame.encode(mixture.means)
    found = []
    for name, single_moves in (("true means", False), ("and single moves", True)):
        local_search = LocalSearch(single_moves=single_moves)
        (result,) = engine.refine([Start(means, local_search=local_search)])
        found.append((name, result.inertia, engine.frame.decode(result.centers)))
    return found


def search(
    mixture: Mixture, seconds: float, seed: int, init: Any = None
) -> tuple[float, Any, list[tuple[float, int]]]:
    """Return the objective and the centres of a search; and of all its solutions their CI."""
    made: list[tuple[float, int]] = []

    def watch(record: OffspringRecord) -> None:
        made.append((record.inertia, centroid_index(record.centers, mixture.means)))

    model = HGMeans(len(mixture.means), n_jobs=1, random_state=seed, max_time=seconds, init=init)
    model.set_params(observers=watch).fit(mixture.X)
    return model.inertia_, model.cluster_centers_, made


def objectives(X: Samples, solutions: list[Any]) -> list[float]:
    """Return the objectives of centres on other samples."""
    engine = create_engine("cpu", X, None, searching=False)
    return [engine.assign(engine.frame.encode(centers))[1] for centers in solutions]


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument("--mixture", default="200:20", help="Gaussians:dimensions")
    parser.add_argument("--samples", type=int, default=N_SAMPLES)
    parser.add_argument("--limit", type=float, default=240.0)
    parser.add_argument("--seed", type=int, default=0, help="of the searches")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    m, d = map(int, arguments.mixture.split(":"))
    both = gaussian_mixture(2 * arguments.samples, m, d, 0)
    mixture, fresh = replace(both, X=both.X[: arguments.samples]), both.X[arguments.samples :]
    solutions = from_truth(mixture)
    for name, init in (("search from there", solutions[-1][2]), ("search", None)):
        *best, made = search(mixture, arguments.limit, arguments.seed, init)
        solutions.append((name, *best))
    lowest = min(objective for _, objective, _ in solutions)
    on_fresh = objectives(fresh, [centers for *_, centers in solutions])
    table = Table(COLUMNS, "search from there")
    table.print_head()
    for (name, objective, centers), value in zip(solutions, on_fresh, strict=True):
        row = {
            "solution": name,
            "objective": objective,
            "gap": 100.0 * (objective / lowest - 1.0),
            "fresh gap": 100.0 * (value / min(on_fresh) - 1.0),
            "CI": centroid_index(centers, mixture.means),
        }
        table.print_row(row)
        setup = {"mixture": arguments.mixture, "samples": arguments.samples}
        append_row(RESULTS / "truth.csv", {**setup, "limit": arguments.limit, **row})
    for low, high in zip((-1.0, *GAPS), GAPS, strict=False):
        indices = [index for value, index in made if low < 100.0 * (value / lowest - 1.0) <= high]
        if indices:
            print(
                f"gap up to {high:g} %: {len(indices)} solutions, CI {statistics.median(indices):g}"
                f" ({min(indices)} to {max(indices)})"
            )


if __name__ == "__main__":
    main()
