"""One method on one problem: restarted with new seeds until its CPU time is used up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from evomeans import HGMeans
from lab.measure import timed
from lab.paper.experiment import Row
from lab.paper.methods import HG_MEANS
from lab.paper.traces import Point, Samples
from lab.rivals.clock import Clock, OutOfTimeError, cpu_limit
from lab.rivals.contestants import Contestant, contestants
from lab.setups import samples_of

SHARES = (1, 2, 5, 10, 20, 35, 50, 70, 100)
"""Percentages of the budget after which the best inertia so far is written down."""
# Runs of one race have seeds of their own, and races with neighbouring seeds share none.
RUNS_PER_SEED = 100_000
WARM_UP = 400
_LOADED: set[str] = set()


@dataclass(frozen=True)
class Race:
    """What a method reached, and when.

    Parameters
    ----------
    points : tuple of Point
        Whenever it improved: CPU seconds, and the inertia.
    seconds : float
        CPU seconds in all.
    runs : int
        That were begun.
    """

    points: tuple[Point, ...]
    seconds: float
    runs: int

    def best_after(self, seconds: float) -> float:
        """Return the lowest inertia within this CPU time, NaN if there is none."""
        return min((value for at, value in self.points if at <= seconds), default=math.nan)


def race(contestant: Contestant, X: Samples, m: int, seed: int, clock: Clock, most: float) -> Race:
    """Let a method run until its CPU time is used up, again and again if it ends before.

    A run that is not over after ``most`` CPU seconds is abandoned, and leaves what it had shown.
    """
    points: list[Point] = []
    runs = 0
    try:
        with cpu_limit(most):
            for run in count():
                runs += 1
                for point in contestant.run(X, m, RUNS_PER_SEED * seed + run, clock):
                    if not points or point[1] < points[-1][1]:
                        points.append(point)
                if clock.left <= 0.0 or not contestant.is_random:
                    break
    except OutOfTimeError as error:
        print(f"{contestant.name}, m = {m}, n = {len(X)}: {error}", flush=True)
    return Race(tuple(points), clock.seconds, runs)


@dataclass(frozen=True)
class BudgetTask:
    """Measure the CPU time that HG-means takes to its own end, in the setting of the paper."""

    setup: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """Set-up and seed."""
        return self.setup, str(self.seed)

    def run(self) -> list[Row]:
        """Fit once."""
        X, m = samples_of(self.setup)
        load_kernels(HG_MEANS)
        model = HGMeans(m, strategy="paper", random_state=self.seed, n_jobs=1)
        _, seconds = timed(lambda: model.fit(X))
        return [
            {"setup": self.setup, "seed": self.seed, "inertia": model.inertia_, "cpu_s": seconds}
        ]


@dataclass(frozen=True)
class RaceTask:
    """Let a method race on a problem.

    Parameters
    ----------
    setup : str
        ``dataset:clusters`` or ``mixture:n:d:clusters``.
    method : str
    seed : int
    budget : float
        CPU seconds.
    patience : float
        A run is abandoned after this many times the budget.
    """

    setup: str
    method: str
    seed: int
    budget: float
    patience: float

    @property
    def key(self) -> tuple[str, ...]:
        """Set-up, method and seed."""
        return self.setup, self.method, str(self.seed)

    def run(self) -> list[Row]:
        """Return one row. A method without a solution in time is late; one without any, lost."""
        X, m = samples_of(self.setup)
        load_kernels(self.method)
        most = self.patience * self.budget
        own = race(contestants()[self.method], X, m, self.seed, Clock(self.budget), most)
        inertia = own.best_after(self.budget)
        is_late = math.isnan(inertia)
        if is_late:
            inertia = own.points[0][1] if own.points else math.inf
        row = {
            # As the names of mixtures in other experiments begin.
            "dataset": self.setup.rpartition(":")[0].replace("mixture:", "mixture-"),
            "n": X.shape[0],
            "d": X.shape[1],
            "m": m,
            "method": self.method,
            "seed": self.seed,
            "budget_s": round(self.budget, 6),
            "cpu_s": round(own.seconds, 6),
            "runs": own.runs,
            "is_late": int(is_late),
            "inertia": inertia,
        }
        for share in SHARES:
            row[f"at_{share}"] = own.best_after(0.01 * share * self.budget)
        return [row]


def load_kernels(method: str) -> None:
    """Let a process compile or load the kernels of a method before its first race.

    The method makes enough solutions of little data for all of its parts to be used.
    """
    if method not in _LOADED:
        X = np.random.default_rng(0).random((200, 3))
        for _ in islice(contestants()[method].run(X, 6, 0, Clock(math.inf)), WARM_UP):
            pass
        _LOADED.add(method)
