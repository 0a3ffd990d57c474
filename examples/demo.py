"""Cluster the handwritten digits: what HG-means finds next to what KMeans finds.

Run it with ``make demo``; ``python examples/demo.py --help`` lists its options. The 1,797 images
of 8 × 8 pixels come with scikit-learn; nothing is downloaded. Every method has one thread, and its
CPU time is shown, so that the comparison is the same on an idle machine and on a busy one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from evomeans import HGMeans, OffspringRecord

WIDTH = 20
"""Of the column of methods."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a method and what it reached."""

    method: str
    inertia: float
    rand_index: float
    seconds: float


class Progress:
    """An observer that shows the search: one line kept fresh on a terminal, else a few lines.

    Parameters
    ----------
    method : str
        The name at the start of the line.
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self.live = sys.stdout.isatty()
        self.due = 0.1 if self.live else 1.0

    def __call__(self, record: OffspringRecord) -> None:
        """Show the state of the search if it is time to."""
        if record.seconds < self.due:
            return
        # A log should stay short however long the search takes.
        self.due = record.seconds + 0.1 if self.live else 2 * record.seconds
        made = f"{record.number:,} offspring" if record.number else "first population"
        ago = f"{record.since_improvement} since it improved" if record.number else ""
        self.show(f"{record.best:>12,.1f}   {record.seconds:5.1f} s   {made:<18}{ago}")

    def show(self, text: str) -> None:
        """Write a line about the method, over the last one on a terminal."""
        line = f"{self.method:<{WIDTH}}{text}".rstrip()
        print(f"\r\x1b[K{line}" if self.live else line, end="" if self.live else "\n", flush=True)

    def close(self, text: str) -> None:
        """Write the last line about the method."""
        self.show(text)
        if self.live:
            print(flush=True)


def main() -> None:
    """Fit every method on the digits and print the comparison."""
    arguments = parse_arguments()
    k, seed = arguments.clusters, arguments.seed
    X, y = load_digits(return_X_y=True)
    print(f"Handwritten digits: {X.shape[0]:,} images of {X.shape[1]} pixels, {k} clusters;")
    print("one thread for every method.\n")
    compile_kernels(X, k)

    methods: list[tuple[str, Callable[[Progress], Any]]] = [
        ("KMeans, 1 start", lambda _: KMeans(k, n_init=1, random_state=seed)),
        ("KMeans, 10 starts", lambda _: KMeans(k, n_init=10, random_state=seed)),
        ("KMeans, 100 starts", lambda _: KMeans(k, n_init=100, random_state=seed)),
        ("HG-means, fast", lambda p: HGMeans.fast(k, n_jobs=1, random_state=seed, observers=[p])),
        ("HG-means", lambda p: HGMeans(k, n_jobs=1, random_state=seed, observers=[p])),
    ]
    with threadpool_limits(1):
        print_table([run(method, make_model, X, y) for method, make_model in methods])


def parse_arguments() -> argparse.Namespace:
    """Read the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=30, help="number of clusters (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random_state of all (%(default)s)")
    return parser.parse_args()


def compile_kernels(X: Any, k: int) -> None:
    """Fit once in vain, so that compiling is not counted as searching."""
    print(
        "Preparing the kernels: compiled on the first run, read from a cache later ...",
        end=" ",
        flush=True,
    )
    started = perf_counter()
    HGMeans(k, max_offspring=1, n_jobs=1, random_state=0).fit(X)
    print(f"{perf_counter() - started:.1f} s\n")


def run(method: str, make_model: Callable[[Progress], Any], X: Any, y: Any) -> Row:
    """Fit one method and report what it reached."""
    progress = Progress(method)
    if progress.live:
        progress.show(f"{'...':>12}")
    started = process_time()
    model = make_model(progress).fit(X)
    seconds = process_time() - started
    made = f"{model.n_iter_:,} offspring" if isinstance(model, HGMeans) else ""
    progress.close(f"{model.inertia_:>12,.1f}   {seconds:5.1f} s   {made:<18}done")
    return Row(method, model.inertia_, adjusted_rand_score(y, model.labels_), seconds)


def print_table(rows: list[Row]) -> None:
    """Print the methods side by side, with the gap of each to the best of all."""
    best = min(row.inertia for row in rows)
    header = (
        f"{'method':<{WIDTH}}{'inertia':>14}{'gap to best':>14}{'Rand index':>13}{'CPU time':>12}"
    )
    print(f"\n{header}\n{'-' * len(header)}")
    for row in rows:
        gap = 100 * (row.inertia / best - 1)
        print(
            f"{row.method:<{WIDTH}}{row.inertia:>14,.1f}{gap:>12.2f} %"
            f"{row.rand_index:>13.3f}{row.seconds:>10.2f} s"
        )
    print(
        "\nInertia: sum of squared distances to the nearest centre, what k-means minimises."
        "\nGap: how far it lies above the lowest of the table."
        "\nRand index: agreement with the ten true digits, adjusted for chance; 1 is perfect."
        "\nNo method sees the digits, so it need not rise as the inertia falls."
    )


if __name__ == "__main__":
    main()
