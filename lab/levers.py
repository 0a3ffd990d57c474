"""What each lever of the engine brings: searches with one of them off.

Run with ``python -m lab.levers``; set-ups of your own as in ``letters:50 skin:10``. All
searches of a set-up have the same seed and the same number of offspring, on one thread; what is
compared is the CPU time of an offspring. The columns:

  all        with all levers, and next to it how many times slower without one of them:
  parent     children do not start from what is known of their parent, but from nothing
  order      samples stay in the order of the data instead of standing next to neighbours
  bounds     every K-means iteration compares all samples anew; not run, but computed: iterations
             of an offspring times one assignment of all samples to given centres
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from evomeans.engines import Refinement, Start, create_engine
from evomeans.engines.protocol import Mating
from evomeans.search import SearchSettings
from lab.anatomy import dissect
from lab.data import exit_on_data_errors, load
from lab.measure import Column, Samples, Table, parse_setup, parser_for, timed

DEFAULT = ("tsplib3038:50", "pendigit:20", "letters:50", "skin:10", "partial_gas_sensor:25")
COLUMNS = (
    Column("set-up", "setup"),
    Column("all", "all_s", "{:.2f} ms", 1e3),
    Column("parent", "parent", "{:.2f}x"),
    Column("order", "order", "{:.2f}x"),
    Column("bounds", "bounds", "{:.2f}x"),
)


class Orphanage:
    """An engine whose children know nothing of their parents.

    Parameters
    ----------
    engine : CpuEngine
        Does the work.
    """

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def offspring(self, mating: Mating) -> None:
        """Let offspring be made step by step."""

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """Refine without the parents."""
        return self.engine.refine([replace(start, parent=None) for start in starts])


def order_off() -> AbstractContextManager[Any]:
    """Leave samples in the order of the data."""

    def as_given(X: Samples, *_: Any) -> Any:
        return np.arange(X.shape[0], dtype=np.uint32)

    return patch("evomeans.engines.cpu.samples.neighbour_order", as_given)


def measure(setup: str, offspring: int) -> dict[str, Any]:
    """Fill a row of the table."""
    name, m = parse_setup(setup)
    X = load(name)
    settings = SearchSettings(max_offspring=offspring, patience=offspring)
    search = partial(dissect, X, m, settings, probe=False)
    full = search()
    orphans = search(adapt=Orphanage)
    with order_off():
        unordered = search()
    return {
        "setup": setup,
        "all_s": full.each,
        "parent": orphans.each / full.each,
        "order": unordered.each / full.each,
        "bounds": full.iterations * assignment_seconds(X, m) / full.each,
    }


def assignment_seconds(X: Samples, m: int, repeats: int = 5) -> float:
    """CPU seconds to assign all samples to centres of which nothing is known."""
    engine = create_engine("cpu", X, None)
    (solution,) = engine.refine([Start(engine.samples_at((np.arange(m) + 0.5) / m))])
    return statistics.fmean(
        timed(partial(engine.assign, solution.centers))[1] for _ in range(repeats)
    )


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters, e.g. letters:50")
    parser.add_argument("--offspring", type=int, default=200, help="of each search")
    arguments = parser.parse_args()
    setups = arguments.setups or DEFAULT
    table = Table(COLUMNS, max(setups, key=len))
    table.print_head()
    for setup in setups:
        table.print_row(measure(setup, arguments.offspring))


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
