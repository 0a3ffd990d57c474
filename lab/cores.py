"""How whole searches gain from more threads, and what they lose on a busy machine.

Run ``python -m lab cores`` for the problems below with 1, 2, 4, … threads, up to the number
of cores, or choose: ``python -m lab cores letters:50:200 --threads 1 16 --rounds 3``. A
problem is ``dataset:clusters`` or ``mixture:n:d:clusters``, and then the number of offspring; 0
leaves the search to its end. The data sets are looked up as in docs/laboratory/data.md.

``--busy N`` starts N processes that use a core each for nothing. ``--separate`` shows what the
machine could give: the throughput of as many searches at a time as there are threads, each in a
process of its own with one thread.

Every search is repeated ``--rounds`` times, and the numbers of threads take turns. The columns are
seconds with one thread, the least of all rounds, and how many times faster the others are: the
median of the ratios of the rounds. Every number of threads has to give the same bits.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from evomeans import HGMeans
from evomeans.search import DEEP
from lab.measure import Column, Table, parser_for
from lab.setups import samples_of

SETUPS = (
    "digits:30:300",
    "tsplib3038:50:300",
    "pendigit:50:200",
    "letters:50:200",
    "pla85900:25:60",
    "mixture:50000:20:50:60",
    "iris:3:0",
    "german_towns:5:0",
)
SEED = 0


def measure(
    setup: str, lag: int, threads: Sequence[int], rounds: int, separate: bool
) -> dict[str, Any]:
    """Run the searches of a problem; return a row of the table."""
    name, n_offspring = setup.rsplit(":", 1)
    X, m = samples_of(name)
    strategy = replace(DEEP, name=f"deep, lag {lag}", lag=lag)

    def fitted(n_jobs: int, n_offspring: int = int(n_offspring)) -> HGMeans:
        limit = {"max_offspring": n_offspring} if n_offspring else {}
        model = HGMeans(m, n_jobs=n_jobs, random_state=SEED, strategy=strategy, **limit)
        return model.fit(X)

    seconds: dict[int, list[float]] = {count: [] for count in threads}
    inertias = set()
    # Compilation does not count, nor does the first touch of the samples.
    fitted(max(threads), 2)
    for _ in range(rounds):
        for count, times in seconds.items():
            began = time.perf_counter()
            inertias.add(fitted(count).inertia_)
            times.append(time.perf_counter() - began)
    if len(inertias) > 1:
        raise SystemExit(f"{setup} ends with other bits if the number of threads is another.")
    base = seconds[threads[0]]
    row = {"setup": setup, "seconds": min(base)}
    for count in threads[1:]:
        ratios = [one / other for one, other in zip(base, seconds[count], strict=True)]
        row[str(count)] = statistics.median(ratios)
    if separate:
        row["separate"] = throughput(lambda: fitted(1), max(threads)) * min(base)
    return row


def throughput(search: Callable[[], object], count: int) -> float:
    """Return how many searches end per second if ``count`` of them run at a time."""
    context = multiprocessing.get_context("fork")
    began = time.perf_counter()
    processes = [context.Process(target=search) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return count / (time.perf_counter() - began)


def spin() -> None:
    """Use a core for nothing."""
    while True:
        pass


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run processes that use all the time they get."""
    processes = [multiprocessing.Process(target=spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()


def powers_of_two(most: int) -> list[int]:
    """Return 1, 2, 4, … and ``most``."""
    return sorted({*(2**i for i in range(most.bit_length()) if 2**i <= most), most})


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("cores", __doc__)
    parser.add_argument("setups", nargs="*", default=SETUPS, help="as described above")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--threads", nargs="+", type=int, default=powers_of_two(cores or 1))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lag", type=int, default=DEEP.lag, help="of the strategy")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="busy processes beside it")
    parser.add_argument("--separate", action="store_true", help="searches in separate processes")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    threads: list[int] = arguments.threads
    columns = [Column("problem", "setup"), Column(f"{threads[0]}", "seconds", "{:.2f} s")]
    columns += [Column(str(count), str(count), "{:.2f}x") for count in threads[1:]]
    if arguments.separate:
        columns.append(Column("separate", "separate", "{:.2f}x"))
    table = Table(columns, max(arguments.setups, key=len))
    table.print_head()
    with busy(arguments.busy):
        for setup in arguments.setups:
            table.print_row(
                measure(setup, arguments.lag, threads, arguments.rounds, arguments.separate)
            )
