"""Reproduce the paper: ``python -m lab comparison --size small``.

Without an experiment, this lists all of them and the other benchmarks.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.data import exit_on_data_errors
from lab.measure import RESULTS, parser_for
from lab.paper.catalogue import EXPERIMENTS
from lab.paper.command import insert_pages, run_experiment
from lab.paper.experiment import Size

ALL = "all"
OTHERS = """\
Other benchmarks; each explains itself with --help:

  python -m lab.data      the data sets of the paper: what is at hand, and downloads
  python -m lab.best_known  the best values known, and proposals for better ones
  python -m lab.speed     what an offspring costs, and whole runs beside the authors' program
  python -m lab.scaling   how the cost of an offspring grows with m, n and d
  python -m lab.kmeans    one K-means run beside scikit-learn's, both single-threaded
  python -m lab.levers    what each lever of the engine brings
  python -m lab.memory    the peak of a large fit, and what is kept of a solution
  python -m lab.quality   how deep the search gets, beside the authors' program
  python -m lab.line      one dimension solved exactly, beside KMeans
  python -m lab.dask_engine  the Dask engine: speed, overhead, memory, many workers
  python -m lab.gpu       the GPU engine: whole fits, single iterations, sizes, batches
  python -m lab.cores     whole searches with more threads, also on a busy machine
  python -m lab.whole_runs  searches to their own end: time, success, what they say of it
  python -m lab.calibration  what searches say of themselves, and how often it is true
  python -m lab.rivals    all methods at equal CPU time: gaps, anytime curves, ranks
  python -m lab.ideas     ideas of the newer rivals as operators of the deep strategy
  python -m lab.large     searches that begin on samples, and rivals on large data
  python -m lab.given_up  offspring that are given up: what that saves
  python -m lab.path      whole paths of k beside separate fits
  python -m lab.criteria  which k each criterion suggests, where the truth is known
  python -m lab.proof     proofs of optimality: gaps and times
  python -m lab.models    size limits, links, cosine, outliers and kernels beside rivals
  python -m lab.planted   planted clusters in many dimensions: how many are missed
  python -m lab.saga_readings  SAGA elitist or by roulette, beside the printed figures
  python -m lab.nonsmooth  the nonsmooth methods of the paper: starts, evaluations, gaps
  python -m lab.lag       what it costs in depth that offspring are bred ahead
  python -m lab.serving   predict, transform and score beside KMeans, cold and warm
  python -m lab.first_use import, first fit ever, first fit of later processes"""


def overview() -> str:
    """Return the list of all experiments and benchmarks."""
    lines = ["Experiments of the paper, and beyond: python -m lab NAME --size small", ""]
    lines += [f"  {experiment.name:<12} {experiment.title}" for experiment in EXPERIMENTS]
    return "\n".join([*lines, f"  {ALL:<12} all of these", "", OTHERS])


def experiment_name(text: str) -> str:
    """Check the name of an experiment; argparse's own choices do not go with an empty list."""
    names = [*(experiment.name for experiment in EXPERIMENTS), ALL]
    if text not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
    return text


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for(overview())
    parser.prog = "python -m lab"
    parser.add_argument("experiments", nargs="*", type=experiment_name, metavar="NAME")
    parser.add_argument(
        "--size",
        choices=[size.value for size in Size],
        default=Size.SMALL.value,
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
        "--document",
        type=Path,
        help="also put the tables into this document (docs/paper.md); without a NAME, only that",
    )
    chosen = parser.parse_args(arguments)
    if chosen.processes < 1:
        parser.error(f"--processes {chosen.processes} must be at least 1")
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse(arguments)
    if not chosen.experiments and chosen.document is None:
        print(overview())
        return
    try:
        with exit_on_data_errors():
            run(chosen)
    except OSError as error:
        raise SystemExit(f"error: {error}") from error
    except KeyboardInterrupt:
        print("interrupted; the same command continues from here", file=sys.stderr)
        raise SystemExit(130) from None


def run(chosen: argparse.Namespace) -> None:
    """Run the experiments; one that cannot be run keeps none of the others from it."""
    size = Size(chosen.size)
    folder = chosen.results / size
    complaints = []
    for experiment in EXPERIMENTS:
        if experiment.name in chosen.experiments or ALL in chosen.experiments:
            try:
                run_experiment(
                    experiment, size, folder, chosen.processes, only_render=chosen.render
                )
            except SystemExit as error:
                complaints.append(f"{experiment.name}: {error}")
    if chosen.document is not None:
        insert_pages(chosen.document, folder)
        print(f"wrote {chosen.document}")
    if complaints:
        raise SystemExit("\n".join(complaints))


if __name__ == "__main__":
    main()
