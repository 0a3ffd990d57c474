"""Command lines that are killed and resumed end with the bits of those that were left alone."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np

CASE_SECONDS = 240.0
# The first imports alone can take this long on a busy machine.
LONGEST = 120.0
# States every few hundredths of a second, so that few kills come before the first.
CODE = """
import sys
from evomeans.storage import checkpoint
checkpoint.SECONDS_BETWEEN, checkpoint.PAUSE_PER_WRITE = 0.02, 0.0
from evomeans.cli import main
sys.exit(main(sys.argv[1:]))
"""
COMMANDS = {
    "fit": ["fit", "table.csv", "-k", "12", "--max-offspring", "400"],
    "balanced": ["fit", "table.csv", "-k", "4", "--size-max", "balanced", "--max-offspring", "60"],
    "path": ["path", "table.csv", "-k", "2:8"],
}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def case(rng: np.random.Generator) -> str:
    """Kill a command some times, resume it, and compare; raise if anything differs."""
    name = str(rng.choice(list(COMMANDS)))
    expected, seconds = undisturbed(name)
    n_killed = 0
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder))
        for _ in range(int(rng.integers(1, 4))):
            process = begin(name, Path(folder))
            try:
                process.wait(float(rng.uniform(0.2, 0.8)) * seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(int(rng.choice(SIGNALS)))
                n_killed += 1
            process.communicate(timeout=LONGEST)
            if process.returncode == 0:
                break
        if process.returncode != 0:
            finish(name, Path(folder))
        found = outcome(Path(folder))
    for file, content in expected.items():
        if found.get(file) != content:
            raise AssertionError(f"{name}: {file} differs after {n_killed} kills")
    return f"{name}, killed {n_killed} times"


def begin(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a command, which continues what there is."""
    has_state = (folder / "out.checkpoint").exists()
    more = ["--resume"] if has_state else ["--force"]
    options = ["--seed", "1", "--no-report", "-o", "out", "-q", *more]
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *COMMANDS[name], *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(name: str, folder: Path) -> None:
    process = begin(name, folder)
    _, told = process.communicate(timeout=LONGEST)
    if process.returncode != 0:
        raise AssertionError(f"exit code {process.returncode}: {told.decode()[-1000:]}")


@cache
def undisturbed(name: str) -> tuple[dict[str, str], float]:
    """Return the files of a run that nobody disturbs, and the seconds that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder))
        began = time.monotonic()
        finish(name, Path(folder))
        return outcome(Path(folder)), time.monotonic() - began


def write_table(folder: Path) -> None:
    rows = np.random.default_rng(5).normal(size=(400, 3))
    np.savetxt(folder / "table.csv", rows, delimiter=",", header="a,b,c", comments="")


def outcome(folder: Path) -> dict[str, str]:
    """Return the tables of a run, without the time that everything took."""
    tables = {}
    for path in sorted((folder / "out").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = [{**row, "seconds": ""} for row in csv.DictReader(file)]
        tables[path.name] = repr(rows)
    return tables
