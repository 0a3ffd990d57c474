"""Random cases: ``make fuzz``, or ``python -m tests.fuzz files kills --minutes 5 --seed 1``."""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import sys
from pathlib import Path

from tests.fuzz import running


def module_names() -> list[str]:
    """Return the modules of this folder that have cases."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    names = [name for name in names if not name.startswith(("test_", "__"))]
    return [name for name in names if hasattr(imported(name), "case")]


def imported(name: str) -> object:
    return importlib.import_module(f"tests.fuzz.{name}")


def main() -> int:
    """Divide the minutes among the modules; the exit code is 1 if any has found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("modules", nargs="*", help="(all)")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all together (30)")
    parser.add_argument("--seed", type=int, help="of the random numbers (a new one)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(one per core)")
    parser.add_argument("--case", type=int, help="run only this case, here and without limits")
    given = parser.parse_args()
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    names = given.modules or module_names()
    n_findings = 0
    for name in names:
        if given.case is not None:
            print(running.run_case(imported(name), seed, given.case))
            continue
        seconds = 60.0 * given.minutes / len(names)
        report = running.run(
            f"tests.fuzz.{name}", seed=seed, seconds=seconds, processes=given.processes
        )
        print(report, flush=True)
        n_findings += len(report.findings)
    return int(n_findings > 0)


if __name__ == "__main__":
    sys.exit(main())
