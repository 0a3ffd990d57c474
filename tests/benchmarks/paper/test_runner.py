import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.paper.runner import TaskFailedError, append_rows, completed_tasks, run_tasks


@dataclass(frozen=True)
class Square:
    """Gives two rows, and leaves a trace of having been run."""

    number: int
    folder: Path

    @property
    def key(self) -> tuple[str, ...]:
        return ("square", str(self.number))

    def run(self):
        with (self.folder / "log").open("a") as log:
            log.write(f"{self.number}\n")
        if self.number < 0:
            raise ValueError("no roots")
        return [{"power": power, "value": self.number**power} for power in (1, 2)]


def runs(folder):
    return sorted(int(line) for line in (folder / "log").read_text().split())


@pytest.mark.parametrize("processes", [1, 2])
def test_all_rows_of_all_tasks_come_back(tmp_path, processes):
    rows = run_tasks([Square(n, tmp_path) for n in (3, 4)], tmp_path / "rows.csv", processes)
    assert sorted((row["power"], row["value"]) for row in rows) == [(1, 3), (1, 4), (2, 9), (2, 16)]


def test_what_is_there_is_not_run_again(tmp_path):
    run_tasks([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    rows = run_tasks([Square(3, tmp_path), Square(4, tmp_path)], tmp_path / "rows.csv", 1)
    assert runs(tmp_path) == [3, 4]
    assert len(rows) == 4


def test_rows_of_other_tasks_stay_in_the_file_but_are_not_returned(tmp_path):
    run_tasks([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    rows = run_tasks([Square(4, tmp_path)], tmp_path / "rows.csv", 1)
    assert {row["value"] for row in rows} == {4, 16}
    assert len(completed_tasks(tmp_path / "rows.csv")) == 2


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failing_task_is_named_and_loses_nothing_that_was_done(tmp_path, processes):
    tasks = [Square(3, tmp_path), Square(-1, tmp_path)]
    with pytest.raises(TaskFailedError, match=r"square \| -1: ValueError: no roots"):
        run_tasks(tasks, tmp_path / "rows.csv", processes)
    if processes == 1:
        assert completed_tasks(tmp_path / "rows.csv") == {"square | 3"}


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    path = tmp_path / "rows.csv"
    run_tasks([Square(3, tmp_path), Square(4, tmp_path)], path, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + b"square | 4,1")
    rows = run_tasks([Square(3, tmp_path), Square(4, tmp_path)], path, 1)
    assert runs(tmp_path) == [3, 4, 4]
    assert len(rows) == 4


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    append_rows(path, [{"a": 1}])
    with pytest.raises(SystemExit, match="other columns"):
        append_rows(path, [{"b": 1}])
    with path.open() as file:
        assert list(csv.DictReader(file)) == [{"a": "1"}]
