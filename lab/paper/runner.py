"""Run the tasks of an experiment in several processes, and keep each row once it is there."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import active_children, get_context
from pathlib import Path
from types import FrameType

from threadpoolctl import threadpool_limits

from evomeans import __version__
from evomeans.files import write_atomically
from lab.data.locking import exclusive
from lab.measure import number
from lab.paper.experiment import Row, Task

KEY = "task"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "bkmeans", "flspp")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Whoever waits longer for a file of results is told why.
PATIENCE_S = 1.0


class TaskFailedError(RuntimeError):
    """A task raised, or its process died; the text says which one."""


def run_tasks(tasks: Sequence[Task], path: Path, processes: int) -> list[Row]:
    """Run all tasks whose rows are not in the file yet; return all rows of the file.

    Rows are appended as soon as their task ends, those of a task all at once, so that a run that
    was killed continues where it was. One run at a time: another one on the same file waits. The
    machine is written down beside the rows if any were added, even if the run failed then.
    """
    with _alone(path):
        _mend(path)
        done = completed_tasks(path)
        due = [task for task in tasks if task_name(task) not in done]
        if len(due) < len(tasks):
            print(
                f"{len(tasks) - len(due)} of {len(tasks)} tasks are in {path.name} already",
                flush=True,
            )
        began = time.perf_counter()
        finished = 0
        try:
            with closing(_results(due, processes)) as results:
                for task, rows in results:
                    append_rows(path, [{KEY: task_name(task), **row} for row in rows])
                    finished += 1
                    _report(task, finished, len(due), time.perf_counter() - began)
        finally:
            if finished:
                write_machine(path.with_suffix(".json"), processes)
        return complete_rows(path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock beside a file of results; say so if another run holds it."""
    message = f"another run is writing {path}: waiting until it ends; Ctrl-C gives up"
    notice = threading.Timer(PATIENCE_S, print, [message], {"flush": True})
    notice.daemon = True
    notice.start()
    try:
        with exclusive(path.with_suffix(".lock")):
            notice.cancel()
            yield
    finally:
        notice.cancel()


def _results(tasks: Sequence[Task], processes: int) -> Iterator[tuple[Task, list[Row]]]:
    if processes == 1:
        for task in tasks:
            yield task, run_task(task)
        return
    others = set(active_children())
    # Fresh processes: a forked one would inherit locks and threads of whoever imported NumPy.
    with (
        _one_thread_each(),
        ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool,
    ):
        try:
            yield from _collected(pool, tasks, processes)
        except BaseException:
            # Nobody wants the rest any more, and the pool would wait for tasks that take hours.
            for process in set(active_children()) - others:
                process.terminate()
            raise


def _collected(
    pool: ProcessPoolExecutor, tasks: Iterable[Task], processes: int
) -> Iterator[tuple[Task, list[Row]]]:
    """Yield results as they come; after a failure no task is begun, but those begun are kept."""
    running: dict[Future[list[Row]], Task] = {}
    failures: list[TaskFailedError] = []
    left = iter(tasks)
    try:
        while True:
            # Only as many as there are processes, so that a failure has little to wait for.
            while (
                not failures and len(running) < processes and (task := next(left, None)) is not None
            ):
                running[pool.submit(run_task, task)] = task
            if not running:
                break
            done = wait(running, return_when=FIRST_COMPLETED).done
            # Results first: what is raised here ends the run.
            for future in sorted(done, key=lambda future: future.exception() is not None):
                try:
                    rows = future.result()
                except TaskFailedError as error:
                    failures.append(error)
                    del running[future]
                else:
                    yield running.pop(future), rows
    except BrokenProcessPool as error:
        lost = []
        for future, task in running.items():
            if future.exception() is None:
                yield task, future.result()
            else:
                lost.append(task_name(task))
        raise TaskFailedError(
            "a process died, for want of memory perhaps, while these were running: "
            + "; ".join(lost)
        ) from error
    if failures:
        raise TaskFailedError("\n".join(str(error) for error in failures)) from failures[0]


def run_task(task: Task) -> list[Row]:
    """Run a task on one thread, as the paper does; what it raises names it.

    Ctrl-C ends it at once, so that whatever comes back is complete.
    """
    with _ctrl_c_obeyed_at_once(), threadpool_limits(1):
        try:
            rows = task.run()
        except Exception as error:
            raise TaskFailedError(f"{task_name(task)}: {type(error).__name__}: {error}") from error
    if not rows:
        raise TaskFailedError(f"{task_name(task)}: it gave no rows")
    return rows


@contextmanager
def _ctrl_c_obeyed_at_once() -> Iterator[None]:
    """Keep fits from deferring Ctrl-C: they would stop early and return the best so far.

    Fits leave a handler alone that is not the usual one. Only the main thread can set handlers, and
    only there do fits defer anything.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _obey)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _obey(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let every process that is started meanwhile use one thread, from its first import on."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def task_name(task: Task) -> str:
    """Return what a task is called in the rows and on the screen."""
    return " | ".join(task.key)


def _report(task: Task, finished: int, total: int, seconds: float) -> None:
    left = seconds / finished * (total - finished)
    print(f"[{finished}/{total}, about {left:.0f} s left] {task_name(task)}", flush=True)


def completed_tasks(path: Path) -> set[str]:
    """Return the names of the tasks in a file."""
    return {str(row[KEY]) for row in complete_rows(path)}


def complete_rows(path: Path) -> list[Row]:
    """Return the rows of all complete tasks, none if there is no file; another run may write it."""
    header, *lines = _complete_lines(path) or [[]]
    return [dict(zip(header, map(number, line), strict=True)) for line in lines]


def _complete_lines(path: Path) -> list[list[str]]:
    """Return the lines of a file, without one that was cut off and the rows of the task before it.

    They may be of one task, which would look complete without that line.
    """
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    lines = list(csv.reader(io.StringIO(whole.decode(), newline="")))
    if whole == content or len(lines) < 2:
        return lines
    place = lines[0].index(KEY)
    return [line for line in lines if line[place] != lines[-1][place]]


def _mend(path: Path) -> None:
    """Remove for good what was cut off, so that rows can be appended."""
    if path.exists() and path.read_bytes()[-1:] not in (b"\n", b""):
        print(f"{path} was cut off: its last task is measured again", flush=True)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(_complete_lines(path))
        write_atomically(path, text.getvalue().encode())


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Add all rows to a file, or none if that fails; a new file gets a header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = _header(path)
    if header not in (None, list(rows[0])):
        raise SystemExit(f"{path} has other columns than are measured now; remove it first.")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    if header is None:
        writer.writeheader()
    writer.writerows(rows)
    with path.open("ab", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            left = memoryview(text.getvalue().encode())
            while left:
                # A disk that fills up takes a part first, and says so at the next attempt.
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(size)
            raise


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


def write_machine(path: Path, processes: int) -> dict[str, str]:
    """Write down the machine beside the results, and how busy it was at the end."""
    machine = {**describe_machine(), "processes": str(processes)}
    if hasattr(os, "getloadavg"):
        machine["load average"] = f"{os.getloadavg()[0]:.1f}"
    write_atomically(path, (json.dumps(machine, indent=2) + "\n").encode())
    return machine
