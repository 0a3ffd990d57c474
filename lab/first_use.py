"""Time until the first fit has ended: of the first process ever, and of later ones.

Run with ``python -m lab first_use``, or name some cases; ``--against REV`` measures another
version as well. Every number is from a process of its own, with a copy of the package as pip would
install it: with bytecode, but without kernels. The first process compiles into an empty cache, and
the second finds it filled: the command ends with an error unless the first has written kernels and
the second has written none. Both may use two cores.

Seconds of CPU include the process that helps to compile. The busier of the two processes tells how
long the first fit takes where nothing else runs, also when it is measured on a busy machine. That
should be ten seconds at most.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.measure import Column, Table, parser_for
from lab.revisions import ROOT, environment_of, source_of

CASES = {
    "1,000 x 10": "X, k, options = normal, 10, {}",
    "paper": "X, k, options = normal, 10, {'strategy': 'paper'}",
    "float32": "X, k, options = normal.astype('f4'), 10, {}",
    "sparse": "X, k, options = csr_array(np.maximum(normal, 1.0) - 1.0), 10, {}",
    "iris": "X, k, options = load_iris().data, 3, {}",
    "digits": "X, k, options = load_digits().data, 30, {}",
}
COLUMNS = (
    Column("case", "case"),
    Column("version", "version"),
    Column("kernels", "kernels"),
    Column("first fit", "first", "{:.1f} s"),
    Column("CPU", "cpu", "{:.1f} s"),
    Column("busier", "busier", "{:.1f} s"),
    Column("later fits", "later", "{:.2f} s"),
)
PROCESS = """
import json, os, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris
normal = np.random.default_rng(0).normal(size=(1000, 10))
{case}
began, before = time.perf_counter(), os.times()
import evomeans
assert evomeans.__file__.startswith({package!r}), evomeans.__file__
evomeans.HGMeans(k, random_state=0, max_offspring=20, **options).fit(X)
wall, now = time.perf_counter() - began, os.times()
own, helper = (now[i] + now[i + 1] - before[i] - before[i + 1] for i in (0, 2))
print(json.dumps([wall, own + helper, max(own, helper)]))
"""


def installed(source: Path, folder: Path) -> Path:
    """Copy the package into a folder. What is compiled beside the sources stays there."""
    package = folder / "evomeans"
    shutil.copytree(source / "evomeans", package, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(package, quiet=1)
    return folder


def measure(case: str, source: Path, cache: str) -> tuple[float, float, float]:
    """Return wall and CPU seconds of import and fit in a new process, and of the busier one."""
    # Kernels may also lie among the caches of the user.
    folders = {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache, "LOCALAPPDATA": cache}
    environment = {**environment_of(source), **folders, "EVOMEANS_CACHE": "1"}
    program = PROCESS.format(case=CASES[case], package=str(source))
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case}: {done.stderr}")
    wall, cpu, busier = json.loads(done.stdout)
    return wall, cpu, busier


def count_kernels(*folders: str) -> int:
    """Return how many kernels lie compiled in some folders."""
    return sum(1 for folder in folders for _ in Path(folder).rglob("*.kernel"))


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("first_use", __doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--against", metavar="REV", help="a revision to measure as well")
    arguments = parser.parse_args(given)
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    columns = [one for one in COLUMNS if arguments.against or one.key != "version"]
    table = Table(columns, max(CASES, key=len))
    table.print_head()
    sources = {"now": ROOT / "src"}
    if arguments.against:
        sources["before"] = source_of(arguments.against)
    for case in arguments.cases or CASES:
        for version, source in sources.items():
            with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as site:
                copy = installed(source, Path(site))
                first, cpu, busier = measure(case, copy, cache)
                kernels = count_kernels(cache, site)
                later, _, _ = measure(case, copy, cache)
                if not 0 < kernels == count_kernels(cache, site):
                    raise SystemExit(f"{case}: the first process did not compile all kernels.")
            row = {"case": case, "version": version, "kernels": kernels}
            times = {"first": first, "cpu": cpu, "busier": busier, "later": later}
            table.print_row({**row, **times})
    print(f"Load of the machine at the end: {os.getloadavg()[0]:.1f}")
