"""Run random cases in processes of their own, with limits, and count what came of them.

A module of fuzz cases has a function ``case(rng)``. It returns the kind of outcome in a word or
two, or several kinds with a separator between them, and raises where evomeans did something that it
must not do. Everything else is here.

Case number i of seed s draws from ``default_rng([s, i])``: ``python -m tests.fuzz files --seed s
--case i`` repeats it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
# A case of a module with other needs says so: CASE_SECONDS = ... in the module.
CASE_SECONDS = 30.0
# To load the libraries, and to compile kernels that are in no cache.
START_SECONDS = 300.0
MEMORY = 6 * 2**30
# More findings, or more of a traceback, help no one.
MOST_SHOWN, LONGEST_DETAIL = 20, 3000
# Of the kinds of outcome of one case.
SEPARATOR = "; "


@dataclass(frozen=True)
class Finding:
    """A case in which evomeans did something that it must not do."""

    number: int
    kind: str
    detail: str


@dataclass(frozen=True)
class Report:
    """What came of all cases: how many of each kind, and the findings."""

    name: str
    seed: int
    n_cases: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.n_cases} cases in {self.seconds:.0f} s, seed {self.seed}"]
        lines += [f"  {count:8} {kind}" for kind, count in sorted(self.counts.items())]
        if len(self.findings) > MOST_SHOWN:
            lines.append(f"{len(self.findings)} findings; the first {MOST_SHOWN}:")
        for one in self.findings[:MOST_SHOWN]:
            again = f"{self.name.rpartition('.')[2]} --seed {self.seed} --case {one.number}"
            lines.append(f"{one.kind}: python -m tests.fuzz {again}")
            lines += [f"    {line}" for line in one.detail.splitlines()]
        return "\n".join(lines)


def run(
    name: str,
    *,
    seed: int = 0,
    n_cases: int | None = None,
    seconds: float | None = None,
    processes: int = 1,
) -> Report:
    """Run the cases of a module, as many as told or as fit into the time.

    No case begins after so many ``seconds``; ``processes`` is how many run at the same time.
    """
    began = time.monotonic()
    if n_cases is None and seconds is None:
        raise ValueError("Say how many cases to run, or for how many seconds.")
    deadline = math.inf if seconds is None else began + seconds
    # Threads share it, which generators do not allow.
    numbers = takewhile(
        lambda _: time.monotonic() < deadline, range(sys.maxsize if n_cases is None else n_cases)
    )
    with ThreadPoolExecutor(processes) as pool:
        workers = [pool.submit(_work, name, seed, numbers) for _ in range(processes)]
        outcomes = [outcome for worker in workers for outcome in worker.result()]
    kinds = [one.kind if isinstance(one, Finding) else one for one in outcomes]
    counts = Counter(kind for one in kinds for kind in one.split(SEPARATOR))
    findings = [one for one in outcomes if isinstance(one, Finding)]
    return Report(
        name,
        seed,
        len(outcomes),
        dict(counts),
        tuple(sorted(findings, key=lambda one: one.number)),
        time.monotonic() - began,
    )


def _work(name: str, seed: int, numbers: Iterator[int]) -> list[str | Finding]:
    """Run cases one after the other in a process, and in another one after it has died."""
    child: _Child | None = None
    outcomes: list[str | Finding] = []
    for number in numbers:
        child = child or _Child(name, seed)
        outcomes.append(child.outcome(number))
        if child.has_ended:
            child = None
    if child is not None:
        child.end()
    return outcomes


class _Child:
    """A process that runs cases until one of them kills it or does not end."""

    def __init__(self, name: str, seed: int) -> None:
        self.has_ended = False
        with tempfile.NamedTemporaryFile(prefix="evomeans-fuzz-", delete=False) as errors:
            self.errors = Path(errors.name)
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.running", name, str(seed)],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.questions, self.answers = self.process.stdin, self.process.stdout
        answer = self._answer(START_SECONDS)
        if not answer:
            raise RuntimeError(f"The process for {name} does not start.\n{self.end()[1]}")
        self.limit = json.loads(answer)

    def outcome(self, number: int) -> str | Finding:
        """Return the kind of a case, or what is wrong with it."""
        self.questions.write(f"{number}\n".encode())
        self.questions.flush()
        answer = self._answer(self.limit)
        if answer is None:
            return Finding(number, "hang", f"no answer for {self.limit:g} s\n{self.end()[1]}")
        if not answer:
            return Finding(number, *self.end())
        kind, detail = json.loads(answer)
        return kind if detail is None else Finding(number, kind, detail)

    def _answer(self, seconds: float) -> bytes | None:
        """Return a line of the process, empty if it has ended; None if there is none in time."""
        ready, _, _ = select.select([self.answers], [], [], seconds)
        return self.answers.readline() if ready else None

    def end(self) -> tuple[str, str]:
        """End the process and those that it started; return how it ended, and its last words."""
        # One that waits for questions ends by itself; one that crashes says so.
        with contextlib.suppress(BrokenPipeError):
            self.questions.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.answers.close()
        self.has_ended = True
        said = self.errors.read_text(errors="replace")[-LONGEST_DETAIL:]
        self.errors.unlink()
        return signal.Signals(-code).name if code < 0 else f"exit {code}", said


def serve(name: str, seed: int) -> None:
    """Run the cases whose numbers come in, in this process, and answer with a line for each."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # What a case prints is not an answer.
    os.dup2(2, 1)
    faulthandler.enable()
    module = importlib.import_module(name)
    limit = getattr(module, "CASE_SECONDS", CASE_SECONDS)
    _limit_memory(getattr(module, "MEMORY", MEMORY))
    print(json.dumps(limit), file=answers)
    for line in sys.stdin:
        try:
            answer: tuple[str, str | None] = (run_case(module, seed, int(line)), None)
        except Exception as error:
            answer = (type(error).__name__, traceback.format_exc()[-LONGEST_DETAIL:])
        print(json.dumps(answer), file=answers)


def _limit_memory(size: int) -> None:
    # POSIX only, as are the signals of the parent.
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def run_case(module: object, seed: int, number: int) -> str:
    """Run one case in this process."""
    return str(module.case(np.random.default_rng([seed, number])))  # type: ignore[attr-defined]


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
