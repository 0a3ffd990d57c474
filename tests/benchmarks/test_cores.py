"""The benchmarks of threads and lag, on next to nothing."""

from __future__ import annotations

import pytest

from benchmarks import cores, lag


@pytest.mark.parametrize(
    ("most", "expected"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])]
)
def test_numbers_of_threads(most, expected) -> None:
    assert cores.powers_of_two(most) == expected


def test_a_search_is_timed_with_every_number_of_threads(monkeypatch) -> None:
    monkeypatch.setattr("evomeans.engines.cpu.engine.WORTH_A_WORKER", 0)
    row = cores.measure("mixture:300:2:4:10", 8, [1, 2, 3], rounds=2, separate=False)
    assert row["setup"] == "mixture:300:2:4:10"
    assert min(row["seconds"], row["2"], row["3"]) > 0.0


def test_depth_after_some_offspring(monkeypatch) -> None:
    """The deeper, the more there are; gaps are to the best of all."""
    monkeypatch.setattr(lag, "OFFSPRING", (1, 30))
    run = "mixture:200:2:9", 0, 4
    found = {run: lag.depths(run)}
    assert found[run][0] >= found[run][1] > 0.0
    row = lag.summary(4, found, {run[0]: found[run][1]})
    assert row["mean 30"] == row["worst 30"] == 0.0
    assert row["success 30"] == 1.0
    assert row["mean 1"] >= 0.0
