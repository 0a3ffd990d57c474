"""The results of the authors' program come with the repository."""

from __future__ import annotations

from lab.data import PARTIAL, reference_runs
from lab.data.registry import dataset_named, is_listed


def test_the_reference_runs():
    """107 problems, nearly all of the paper; no best value is above what the program reached."""
    runs = reference_runs()
    assert len(runs) == len({(run.dataset, run.m) for run in runs}) == 107
    assert {run.dataset for run in runs if not is_listed(run.dataset)} <= set(PARTIAL)
    for run in runs:
        assert run.best_found <= run.objective_best <= run.objective_mean * (1 + 1e-12)
        assert run.runs >= 1
        assert run.cpu_s > 0
        assert run.yardstick_s > 0
        assert not is_listed(run.dataset) or run.m in dataset_named(run.dataset).clusters
