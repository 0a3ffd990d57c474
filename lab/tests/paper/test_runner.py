import csv
import io
import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from evomeans.search.stopping import DeferredInterrupt
from lab.data.locking import exclusive
from lab.paper import runner
from lab.paper.runner import (
    TaskFailedError,
    append_rows,
    complete_rows,
    completed_tasks,
    run_task,
    run_tasks,
)


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


@dataclass(frozen=True)
class Interrupted:
    """Gets a signal while it fits; a fit ends early then and has a result nevertheless."""

    @property
    def key(self) -> tuple[str, ...]:
        return ("interrupted",)

    def run(self):
        with DeferredInterrupt():
            signal.raise_signal(signal.SIGINT)
            return [{"power": 1, "value": 1}]


@dataclass(frozen=True)
class Death:
    """Takes its process with it."""

    @property
    def key(self) -> tuple[str, ...]:
        return ("death",)

    def run(self):
        os._exit(1)


@dataclass(frozen=True)
class Threads:
    """Counts the threads that BLAS and OpenMP may use."""

    @property
    def key(self) -> tuple[str, ...]:
        return ("threads",)

    def run(self):
        return [{"threads": max(pool["num_threads"] for pool in threadpool_info())}]


def runs(folder):
    return sorted(int(line) for line in (folder / "log").read_text().split())


def values(path):
    return sorted(row["value"] for row in complete_rows(path))


def test_all_rows_of_all_tasks_come_back(tmp_path):
    rows = run_tasks([Square(n, tmp_path) for n in (3, 4)], tmp_path / "rows.csv", 1)
    assert [(row["power"], row["value"]) for row in rows] == [(1, 3), (2, 9), (1, 4), (2, 16)]


