"""Inertias and times of the authors' own program, for comparisons."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

RUNS = Path(__file__).with_name("reference_runs.csv")


@dataclass(frozen=True)
class ReferenceRun:
    """What the authors' C++ program reached on a problem, standard setting.

    Parameters
    ----------
    dataset : str
    m : int
        Number of clusters.
    runs : int
        Number of runs.
    objective_mean, objective_best : float
        Over its runs.
    cpu_s : float
        CPU seconds of a run.
    yardstick_s : float
        CPU seconds of one single-threaded scikit-learn run on the same machine.
    best_found : float
        The best value found by any method when they were run.
    """

    dataset: str
    m: int
    runs: int
    objective_mean: float
    objective_best: float
    cpu_s: float
    yardstick_s: float
    best_found: float


def reference_runs() -> list[ReferenceRun]:
    """Load the results of the authors' program, in the order of the file."""
    with RUNS.open(newline="") as file:
        return [
            ReferenceRun(
                dataset=row["dataset"],
                m=int(row["m"]),
                runs=int(row["runs"]),
                objective_mean=float(row["objective_mean"]),
                objective_best=float(row["objective_best"]),
                cpu_s=float(row["cpu_s"]),
                yardstick_s=float(row["yardstick_s"]),
                best_found=float(row["best_found"]),
            )
            for row in csv.DictReader(file)
        ]
