"""Reproduce the paper: ``python -m benchmarks comparison --size small``.

Without an experiment, this lists all of them and the other benchmarks.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.measure import RESULTS, parser_for
from benchmarks.paper.catalogue import EXPERIMENTS
from benchmarks.paper.command import insert_pages, run_experiment
from benchmarks.paper.experiment import Size

ALL = "all"
OTHERS = """\
Other benchmarks; each explains itself with --help:

  python -m benchmarks.data      the data sets of the paper: what is at hand, and downloads
  python -m benchmarks.best_known  the best values known, and proposals for better ones
  python -m benchmarks.speed     what an offspring costs, and whole runs beside the authors' program
  python -m benchmarks.scaling   how the cost of an offspring grows with m, n and d
  python -m benchmarks.kmeans    one K-means run beside scikit-learn's, both single-threaded
  python -m benchmarks.levers    what each lever of the engine brings
  python -m benchmarks.memory    the peak of a large fit, and what is kept of a solution
  python -m benchmarks.quality   how deep the search gets, beside the authors' program
  python -m benchmarks.line      one dimension solved exactly, beside KMeans
  python -m benchmarks.gpu       the GPU engine: whole fits, single iterations, sizes, batches
  python -m benchmarks.first_use import, first fit ever, first fit of later processes"""


def overview() -> str:
    """Return the list of all experiments and benchmarks."""
    lines = ["Experiments of the paper, and beyond: python -m benchmarks NAME --size small", ""]
    lines += [f"  {experiment.name:<12} {experiment.title}" for experiment in EXPERIMENTS]
    return "\n".join([*lines, f"  {ALL:<12} all of these", "", OTHERS])


def parse() -> argparse.Namespace:
    names = [experiment.name for experiment in EXPERIMENTS]
    parser = parser_for(overview())
    parser.add_argument("experiments", nargs="*", choices=[*names, ALL, []], metavar="NAME")
    parser.add_argument(
        "--size",
        type=Size,
        choices=list(Size),
        default=Size.SMALL,
        help="smoke takes seconds, small minutes, paper is as printed (default: small)",
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="default: one per core"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS / "paper",
        help="folder of the results; rows that are there are not measured again",
    )
    parser.add_argument(
        "--render", action="store_true", help="only write the pages anew from the rows"
    )
    parser.add_argument(
        "--document", type=Path, help="also put the tables into this document (docs/paper.md)"
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    if not arguments.experiments:
        print(overview())
        return
    if arguments.processes < 1:
        raise SystemExit(f"--processes {arguments.processes} must be at least 1.")
    folder = arguments.results / arguments.size
    for experiment in EXPERIMENTS:
        if experiment.name in arguments.experiments or ALL in arguments.experiments:
            run_experiment(
                experiment,
                arguments.size,
                folder,
                arguments.processes,
                only_render=arguments.render,
            )
    if arguments.document is not None:
        insert_pages(arguments.document, folder)
        print(f"wrote {arguments.document}")


if __name__ == "__main__":
    main()
