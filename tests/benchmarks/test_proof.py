"""The benchmark of proofs: its rows survive their file, and its proofs hold."""

from __future__ import annotations

import numpy as np

from benchmarks import proof
from benchmarks.proof import GROUPS, append, measure, rows_of, shown


def test_rows_survive_their_file(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(proof, "samples", lambda name: rng.normal(size=(15, 2)))
    row = measure("iris:3", 20.0, 1, None)
    assert row.status == "optimal"
    assert row.lower_bound <= row.upper_bound
    for _ in range(2):
        append(tmp_path / "rows.csv", row)
    assert list(rows_of(tmp_path / "rows.csv")) == [row, row]
    assert "optimal" in shown(row)


def test_groups_name_set_ups_with_their_limits():
    assert len(GROUPS["small"]) == 36
    for setups in GROUPS.values():
        for setup, seconds in setups.items():
            assert setup.partition(":")[2].isdigit()
            assert seconds > 0
