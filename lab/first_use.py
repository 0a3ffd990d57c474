"""What a newcomer waits for: the first fit ever, and the first fit of later processes.

Run with ``python -m lab first_use``, or name some cases; ``--against REV`` measures another
version as well. Every number is from a process of its own. The first compiles into an empty cache,
the second finds it filled. Seconds of CPU include the processes that help to compile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.measure import parser_for
from lab.revisions import ROOT, environment_of, source_of

CASES = {
    "1,000 x 10": ("X, k, options = normal, 10, {}", 8.0),
    "paper": ("X, k, options = normal, 10, {'strategy': 'paper'}", 6.0),
    "float32": ("X, k, options = normal.astype('f4'), 10, {}", 12.0),
    "sparse": ("X, k, options = csr_array(np.maximum(normal, 1.0) - 1.0), 10, {}", 12.0),
    "iris": ("X, k, options = load_iris().data, 3, {}", 12.0),
    "digits": ("X, k, options = load_digits().data, 30, {}", 12.0),
}
PROCESS = """
import json, os, time
import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris
normal = np.random.default_rng(0).normal(size=(1000, 10))
{case}
wall, cpu = time.perf_counter(), sum(os.times()[:4])
from evomeans import HGMeans
HGMeans(k, random_state=0, max_offspring=20, **options).fit(X)
print(json.dumps([time.perf_counter() - wall, sum(os.times()[:4]) - cpu]))
"""


def measure(case: str, source: Path, cache: str) -> tuple[float, float]:
    """Return wall and CPU seconds of import and fit in a new process."""
    environment = {**environment_of(source), "NUMBA_CACHE_DIR": cache}
    # As in an installed package, later processes find the bytecode of earlier ones.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", PROCESS.format(case=CASES[case][0])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case}: {done.stderr}")
    wall, cpu = json.loads(done.stdout)
    return wall, cpu


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("first_use", __doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--against", metavar="REV", help="a revision to measure as well")
    arguments = parser.parse_args(given)
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    print(f"import and fit in seconds; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'':12}{'version':>9}{'first fit':>11}{'CPU':>7}{'target':>8}{'later':>7}{'CPU':>7}")
    sources = {"now": ROOT / "src"}
    if arguments.against:
        sources["before"] = source_of(arguments.against)
    for case in arguments.cases or CASES:
        for version, source in sources.items():
            with tempfile.TemporaryDirectory() as cache:
                first, cpu = measure(case, source, cache)
                later, later_cpu = measure(case, source, cache)
            print(
                f"{case:12}{version:>9}{first:11.1f}{cpu:7.1f}{CASES[case][1]:8.0f}"
                f"{later:7.2f}{later_cpu:7.2f}",
                flush=True,
            )
