"""Run the tasks of an experiment in several processes, and keep each row once it is there."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path

from benchmarks.measure import read_rows
from benchmarks.paper.experiment import Row, Task
from evomeans import __version__
from evomeans.files import write_atomically

KEY = "task"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "bkmeans", "flspp")


class TaskFailedError(RuntimeError):
    """A task raised; its text says which one."""


def run_tasks(tasks: Sequence[Task], path: Path, processes: int) -> list[Row]:
    """Run all tasks whose rows are not in the file yet; return the rows of all tasks.

    Rows are appended as soon as their task ends, those of a task all at once, so that a run that
    was killed goes on where it was. Rows in the file of tasks that are not asked for stay there and
    are not returned.
    """
    done = completed_tasks(path)
    due = [task for task in tasks if task_name(task) not in done]
    if len(due) < len(tasks):
        print(
            f"{len(tasks) - len(due)} of {len(tasks)} tasks are in {path.name} already", flush=True
        )
    began = time.perf_counter()
    for finished, (task, rows) in enumerate(_results(due, processes), start=1):
        append_rows(path, [{KEY: task_name(task), **row} for row in rows])
        _report(task, finished, len(due), time.perf_counter() - began)
    wanted = {task_name(task) for task in tasks}
    return [row for row in read_rows(path) if row[KEY] in wanted]


def _results(tasks: Sequence[Task], processes: int) -> Iterator[tuple[Task, list[Row]]]:
    if processes == 1:
        for task in tasks:
            yield task, run_task(task)
        return
    # Fresh processes: a forked one would inherit locks and threads of whoever imported NumPy.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running: dict[Future[list[Row]], Task] = {}
        left = iter(tasks)
        try:
            while True:
                # Only as many as there are processes, so that Ctrl-C has little to wait for.
                while len(running) < processes and (task := next(left, None)) is not None:
                    running[pool.submit(run_task, task)] = task
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_task(task: Task) -> list[Row]:
    """Run a task; what it raises names it."""
    try:
        return task.run()
    except Exception as error:
        raise TaskFailedError(f"{task_name(task)}: {type(error).__name__}: {error}") from error


def task_name(task: Task) -> str:
    """Return what a task is called in the rows and on the screen."""
    return " | ".join(task.key)


def _report(task: Task, finished: int, total: int, seconds: float) -> None:
    left = seconds / finished * (total - finished)
    print(f"[{finished}/{total}, about {left:.0f} s left] {task_name(task)}", flush=True)


def completed_tasks(path: Path) -> set[str]:
    """Return the names of the tasks in a file; a last line that was cut off is removed first."""
    if not path.exists():
        return set()
    content = path.read_bytes()
    if not content.endswith(b"\n"):
        write_atomically(path, content[: content.rfind(b"\n") + 1])
    return {str(row[KEY]) for row in read_rows(path)}


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Add rows to a file in one write, so that none or all are there; a new file gets a header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = _header(path)
    if header not in (None, list(rows[0])):
        raise SystemExit(f"{path} has other columns than are measured now; remove it first.")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    if header is None:
        writer.writeheader()
    writer.writerows(rows)
    with path.open("ab", buffering=0) as file:
        file.write(text.getvalue().encode())


def _header(path: Path) -> list[str] | None:
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file), None)


def describe_machine() -> dict[str, str]:
    """Say what the results were measured on."""
    versions = {"evomeans": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        **versions,
    }


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_machine(path: Path) -> dict[str, str]:
    """Write down the machine beside the results."""
    machine = describe_machine()
    write_atomically(path, (json.dumps(machine, indent=2) + "\n").encode())
    return machine
