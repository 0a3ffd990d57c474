"""Whole searches of two versions, in turns, to see whether this one is as fast as the other.

Run ``python -m lab side_by_side --against REV`` for the problems of ``make bench``, or name
some: ``letters:50 mixture:50000:100:100``. Data sets are looked up as in docs/laboratory/data.md.

Each version runs in a process of its own. Searches alternate between the two, with the same seed,
on one thread, so that a noisy machine hurts both. Both make the same number of solutions, founders
and offspring: that with which one of them would end, and no more than the size of the samples
allows. A round takes a few minutes. Compilation is excluded. The columns:

  solutions    how many each of them makes
  before, now  CPU seconds of a fit, the least of all rounds
  CPU          now by before: less than 1 is faster
  wall         the same for wall time: the median of the ratios of the rounds
  result       "same", or by how much the inertia of this version is higher
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lab.measure import Column, Samples, Table, geometric_mean, parser_for
from lab.revisions import ROOT, environment_of, source_of
from lab.setups import KMEANS_RUNS, SEARCHES, samples_of

# Searches get about this many products n·m·d per iteration of all their offspring.
WORK, FEWEST, MOST = 4e8, 20, 1000
COLUMNS = (
    Column("problem", "setup"),
    Column("solutions", "solutions"),
    Column("before", "before_s", "{:.2f} s"),
    Column("now", "now_s", "{:.2f} s"),
    Column("CPU", "cpu", "{:.3f}x"),
    Column("wall", "wall", "{:.3f}x"),
    Column("result", "result"),
)

Answer = dict[str, Any]


class Version:
    """A process that runs searches with the package in one source tree.

    Parameters
    ----------
    process : Popen
        Runs lab.search_worker.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def search(self, request: dict[str, Any]) -> Answer:
        """Run a search and wait for what it took."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("The process that runs the searches has ended; see its message above.")
        answer: Answer = json.loads(line)
        return answer


@contextmanager
def started(source: Path) -> Iterator[Version]:
    """Start the process for a source tree, and end it afterwards."""
    command = [sys.executable, "-m", "lab.search_worker", str(source)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment_of(source), **pipes) as process:
        yield Version(process)


def compare(
    versions: Sequence[Version], setup: str, rounds: int, seeds: int, folder: Path
) -> dict[str, Any]:
    """Run the searches of a problem in turns; return a row of the table."""
    X, m = samples_of(setup)
    path = folder / f"{setup.replace(':', '-')}.npy"
    np.save(path, X)
    request = {"samples": str(path), "clusters": m, "offspring": offspring_for(X, m)}
    answers: dict[int, list[tuple[Answer, Answer]]] = {seed: [] for seed in range(seeds)}
    most = {seed: fewest_solutions(versions, {**request, "seed": seed}) for seed in answers}
    for number in range(rounds):
        # The first of a pair may find another machine than the second.
        turn = -1 if number % 2 else 1
        for seed, pairs in answers.items():
            asked = {**request, "seed": seed, "solutions": most[seed]}
            found = [version.search(asked) for version in versions[::turn]]
            before, now = found[::turn]
            pairs.append((before, now))
    return {"setup": setup, **summary(answers)}


def fewest_solutions(versions: Sequence[Version], request: dict[str, Any]) -> int:
    """Return the number of solutions with which one of the versions ends first."""
    return min(int(version.search(request)["solutions"]) for version in versions)


def offspring_for(X: Samples, m: int) -> int:
    """Return a number of offspring that takes seconds."""
    return int(min(MOST, max(FEWEST, WORK / (X.size * m))))


def summary(answers: dict[int, list[tuple[Answer, Answer]]]) -> dict[str, Any]:
    """Sum up the searches of a problem, which are given by seed."""
    before, now = (
        sum(min(pair[side]["cpu"] for pair in pairs) for pairs in answers.values())
        for side in (0, 1)
    )
    pairs = [pair for of_seed in answers.values() for pair in of_seed]
    excess = max(now["inertia"] / before["inertia"] - 1.0 for before, now in pairs)
    same = all(before["inertia"] == now["inertia"] for before, now in pairs)
    return {
        "solutions": pairs[0][1]["solutions"],
        "before_s": before / len(answers),
        "now_s": now / len(answers),
        "cpu": now / before,
        "wall": statistics.median(now["wall"] / before["wall"] for before, now in pairs),
        "result": "same" if same else f"{100.0 * excess:+.4f} %",
    }


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("side_by_side", __doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters or mixture:n:d:clusters")
    parser.add_argument("--against", metavar="REV", required=True, help="the version before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    setups = arguments.setups or list(dict.fromkeys(SEARCHES + KMEANS_RUNS))
    table = Table(COLUMNS, max(setups, key=len))
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sources = (source_of(arguments.against), ROOT / "src")
        versions = [stack.enter_context(started(source)) for source in sources]
        table.print_head()
        for setup in setups:
            rows.append(compare(versions, setup, arguments.rounds, arguments.seeds, folder))
            table.print_row(rows[-1])
    means = [geometric_mean(row[key] for row in rows) for key in ("cpu", "wall")]
    print(f"geometric mean: CPU {means[0]:.3f}x, wall {means[1]:.3f}x")
    different = [row["setup"] for row in rows if row["result"] != "same"]
    print(f"other results: {', '.join(different)}" if different else "all results are the same")
