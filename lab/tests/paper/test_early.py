"""Early answers: which rival is ahead, and by how much."""

from __future__ import annotations

from lab.paper.early import RIVALS, Cell, cell, mean_gaps
from lab.paper.methods import HG_DEEP


def row(method, seed, y, gap):
    return {"dataset": "iris", "m": 3, "method": method, "seed": seed, "y": y, "gap": gap}


def test_only_what_every_seed_has_is_compared():
    """The first rival has no solution for one of the seeds."""
    rows = [row(HG_DEEP, seed, 1, gap) for seed, gap in ((0, 0.5), (1, 1.5))]
    rows += [row(RIVALS[0], 0, 1, 0.0), row(RIVALS[1], 0, 1, 0.25), row(RIVALS[1], 1, 1, 0.25)]
    means = mean_gaps(rows)
    found = cell(means, "iris:3", 1)
    assert found == Cell(1.0, 0.25, RIVALS[1])
    assert found.text == "**1.000 / 0.250**"
    assert found.lag == f"0.75 % behind {RIVALS[1]}"
    assert cell(means, "iris:3", 2) == Cell(None, None)


def test_no_answer_is_behind_any_answer_and_equal_ones_are_not():
    assert Cell(None, 3.0, "FLS++").is_behind
    assert Cell(None, 3.0, "FLS++").lag == "no answer yet, FLS++ has one"
    assert not Cell(3.0, 2.9995, "FLS++").is_behind
    assert not Cell(3.0, None).is_behind
