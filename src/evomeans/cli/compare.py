"""``evomeans compare``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from evomeans.cli.failures import CommandError
from evomeans.cli.options import ComparisonOptions, SampleOptions, TableOptions
from evomeans.cli.run_folder import check_new_file
from evomeans.cli.tables.opening import check_table, load_table
from evomeans.cli.tables.table import Table
from evomeans.cli.terminal import Terminal, as_typed
from evomeans.estimators.hgmeans import HGMeans
from evomeans.files import write_atomically
from evomeans.search import StopReason
from evomeans.search.population import CLONE_TOLERANCE
from evomeans.wording import (
    counted,
    duration_text,
    how_to_install,
    number_text,
    percent_text,
)

PICTURES = (".png", ".svg", ".pdf")


@dataclass
class Course:
    """What a method reached, and when."""

    method: str
    unit: str
    """What it makes: offspring or starts."""
    count: int = 0
    """How many of them it made."""
    cpu_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    """The CPU time whenever it improved."""
    best: list[float] = field(default_factory=list)
    """The inertia at these times."""

    @property
    def inertia(self) -> float:
        """The lowest."""
        return self.best[-1]

    def add(self, inertia: float, seconds: float) -> None:
        """Take in a solution."""
        if not self.best or inertia < self.best[-1]:
            self.seconds.append(seconds)
            self.best.append(inertia)


def compare_methods(
    name: str,
    options: ComparisonOptions,
    read: TableOptions,
    samples: SampleOptions,
    terminal: Terminal,
) -> int:
    """Run three methods for the same CPU time on one thread, and show what they reached."""
    clusters, picture = options.clusters, options.picture
    if picture is not None:
        _check_picture(picture, options.force)
    table = load_table(name, read, terminal, samples)
    check_table(table, clusters, terminal)
    courses = [_search(table, options, terminal)]
    budget = courses[0].cpu_seconds
    for method, init in (("K-means++ restarts", "k-means++"), ("K-means restarts", "random")):
        terminal.note(f"{method} for {duration_text(budget)} ...")
        courses.append(_restarts(method, init, table, clusters, budget, options.seed))
    record = {
        "command": as_typed(),
        "table": table.name,
        "n_clusters": clusters,
        "picture": None if picture is None else str(picture),
        "methods": [{"inertia": course.inertia, **asdict(course)} for course in courses],
    }
    terminal.result(record, _summary(courses, table, clusters))
    if picture is not None:
        write_atomically(picture, _drawn(courses, table, clusters, picture.suffix.lower()))
        terminal.note(f"picture: {picture}")
    return 0


def _check_picture(picture: Path, force: bool) -> None:
    if picture.suffix.lower() not in PICTURES:
        raise CommandError(f"{picture} must end in one of {', '.join(PICTURES)}.")
    check_new_file(picture, force)
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        hint = how_to_install("plot")
        raise CommandError(f"The picture needs matplotlib: {hint}.") from error


def _search(table: Table, options: ComparisonOptions, terminal: Terminal) -> Course:
    terminal.note("preparing the kernels, compiled on the first use ...")
    with terminal.noting_warnings():
        least = HGMeans(
            options.clusters,
            min_population=1,
            max_population=1,
            max_offspring=1,
            random_state=0,
        )
        least.fit(table.X, sample_weight=table.weights)
    terminal.note("HG-means ...")
    course = Course("HG-means", "offspring")
    began = time.process_time()

    def watch(record: Any) -> bool:
        course.count = record.number
        now = time.process_time() - began
        course.add(record.inertia, now)
        return options.time is not None and now >= options.time

    make = HGMeans.fast if options.fast else HGMeans
    with terminal.noting_warnings("fit was interrupted", "Number of distinct clusters"):
        model = make(options.clusters, random_state=options.seed, observers=watch, n_jobs=1)
        model.fit(table.X, sample_weight=table.weights)
    if model.stop_reason_ == StopReason.INTERRUPTED:
        # There is nothing to compare with any more.
        raise KeyboardInterrupt
    course.cpu_seconds = time.process_time() - began
    course.add(model.inertia_, course.cpu_seconds)
    return course


def _restarts(
    method: str, init: str, table: Table, clusters: int, budget: float, seed: int
) -> Course:
    """Start scikit-learn's KMeans again and again until the time is spent; at least once."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    course = Course(method, "starts")
    seeds = np.random.default_rng(seed)
    with threadpool_limits(1), warnings.catch_warnings():
        # Fewer distinct rows than clusters; HG-means has said so once.
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.process_time()
        while not course.count or time.process_time() - began < budget:
            # To the fixed point, as HG-means: a tolerance would leave something to be gained.
            model = KMeans(
                clusters,
                init=init,
                n_init=1,
                max_iter=100_000,
                tol=0.0,
                random_state=int(seeds.integers(2**31 - 1)),
            ).fit(table.X, sample_weight=table.weights)
            course.count += 1
            course.add(float(model.inertia_), time.process_time() - began)
        course.cpu_seconds = time.process_time() - began
    return course


def _drawn(courses: list[Course], table: Table, clusters: int, suffix: str) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from evomeans.plotting import plot_comparison

    figure = Figure(figsize=(7.0, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    # Each curve continues to the end of its time at the level it reached.
    runs = {
        course.method: ([*course.seconds, course.cpu_seconds], [*course.best, course.inertia])
        for course in courses
    }
    plot_comparison(runs, ax=ax)
    # Bytes of a file name that are not text cannot be drawn.
    name = Path(table.name).name.encode("utf-8", errors="backslashreplace").decode("utf-8")
    title = f"{name}: {counted(clusters, 'cluster')} of {counted(len(table.X), 'row')}"
    # A dollar sign would begin mathematics.
    figure.suptitle(title.replace("$", r"\$"), x=0.02, ha="left", fontsize="medium")
    ax.set_xlabel("CPU time (seconds)")
    file = BytesIO()
    figure.savefig(file, format=suffix[1:], dpi=150)
    return file.getvalue()


def _summary(courses: list[Course], table: Table, clusters: int) -> str:
    best = min(course.inertia for course in courses)
    unit = " in standardized units" if table.standardization is not None else ""
    rows = [("method", f"inertia{unit}", "above the best", "made", "CPU time", "best after")]
    for course in courses:
        gap = _gap_text(course.inertia, best)
        made = f"{course.count:,} {course.unit}"
        times = duration_text(course.cpu_seconds), duration_text(course.seconds[-1])
        rows.append((course.method, number_text(course.inertia), gap, made, *times))
    lines = [
        f"{table.name}: {counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}, "
        f"{counted(clusters, 'cluster')}; one thread each",
        *aligned_columns(rows),
    ]
    return "\n".join(lines)


def _gap_text(inertia: float, best: float) -> str:
    if best == 0:
        return "-"
    gap = inertia / best - 1
    # What is closer to the best is the best, but for rounding.
    return percent_text(gap if gap > CLONE_TOLERANCE else 0.0)


def aligned_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Set rows of text into columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  " + "   ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        for row in rows
    ]
    return [lines[0], "  " + "-" * (len(lines[0]) - 2), *lines[1:]]
