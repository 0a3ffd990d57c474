"""All modules of fuzz cases, one after the other: ``make fuzz MINUTES=30 SEED=1``."""

from __future__ import annotations

import argparse
import importlib
import secrets
import sys
from pathlib import Path

from tests.fuzz import running


def module_names() -> list[str]:
    """Return the modules of this folder that have cases."""
    names = [f"tests.fuzz.{path.stem}" for path in sorted(Path(__file__).parent.glob("*.py"))]
    names = [name for name in names if not name.startswith(("tests.fuzz.test_", "tests.fuzz.__"))]
    return [name for name in names if hasattr(importlib.import_module(name), "case")]


def main() -> int:
    """Divide the minutes among the modules; the exit code is 1 if any has found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all together (30)")
    parser.add_argument("--seed", type=int, help="of the random numbers (a new one)")
    given = parser.parse_args()
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    names = module_names()
    share = str(given.minutes / len(names))
    codes = [running.main(name, ["--minutes", share, "--seed", str(seed)]) for name in names]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
