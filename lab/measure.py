"""Clocks, the yardstick, data, tables and files of results, which the benchmarks share."""

from __future__ import annotations

import argparse
import csv
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import starmap
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

RESULTS = Path(__file__).parent / "results"
# Rounds of the yardstick are repeated until they took this many CPU seconds, or this often.
YARDSTICK_SEEDS, YARDSTICK_SECONDS, YARDSTICK_ROUNDS = 10, 0.2, 10

# The reference file gives four decimals of sums that were rounded before: less is no gap.
PRINTED, ROUNDING = 5e-5, 1e-12

Outcome = TypeVar("Outcome")
Samples = NDArray[Any]


def parser_for(name: str, documentation: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command, whose help is the docstring of its module."""
    return argparse.ArgumentParser(
        prog=f"python -m lab {name}",
        description=documentation,
        formatter_class=argparse.RawTextHelpFormatter,
    )


def parse_setup(setup: str) -> tuple[str, int]:
    """Split ``letters:50`` into the data set and the number of clusters."""
    name, _, clusters = setup.partition(":")
    if not clusters.isdigit():
        raise SystemExit(
            f"{setup!r} names no problem: expected dataset:clusters, as in letters:50."
        )
    return name, int(clusters)


def gap(value: float, known: float) -> float:
    """Percent above a known value."""
    if abs(value - known) <= PRINTED + ROUNDING * known:
        return 0.0
    return 100.0 * (value - known) / known


def timed(
    function: Callable[[], Outcome], clock: Callable[[], float] = time.process_time
) -> tuple[Outcome, float]:
    """Call a function; return what it returns and the seconds it took, of CPU by default."""
    began = clock()
    outcome = function()
    return outcome, clock() - began


def timed_lloyd(X: Samples, m: int, init: Any, seed: int | None = None) -> tuple[KMeans, float]:
    """Run scikit-learn's K-means to the fixed point on one thread; also return its CPU seconds."""
    # Imported here: processes that only write rows start in a fraction of the time without it.
    from sklearn.cluster import KMeans

    model = KMeans(
        m, init=init, n_init=1, tol=0, max_iter=1000, algorithm="lloyd", random_state=seed
    )
    # Setting the limit takes as long as a small run.
    with threadpool_limits(1):
        return timed(lambda: model.fit(X))


def yardstick_seconds(X: Samples, m: int) -> list[float]:
    """CPU seconds of scikit-learn runs from random samples: the same ten seeds, once or more.

    Their mean is the yardstick Y. Half of it is best taken before and half after what it is to
    measure, so that a machine that changes its speed hurts both.
    """
    seconds: list[float] = []
    for _ in range(YARDSTICK_ROUNDS):
        seconds += [timed_lloyd(X, m, "random", seed)[1] for seed in range(YARDSTICK_SEEDS)]
        if sum(seconds) > YARDSTICK_SECONDS:
            break
    return seconds


def in_parallel(
    function: Callable[..., Outcome], orders: Sequence[tuple[Any, ...]], processes: int
) -> Iterator[Outcome]:
    """Yield what a function returns for each tuple of arguments, as soon as it does."""
    if processes == 1:
        yield from starmap(function, orders)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(function, *order) for order in orders]):
            yield done.result()


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean; not a number if there are no values."""
    logarithms = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logarithms)) if logarithms else math.nan


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Exponent p of the power law y ~ xᵖ, by least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def mixture(n: int, d: int, m: int, separation: float, seed: int = 0) -> NDArray[np.float64]:
    """Draw from m equal spherical Gaussians; typical centres are ``separation`` deviations apart.

    The separation does not depend on d, so that neither does how much neighbours overlap.
    """
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=separation / math.sqrt(2 * d), size=(m, d))
    X = rng.standard_normal((n, d))
    X += centers[rng.integers(m, size=n)]
    return X


@dataclass(frozen=True)
class Column:
    """A column of a printed table.

    Parameters
    ----------
    title : str
    key : str
        Of the value in a row; a missing value or one that is not a number is printed as a dash.
    form : str
        How the value is formatted, with its unit: ``"{:.1f} %"``.
    factor : float
        Values are multiplied by it first.
    """

    title: str
    key: str
    form: str = "{}"
    factor: float | None = None

    def text(self, row: Mapping[str, Any]) -> str:
        """Format the value that a row has here."""
        value = row.get(self.key)
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            return "-"
        return self.form.format(value if self.factor is None else value * self.factor)


class Table:
    """A table printed row by row, while the measurements go on; for pages, in Markdown.

    ``python -m lab figures`` sets the variable ``EVOMEANS_LAB_TABLES`` to ``markdown``.

    Parameters
    ----------
    columns : sequence of Column
        The first one is aligned to the left.
    widest : str
        The widest text that the first column will hold.
    """

    def __init__(self, columns: Sequence[Column], widest: str) -> None:
        self.columns = columns
        self.widths = [max(len(column.title), 8) for column in columns]
        self.widths[0] = max(len(columns[0].title), len(widest))
        self.is_markdown = os.environ.get("EVOMEANS_LAB_TABLES") == "markdown"

    def print_head(self) -> None:
        """Print the titles."""
        self._print([column.title for column in self.columns])
        if self.is_markdown:
            print("|---|" + "--:|" * (len(self.columns) - 1))

    def print_row(self, row: Mapping[str, Any]) -> None:
        """Print a row."""
        self._print([column.text(row) for column in self.columns])

    def _print(self, texts: Sequence[str]) -> None:
        if self.is_markdown:
            print(f"| {' | '.join(texts)} |", flush=True)
            return
        first, *others = zip(texts, self.widths, strict=True)
        aligned = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        print(" ".join(aligned).rstrip(), flush=True)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of results, numbers as numbers; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{key: number(value) for key, value in row.items()} for row in csv.DictReader(file)]


def number(text: str) -> Any:
    """Turn a field of a CSV file back into the number it was, if it was one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a file of results; a new file gets a header first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", newline="") as file:
        file.seek(0)
        header = next(csv.reader(file), None)
        writer = csv.DictWriter(file, list(row))
        if header is None:
            writer.writeheader()
        elif header != list(row):
            raise SystemExit(f"{path} has other columns than are measured now; remove it first.")
        writer.writerow(row)


def replace_block(text: str, name: str, content: str) -> str:
    """Return a page with other content between ``<!-- name -->`` and ``<!-- end of name -->``."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"The page has no {begin.strip()!r}, or no {end!r} after it.")
    return before + begin + content + end + after
