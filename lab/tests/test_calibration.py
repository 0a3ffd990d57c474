"""Rediscoveries of runs are counted and drawn as they were."""

from __future__ import annotations

import pytest

from lab import calibration
from lab.calibration import grouped
from lab.whole_runs import write_rows


def test_runs_are_grouped_by_what_they_say():
    said = [0, 0, 1, 3, 5]
    gaps = [0.0, 0.02, 0.009, 0.0, 0.5]
    rows = [{"rediscoveries": n, "gap": gap} for n, gap in zip(said, gaps, strict=True)]
    groups = grouped("fast", rows)
    assert [(group.said, group.runs, group.share) for group in groups] == [
        ("0", 2, 0.5),
        ("1", 1, 1.0),
        ("3 or more", 2, 0.5),
    ]
    assert all(0.0 <= group.low < group.share <= group.high <= 1.0 for group in groups)


def test_rows_of_whole_runs_are_drawn(tmp_path, capsys):
    """The last version's rows go into the file, and from there into table and picture."""
    before, now = (
        {
            "inertia": 1.0,
            "gap": gap,
            "cpu": 0.5,
            "offspring": 9,
            "rediscoveries": 2,
            "certainty": 0.9,
        }
        for gap in (3.0, 0.0)
    )
    write_rows(tmp_path / "whole_runs.csv", {("digits:3", 7): [before, now]})
    picture = tmp_path / "calibration.png"
    calibration.main(["--results", str(tmp_path), "--picture", str(picture)])
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == ["default", "2", "1", "100.0"]
    assert picture.stat().st_size > 5000


def test_missing_rows_are_told(tmp_path):
    with pytest.raises(SystemExit, match=r"whole_runs\.csv"):
        calibration.main(["--results", str(tmp_path)])
