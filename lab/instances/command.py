"""The library of instances of minimum sum-of-squares clustering.

verify    compute every value from its solution and check every certificate
improve   search for better solutions and for proofs, and write what is found
merge     take over better solutions and higher bounds from another copy of the library
submit    say whether labels or centres from a file are a record
table     write the tables and the picture of docs/laboratory/instances.md
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from lab.data.errors import DataError
from lab.instances import library
from lab.instances.catalogue import sources
from lab.instances.improvement import Effort, improve
from lab.instances.merging import merge
from lab.instances.page import is_in_step, write
from lab.instances.submission import SubmissionError, submit
from lab.instances.verification import faults
from lab.measure import parse_setup, parser_for


def checked(name: str) -> list[str]:
    """Return all faults of a data set."""
    try:
        return list(faults(name))
    except (DataError, ValueError) as error:
        return [f"{name}: {error}"]


def verify(names: Sequence[str], processes: int) -> int:
    """Check data sets and print what is not true; return the exit status."""
    began, wrong = time.monotonic(), 0
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for name, found in zip(names, pool.map(checked, names), strict=True):
            wrong += len(found)
            print(f"{name}: {'; '.join(found) or 'all true'}", flush=True)
    print(f"{len(names)} data sets, {wrong} faults, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of the library."""
    parser = parser_for("instances", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("verify", help="check values and certificates")
    one.add_argument("names", nargs="*", metavar="DATASET")
    one.add_argument("--processes", type=int, default=2)
    one = commands.add_parser("improve", help="search and prove")
    one.add_argument("names", nargs="*", metavar="DATASET[:K]", default=list(sources()))
    one.add_argument("--minutes", type=float, default=10.0, help="for everything")
    one.add_argument("--seconds", type=float, default=10.0, help="for each search, 0 for none")
    one.add_argument("--proof-seconds", type=float, default=0.0, help="for each proof")
    one.add_argument("--seeds", type=int, nargs="+", default=[0])
    one.add_argument("--strategies", nargs="+", choices=("deep", "paper"), default=["deep"])
    one.add_argument("--processes", type=int, default=1)
    one = commands.add_parser("merge", help="take over what another copy has found")
    one.add_argument("folder", type=Path)
    one = commands.add_parser("submit", help="check labels or centres")
    one.add_argument("instance", metavar="DATASET:K")
    one.add_argument("file", type=Path)
    one.add_argument("--by", default="submitted", help="the method, for the records")
    one.add_argument("--accept", action="store_true", help="keep a record")
    one = commands.add_parser("table", help="write the table of the page")
    one.add_argument("--check", action="store_true", help="only say whether it is up to date")
    chosen = parser.parse_args(arguments)
    if chosen.command == "verify":
        known = library.names()
        if unknown := [name for name in chosen.names if name not in known]:
            raise SystemExit(f"error: no data set {unknown[0]!r}; expected {', '.join(known)}")
        return verify(chosen.names or known, chosen.processes)
    if chosen.command == "improve":
        effort = Effort(chosen.seconds, chosen.proof_seconds, chosen.seeds, chosen.strategies)
        limits = {"minutes": chosen.minutes, "processes": chosen.processes}
        try:
            better = improve(chosen.names, effort, **limits)
        except ValueError as error:
            raise SystemExit(f"error: {error}") from None
        print(f"{better} values are new or lower.")
        return 0
    if chosen.command == "merge":
        for line in merge(chosen.folder):
            print(line, flush=True)
        return 0
    if chosen.command == "submit":
        name, k = parse_setup(chosen.instance)
        try:
            print(submit(name, k, chosen.file, chosen.by, accept=chosen.accept))
        except SubmissionError as error:
            raise SystemExit(f"error: {error}") from None
        return 0
    if chosen.check:
        return int(not is_in_step())
    write()
    return 0