def test_what_is_there_is_not_run_again(tmp_path):
    run_tasks([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    rows = run_tasks([Square(3, tmp_path), Square(4, tmp_path)], tmp_path / "rows.csv", 1)
    assert runs(tmp_path) == [3, 4]
    assert len(rows) == 4


def test_rows_of_other_tasks_stay_in_the_file(tmp_path):
    run_tasks([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    rows = run_tasks([Square(4, tmp_path)], tmp_path / "rows.csv", 1)
    assert {row["value"] for row in rows} == {3, 9, 4, 16}


def test_a_failing_task_is_named_and_loses_nothing_that_was_done(tmp_path):
    tasks = [Square(3, tmp_path), Square(-1, tmp_path), Square(4, tmp_path)]
    with pytest.raises(TaskFailedError, match=r"square \| -1: ValueError: no roots"):
        run_tasks(tasks, tmp_path / "rows.csv", 1)
    assert completed_tasks(tmp_path / "rows.csv") == {"square | 3"}


def test_a_failure_in_one_process_leaves_the_rows_of_the_other(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    # Both are begun at once; which one ends first does not matter.
    tasks = [Square(-1, tmp_path), Square(3, tmp_path), Square(4, tmp_path)]
    with pytest.raises(TaskFailedError, match=r"^square \| -1: ValueError: no roots$"):
        run_tasks(tasks, tmp_path / "rows.csv", 2)
    assert "square | 3" in completed_tasks(tmp_path / "rows.csv")
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.slow
def test_tasks_whose_process_died_are_named(tmp_path):
    with pytest.raises(TaskFailedError, match=r"process died.*running: death$"):
        run_tasks([Death()], tmp_path / "rows.csv", 2)


@pytest.mark.slow
def test_an_interrupt_of_a_process_ends_the_run(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_tasks([Interrupted()], tmp_path / "rows.csv", 2)
    assert not completed_tasks(tmp_path / "rows.csv")


def test_an_interrupted_task_is_not_taken_for_a_complete_one(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_tasks([Square(3, tmp_path), Interrupted()], tmp_path / "rows.csv", 1)
    assert completed_tasks(tmp_path / "rows.csv") == {"square | 3"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_tasks_use_one_thread():
    assert run_task(Threads()) == [{"threads": 1}]


def test_a_task_without_rows_is_a_failure(monkeypatch):
    monkeypatch.setattr(Threads, "run", lambda self: [])
    with pytest.raises(TaskFailedError, match="threads: it gave no rows"):
        run_task(Threads())


@pytest.mark.parametrize("cut", ["square | 4,2,1", "square | 4,1", "squ", '"'])
def test_a_task_that_was_cut_off_is_measured_again(tmp_path, cut):
    path = tmp_path / "rows.csv"
    tasks = [Square(n, tmp_path) for n in (3, 5, 4)]
    run_tasks(tasks, path, 1)
    lines = path.read_text().splitlines(keepends=True)
    # The first row of the last task is whole: without the second one it must not count.
    path.write_text("".join(lines[:6]) + cut)
    assert values(path) == [3, 5, 9, 25]
    assert path.read_text().endswith(cut)
    rows = run_tasks(tasks, path, 1)
    assert runs(tmp_path) == [3, 4, 4, 5]
    assert len(rows) == 6
    assert path.read_text() == "".join(lines)


def test_a_header_that_was_cut_off_is_written_again(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("task,pow")
    assert not complete_rows(path)
    run_tasks([Square(3, tmp_path)], path, 1)
    assert path.read_text() == "task,power,value\nsquare | 3,1,3\nsquare | 3,2,9\n"


def test_names_with_commas_survive(tmp_path):
    path = tmp_path / "rows.csv"
    append_rows(path, [{"task": "iris | 2,3", "m": 2}, {"task": "iris | 2,3", "m": 3}])
    append_rows(path, [{"task": "iris | 4", "m": 4}])
    with path.open("a") as file:
        file.write('"iris | 5,')
    assert complete_rows(path) == [{"task": "iris | 2,3", "m": m} for m in (2, 3)]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    class Full(io.FileIO):
        """Takes ten bytes at a time, and has room for twenty."""

        def write(self, data):
            if os.fstat(self.fileno()).st_size >= before + 20:
                raise OSError(28, "No space left on device")
            return super().write(data[:10])

    path = tmp_path / "rows.csv"
    append_rows(path, [{"task": "a", "value": 1}])
    content, before = path.read_bytes(), path.stat().st_size
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda self, mode="r", **options: _opened(self, mode, Full))
        with pytest.raises(OSError, match="No space"):
            append_rows(path, [{"task": "b", "value": value} for value in range(9)])
    assert path.read_bytes() == content


def test_what_is_written_in_parts_arrives_whole(tmp_path, monkeypatch):
    class Short(io.FileIO):
        def write(self, data):
            return super().write(data[:3])

    path = tmp_path / "rows.csv"
    rows = [{"task": "a", "value": value} for value in range(9)]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda self, mode="r", **options: _opened(self, mode, Short))
        append_rows(path, rows)
    assert complete_rows(path) == rows


def _opened(path, mode, raw):
    return raw(path, "ab") if mode == "ab" else open(path, newline="")  # noqa: PTH123


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    append_rows(path, [{"a": 1}])
    with pytest.raises(SystemExit, match="other columns"):
        append_rows(path, [{"b": 1}])
    with path.open() as file:
        assert list(csv.DictReader(file)) == [{"a": "1"}]


def test_the_machine_is_written_down_only_if_it_measured_something(tmp_path):
    run_tasks([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    machine = json.loads((tmp_path / "rows.json").read_text())
    assert machine["processes"] == "1"
    assert ("load average" in machine) == hasattr(os, "getloadavg")
    (tmp_path / "rows.json").unlink()
    run_tasks([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    assert not (tmp_path / "rows.json").exists()


def test_a_second_run_waits_for_the_first_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "PATIENCE_S", 0.01)
    second = threading.Thread(
        target=run_tasks, args=([Square(3, tmp_path)], tmp_path / "rows.csv", 1)
    )
    with exclusive(tmp_path / "rows.lock"):
        second.start()
        said = ""
        deadline = time.monotonic() + 30
        while "another run is writing" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().out
        assert "another run is writing" in said
        assert not (tmp_path / "log").exists()
    second.join(30)
    assert runs(tmp_path) == [3]
