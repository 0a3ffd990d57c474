"""The benchmark of proofs: its rows survive their file, and its proofs hold."""

from __future__ import annotations

import numpy as np

from lab import proof
from lab.proof import GROUPS, Row, append, measure, measured, rows_of, shown, table


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


def test_the_table_of_the_docs_comes_from_the_rows(monkeypatch):
    """In the order of the groups; the latest row of a problem counts, small sets are left out."""
    monkeypatch.setattr(proof, "samples", lambda name: np.zeros((1234, 2)))
    rows = [
        Row("pima", 10, 9.0, 8.9, 1.11, "bounded", "relaxation", 3, 5, 9.99, 0.1),
        Row("iris", 3, 9.0, 9.0, 0.0, "optimal", "relaxation", 1, 5, 1.0, 0.1),
        Row("heart", 5, 9.0, 9.0, 0.0, "bounded", "relaxation", 1, 5, 1.0, 0.1),
        Row("heart", 5, 9.0, 9.0, 0.0, "optimal", "relaxation", 1, 5, 2.0, 0.1),
    ]
    lines = table(rows).splitlines()
    assert lines[2:] == [
        "| Heart | 1,234 | 5 | 9 | optimal | relaxation | 1 | 2.0 |",
        "| Pima | 1,234 | 10 | 9 | 1.1 % | relaxation | 3 | 10.0 |",
    ]


def test_several_set_ups_at_a_time_give_a_row_each(monkeypatch):
    monkeypatch.setattr(proof, "measure", lambda *call: call)
    calls = [("a:2", 1.0), ("b:2", 2.0)]
    assert list(measured(calls, 1)) == calls
