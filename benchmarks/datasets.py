"""The data sets of the paper, looked up in the folder EVOMEANS_DATA."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ReferenceRun:
    """What the authors' C++ program reached on a set-up, standard setting.

    Parameters
    ----------
    dataset : str
    m : int
        Number of clusters.
    objective_mean, objective_best : float
        Over its runs.
    cpu_s : float
        CPU seconds of a run.
    yardstick_s : float
        CPU seconds of one single-threaded scikit-learn run on the same machine.
    best_found : float
        The best value found by any method.
    """

    dataset: str
    m: int
    objective_mean: float
    objective_best: float
    cpu_s: float
    yardstick_s: float
    best_found: float


def data_folder() -> Path:
    """Return the folder that EVOMEANS_DATA names."""
    folder = os.environ.get("EVOMEANS_DATA")
    if not folder:
        raise SystemExit(
            "Set EVOMEANS_DATA to the folder with the data sets (iris.npz, …, reference_runs.csv)."
        )
    path = Path(folder)
    if not path.is_dir():
        raise SystemExit(f"EVOMEANS_DATA={folder} is not a folder.")
    return path


def load(name: str) -> NDArray[np.float64]:
    """Load the samples of a data set as float64."""
    path = data_folder() / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"No data set {name!r}: {path} does not exist.")
    with np.load(path) as stored:
        return stored["X"].astype(np.float64)


def reference_runs() -> list[ReferenceRun]:
    """Load the results of the authors' program, in the order of the file."""
    with (data_folder() / "reference_runs.csv").open(newline="") as file:
        return [
            ReferenceRun(
                dataset=row["dataset"],
                m=int(row["m"]),
                objective_mean=float(row["objective_mean"]),
                objective_best=float(row["objective_best"]),
                cpu_s=float(row["cpu_s"]),
                yardstick_s=float(row["yardstick_s"]),
                best_found=float(row["best_found"]),
            )
            for row in csv.DictReader(file)
        ]
