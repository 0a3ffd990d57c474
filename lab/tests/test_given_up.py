"""The comparison of searches that give offspring up with those that do not."""

from __future__ import annotations

import pytest

from lab import given_up


@pytest.mark.usefixtures("_compiled_kernels")
def test_both_kinds_make_as_many_offspring_and_one_gives_some_up(monkeypatch) -> None:
    monkeypatch.setattr(given_up, "OFFSPRING", 15)
    row = given_up.compare("overlap:6000:2:3", range(1))
    assert 0.0 < row["given up"] <= 1.0
    assert min(row["all gap"], row["now gap"]) == 0.0
    assert row["all seconds"] > 0.0
