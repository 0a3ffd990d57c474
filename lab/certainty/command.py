"""How certain searches are, and how often they are right: problems, traces, fit and report.

The commands, in the order in which they are needed:

  collect  trace searches on the problems of one half, and append what was seen to its file
  long     search longer on problems whose seeds disagree, for lower best known values
  fit      fit the coefficients of evomeans.search.certainty to the development half
  report   success, CPU time, calibration and Brier score on the report half

Run ``python -m lab certainty collect --half development --seeds 6``, the same with ``--half report
--first-seed 3000``, and the latter with ``--fast``; it takes two hours of CPU time, which
``--processes`` divides. Then ``long`` for both, ``fit`` and ``report``. ``--paths`` does the same
for HGMeansPath, after the searches, whose best values it is judged by. Data sets are looked up as
in docs/laboratory/data.md. The best known value of a problem is the lowest that any of these
searches has found, or the one of ``python -m lab best_known``.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evomeans.estimators.parameters import DEFAULT_CERTAINTY
from evomeans.search.certainty import certainty
from lab.best_known import all_known
from lab.certainty.fitting import Fitted, Found, fit
from lab.certainty.paths import collect_paths, fit_paths, read_paths, said_by
from lab.certainty.problems import DEVELOPMENT, HALVES, REPORT, Problem, problems_of
from lab.certainty.report import draw, ended, print_calibration, print_report
from lab.certainty.traces import DEFAULT, FAST, Moment, read_searches, trace, write_moments
from lab.measure import RESULTS, in_parallel, parser_for

LONG = "long"
LONGER = {"max_offspring": 20_000}
# Long searches have seeds of their own.
LONG_SEEDS = (5000, 5001)


def file_of(half: str, folder: Path) -> Path:
    """Return the file with the moments of a half."""
    return folder / f"certainty-{half}.csv"


def best_values(searches: Sequence[Sequence[Found]]) -> dict[str, float]:
    """Return the best known value of each problem."""
    best = {f"{name}:{k}": known.value for (name, k), known in all_known().items()}
    for search in searches:
        last = search[-1]
        best[last.problem] = min(best.get(last.problem, last.inertia), last.inertia)
    return best


def collect(half: str, setting: str, seeds: Sequence[int], folder: Path, processes: int) -> None:
    """Trace all searches that the file does not have yet."""
    path = file_of(half, folder)
    done = {(s[0].problem, s[0].setting, s[0].seed) for s in read_searches(path)}
    # What a search needs is compiled before its time is taken.
    trace(problems_of(half)[0], 0)
    missing = [
        (problem, seed, setting)
        for seed in seeds
        for problem in problems_of(half)
        if (problem.name, setting, seed) not in done
    ]
    for rows in in_parallel(trace, missing, processes):
        write_moments(path, rows)


def search_longer(half: str, folder: Path, processes: int) -> None:
    """Search longer on problems whose seeds disagree; only the best values are of use."""
    path = file_of(half, folder)
    searches = read_searches(path)
    best = best_values(searches)
    open_ = {s[-1].problem for s in searches if s[-1].inertia > best[s[-1].problem] * (1 + 1e-5)}
    orders = [(one, seed) for one in problems_of(half) if one.name in open_ for seed in LONG_SEEDS]
    for last in in_parallel(search_long, orders, processes):
        write_moments(path, [last])
        print(f"{last.problem}: {100 * (last.inertia / best[last.problem] - 1):+.4f} %")


def search_long(problem: Problem, seed: int) -> Moment:
    """Return where a long search ends."""
    return replace(trace(problem, seed, **LONGER)[-1], setting=LONG)


def judge_paths(chosen: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Do for paths what is done for searches."""
    file = chosen.results / "certainty-paths.csv"
    if chosen.task == "collect":
        collect_paths(chosen.half, seeds, file, chosen.processes)
        return
    half = DEVELOPMENT if chosen.task == "fit" else REPORT
    ends = [one for one in read_paths(file) if one.half == half]
    best = best_values([*read_searches(file_of(half, chosen.results)), *([one] for one in ends)])
    if chosen.task == "fit":
        print_fitted(fit_paths(ends, best), "PATH_")
        return
    print(f"{len(ends)} results of paths on {len({one.problem for one in ends})} problems")
    said = said_by(ends, best)
    print(f"within 0.01 %: {100 * statistics.fmean(one.is_right for one in said):.1f} %")
    print_calibration(said)
    if chosen.picture is not None:
        draw(said, chosen.picture)


def print_fitted(fitted: Fitted, prefix: str = "") -> None:
    """Print the constants of evomeans.search.certainty."""
    print(f"{prefix}INTERCEPT = {fitted.intercept:.3f}")
    coefficients = ", ".join(f"{one:.3f}" for one in fitted.coefficients)
    print(f"{prefix}COEFFICIENTS = ({coefficients})")


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("certainty", __doc__)
    parser.add_argument("task", choices=("collect", LONG, "fit", "report"))
    parser.add_argument(
        "--half", choices=list(HALVES), default=DEVELOPMENT, help="for collect and long"
    )
    parser.add_argument("--fast", action="store_true", help="HGMeans.fast")
    parser.add_argument("--paths", action="store_true", help="HGMeansPath, per k")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="that search side by side")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the rows")
    parser.add_argument("--level", type=float, default=DEFAULT_CERTAINTY)
    parser.add_argument("--picture", type=Path, help="where report draws the reliability diagram")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    chosen = parse_arguments(given)
    setting = FAST if chosen.fast else DEFAULT
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    if chosen.paths:
        judge_paths(chosen, seeds)
        return
    if chosen.task == "collect":
        collect(chosen.half, setting, seeds, chosen.results, chosen.processes)
        return
    if chosen.task == LONG:
        search_longer(chosen.half, chosen.results, chosen.processes)
        return
    searches = read_searches(
        file_of(DEVELOPMENT if chosen.task == "fit" else REPORT, chosen.results)
    )
    best = best_values(searches)
    if chosen.task == "fit":
        print_fitted(fit([one for one in searches if one[0].setting != LONG], best))
        return
    own = [one for one in searches if one[0].setting == setting]
    ends = ended(own, best, lambda moment: certainty(moment.evidence), chosen.level)
    print_report(ends, best)
    if chosen.picture is not None:
        draw(ends, chosen.picture)
