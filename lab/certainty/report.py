"""Where searches end by a level of certainty, how often they are right then, and what it costs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from evomeans.search.certainty import level_of_cheap
from lab.certainty.fitting import Search, is_right
from lab.certainty.traces import Moment
from lab.measure import geometric_mean

# Edges of the bins in which what searches say is compared with how often they are right.
EDGES = (0.0, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0)
# Searches of earlier versions ended when three independent starts agreed.
EARLIER = 3
AGREEMENT = 2

Certainty = Callable[[Moment], float]


class Said(NamedTuple):
    """What a path says of one number of clusters, and whether it is right."""

    certainty: float
    is_right: bool


class Ended(NamedTuple):
    """Where a search ends.

    Parameters
    ----------
    moment : Moment
    certainty : float
        What it says.
    is_right : bool
    before : Moment
        Where it ended in earlier versions.
    was_right : bool
    """

    moment: Moment
    certainty: float
    is_right: bool
    before: Moment
    was_right: bool


def ended(
    searches: Iterable[Search], best: Mapping[str, float], certainty: Certainty, level: float
) -> list[Ended]:
    """Return where each search ends by a level of certainty."""
    found = []
    for search in searches:
        ends = [one for one in search if one.has_ended]
        certain = (one for one in ends if one.n_starts >= AGREEMENT)
        now = next(
            (one for one in certain if certainty(one) >= level_of_cheap(level, one.work)),
            search[-1],
        )
        before = next((one for one in ends if one.n_starts >= EARLIER), search[-1])
        right, was_right = is_right(now, best), is_right(before, best)
        found.append(Ended(now, certainty(now), right, before, was_right))
    return found


class Bin(NamedTuple):
    """Searches that say about the same: how many, what they say, and how often they are right."""

    low: float
    high: float
    runs: int
    said: float
    right: float


def binned(ends: Sequence[Ended | Said]) -> list[Bin]:
    """Sort searches by what they say of themselves."""
    bins = []
    for low, high in pairwise(EDGES):
        own = [one for one in ends if low <= one.certainty < high]
        if own:
            said = statistics.fmean(one.certainty for one in own)
            right = statistics.fmean(one.is_right for one in own)
            bins.append(Bin(low, high, len(own), said, right))
    return bins


def brier(ends: Sequence[Ended | Said]) -> tuple[float, float]:
    """Return the Brier score, and that of the constant that is the share of successes."""
    share = statistics.fmean(one.is_right for one in ends)
    score = statistics.fmean((one.certainty - one.is_right) ** 2 for one in ends)
    return score, share * (1.0 - share)


def print_report(ends: Sequence[Ended], best: Mapping[str, float]) -> None:
    """Print success, cost and calibration."""
    problems: dict[str, list[Ended]] = {}
    for one in ends:
        problems.setdefault(one.moment.problem, []).append(one)
    shares = {name: statistics.fmean(e.is_right for e in own) for name, own in problems.items()}
    gaps = [100.0 * (one.moment.inertia / best[one.moment.problem] - 1.0) for one in ends]
    print(f"{len(ends)} searches on {len(problems)} problems")
    print(f"within 0.01 %: {100 * statistics.fmean(one.is_right for one in ends):.1f} %", end="; ")
    print(f"when three starts agree: {100 * statistics.fmean(e.was_right for e in ends):.1f} %")
    print(f"gap: mean {statistics.fmean(gaps):.4f} %, worst {max(gaps):.3f} %")
    poor = {name: share for name, share in shares.items() if share < 1.0}
    listed = sorted(poor.items(), key=lambda item: item[1])
    print("less than 100 %:", ", ".join(f"{n} {100 * s:.0f} %" for n, s in listed) or "none")
    print(f"CPU seconds: {cost_ratio(problems.values()):.2f} of those until three starts agree")
    solved = [own for own in problems.values() if all(e.was_right and e.is_right for e in own)]
    print(f"on the {len(solved)} problems that every seed solves: {cost_ratio(solved):.2f}")
    print_calibration(ends)


def print_calibration(ends: Sequence[Ended | Said]) -> None:
    """Print how often searches are right, by what they say."""
    for one in binned(ends):
        said, right = 100 * one.said, 100 * one.right
        print(f"{one.low:.2f} to {one.high:.2f}: {one.runs:4d} runs say {said:.1f} %, ", end="")
        print(f"{right:.1f} % are right")
    score, constant = brier(ends)
    print(f"Brier score {score:.4f}; of a constant {constant:.4f}")


def cost_ratio(problems: Iterable[Sequence[Ended]]) -> float:
    """Return the geometric mean over problems of the CPU seconds, now by before."""
    return geometric_mean(
        sum(one.moment.cpu_s for one in own) / sum(one.before.cpu_s for one in own)
        for own in problems
    )


def draw(ends: Sequence[Ended | Said], path: Path) -> None:
    """Draw the reliability diagram."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from scipy.stats import binomtest

    figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
    bins = binned(ends)
    for place, one in enumerate(bins):
        interval = binomtest(round(one.right * one.runs), one.runs).proportion_ci(method="wilson")
        bars = [[100 * (one.right - interval.low)], [100 * (interval.high - one.right)]]
        label = "right, with 95 % intervals" if place == 0 else None
        style = {"color": "#2a6f97", "marker": "o", "capsize": 3, "linestyle": "", "label": label}
        axes.errorbar(place, 100 * one.right, bars, **style)
        said = "certainty_, on average" if place == 0 else None
        axes.plot(place, 100 * one.said, color="#c44e52", marker="_", markersize=16, label=said)
    names = [f"{one.low:.2f}–{one.high:.2f}\n{one.runs} runs" for one in bins]
    axes.set_xticks(range(len(bins)), names, fontsize=8)
    axes.set_xlabel("certainty_ of a run")
    axes.set_ylabel("within 0.01 % of the best known, %")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
