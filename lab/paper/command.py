"""Reproduce the paper: ``python -m lab paper comparison --size small``.

Without an experiment, this lists all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.measure import RESULTS, parser_for
from lab.paper.catalogue import EXPERIMENTS
from lab.paper.experiment import Size
from lab.paper.pages import insert_pages, run_experiment

ALL = "all"


def overview() -> str:
    """Return the list of all experiments."""
    lines = ["Experiments of the paper, and beyond: python -m lab paper NAME --size small", ""]
    lines += [f"  {experiment.name:<12} {experiment.title}" for experiment in EXPERIMENTS]
    return "\n".join([*lines, f"  {ALL:<12} all of these"])


def experiment_name(text: str) -> str:
    """Check the name of an experiment; argparse's own choices do not go with an empty list."""
    names = [*(experiment.name for experiment in EXPERIMENTS), ALL]
    if text not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
    return text


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("paper", overview())
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
        help="also put the tables into this document (docs/laboratory/paper.md); "
        "without a NAME, only that",
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
