"""Embeddings and codebooks: ours at the time at which each rival is done, in one run.

Run ``python -m lab embeddings manuals:1000 patches:1024``, with any of these data sets before the
number of clusters:

  manuals, docstrings  sentences of manual pages and of installed packages, 384 features, float32
  patches              grey 8 × 8 patches of scikit-learn's two photographs, less their mean
  colours              colour 8 × 8 patches of the same, 192 features
  digits               scikit-learn's digits, 64 features
  mixture64, mixture128  a million samples of 1,024 Gaussians with much overlap

``--embed manuals`` makes the sentences first, at most ``--rows`` of them, and keeps them where
downloads are kept. ``--rows`` also limits the rows of any data set, and ``--skip`` leaves out as
many before, so that tuning and reports use different rows. ``--seed`` is that of everybody.

All run on one thread, ``--threads`` more. A time includes the labels of all rows. ``--cpu`` counts
CPU seconds instead of those of the clock, also for our ``max_time``, for machines that others use.
The dependency group ``embeddings`` has the rivals; those that cannot be imported are left out, and
the table says so. Inertia is computed afterwards, by one function for all, in float64. The columns:

  seconds   until the rival was done
  inertia   of its centres
  ours      of our centres with ``max_time`` at these seconds, in percent of the rival's: negative
            is lower
  took      seconds that ours took
  offspring of ours

The last lines give our first solution, and what we have at twice the time of faiss, or when the
slowest rival is done if that is later; ``--limit`` sets another time. ``--keep`` writes the
improvements of our search until then, and the points of rivals, to
lab/results/embeddings.csv; ``--draw`` draws them into docs/images/embeddings.png (which needs the
extra ``plot``).
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_digits, load_sample_images
from threadpoolctl import threadpool_limits

from lab.measure import RESULTS, Samples, parse_setup, parser_for
from lab.mixtures import overlapping_mixture

SETUPS = ("manuals:100", "manuals:1000", "patches:256", "patches:1024")
SIDE, STRIDE = 8, 2
PAUSE = 0.3
MIXTURES = {"mixture64": 64, "mixture128": 128}
CURVES, PICTURE = RESULTS / "embeddings.csv", RESULTS.parents[1] / "docs/images/embeddings.png"
FAISS = "faiss, 25 iterations"
Clock = Callable[[], float]


@dataclass(frozen=True)
class Outcome:
    """What a program made: seconds, labels included, and the inertia of its centres."""

    name: str
    seconds: float
    inertia: float


# ---- data ----------------------------------------------------------------------------------------


def samples_named(name: str) -> Samples:
    """Return the rows of a data set, in float32."""
    if name == "digits":
        return np.ascontiguousarray(load_digits().data, np.float32)
    if name in ("patches", "colours"):
        return patches(in_colour=name == "colours")
    if name in MIXTURES:
        return overlapping_mixture(1_000_000, MIXTURES[name])
    from lab.data.sentences import CORPORA, load_sentences

    if name not in CORPORA:
        raise SystemExit(
            f"{name!r} is none of {', '.join(CORPORA)}, patches, colours, digits, "
            f"{' and '.join(MIXTURES)}."
        )
    return load_sentences(name)


def patches(*, in_colour: bool) -> Samples:
    """Return patches of scikit-learn's photographs, each less its mean, in values up to one."""
    rows = []
    for image in load_sample_images().images:
        values = image / 255.0 if in_colour else image.mean(axis=2, keepdims=True) / 255.0
        windows = np.lib.stride_tricks.sliding_window_view(values, (SIDE, SIDE), axis=(0, 1))
        found = windows[::STRIDE, ::STRIDE].reshape(-1, values.shape[2] * SIDE * SIDE)
        rows.append(found - found.mean(axis=1, keepdims=True))
    return np.ascontiguousarray(np.concatenate(rows), np.float32)


def some_rows(X: Samples, skip: int, rows: int | None) -> Samples:
    """Return some rows, of all in a random order that is always the same."""
    if not skip and rows is None:
        return X
    order = np.random.default_rng(12345).permutation(len(X))
    chosen = order[skip : None if rows is None else skip + rows]
    if not len(chosen):
        raise SystemExit(f"--skip {skip} leaves none of {len(X)} rows.")
    return np.ascontiguousarray(X[chosen])


def inertia(X: Samples, centers: Samples) -> float:
    """Sum up the squared distances to the closest centres, in float64."""
    own = centers.astype(np.float64)
    squares, total = (own * own).sum(axis=1), 0.0
    for first in range(0, len(X), 2048):
        rows = X[first : first + 2048].astype(np.float64)
        scores = (squares - 2.0 * (rows @ own.T)).min(axis=1)
        total += float(scores.sum() + (rows * rows).sum())
    return total


# ---- rivals --------------------------------------------------------------------------------------


def superkmeans(X: Samples, k: int, seed: int, threads: int, **options: Any) -> Samples:
    import superkmeans as package

    d = X.shape[1]
    model = package.SuperKMeans(k, d, n_threads=threads, seed=seed, hierarchical=False, **options)
    centers = model.train(X)
    model.assign(X, centers)
    return np.asarray(centers)


def faiss(X: Samples, k: int, seed: int, threads: int) -> Samples:
    import faiss as package

    package.omp_set_num_threads(threads)
    most = -(-len(X) // k)
    model = package.Kmeans(X.shape[1], k, niter=25, seed=seed, max_points_per_centroid=most)
    model.train(X)
    model.index.search(X, 1)
    return np.asarray(model.centroids)


def scikit_learn(X: Samples, k: int, seed: int, threads: int, kind: Any) -> Samples:
    with threadpool_limits(threads):
        model = kind(k, n_init=1, random_state=seed).fit(X)
    return np.asarray(model.cluster_centers_)


RIVALS: dict[str, Callable[[Samples, int, int, int], Samples]] = {
    "superkmeans": superkmeans,
    "superkmeans, all rows": lambda *given: superkmeans(*given, sampling_fraction=1.0),
    "superkmeans, 25 iterations": lambda *given: superkmeans(
        *given, sampling_fraction=1.0, iters=25, early_termination=False
    ),
    FAISS: faiss,
    "MiniBatchKMeans": lambda *given: scikit_learn(*given, MiniBatchKMeans),
    "KMeans": lambda *given: scikit_learn(*given, KMeans),
}


def run_rival(
    name: str, X: Samples, k: int, seed: int, threads: int, clock: Clock
) -> Outcome | str:
    """Let a rival run; return why it cannot if it cannot."""
    began = clock()
    try:
        centers = RIVALS[name](X, k, seed, threads)
    except ImportError as error:
        return f"{name} is not installed ({error})"
    return Outcome(name, clock() - began, inertia(X, centers))


# ---- ours ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ours:
    """A fit of ours: seconds and inertia, offspring, and its improvements over time."""

    seconds: float
    inertia: float
    n_iter: int
    steps: tuple[tuple[float, float], ...]


def run_ours(X: Samples, k: int, seed: int, threads: int, limit: float, clock: Clock) -> Ours:
    """Fit with a limit of time."""
    from evomeans import HGMeans

    # Threads of the libraries of rivals stay busy for a tenth of a second after their work.
    time.sleep(PAUSE)
    steps: list[tuple[float, float]] = []
    began = clock()

    def watch(record: Any) -> None:
        if not steps or record.best < steps[-1][1]:
            steps.append((clock() - began, record.best))

    model = HGMeans(k, max_time=limit, n_jobs=threads, random_state=seed, observers=watch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    seconds = clock() - began
    return Ours(seconds, inertia(X, model.cluster_centers_), model.n_iter_, tuple(steps))


def compile_kernels(X: Samples, k: int, threads: int) -> None:
    """Compile and load before anything is measured: a whole search, and hurried ones."""
    run_ours(X[:2000], 20, 0, 1, 2.0, time.perf_counter)
    for seconds in (0.1, 0.3, 1.0):
        run_ours(X, k, 0, threads, seconds, time.perf_counter)


def compare(setup: str, X: Samples, k: int, options: Any, clock: Clock) -> list[list[Any]]:
    """Print the table of a problem; return the points of its curve."""
    seed, threads = options.seed, options.threads
    print(f"\n{setup}: {X.shape[0]:,} × {X.shape[1]}, k = {k}, seed {seed}, {threads} thread(s)")
    print(f"{'':28} {'seconds':>8} {'inertia':>12} {'ours':>8} {'took':>8} {'offspring':>9}")
    points: list[list[Any]] = []
    last = 0.0
    for name in RIVALS:
        if any(word in name for word in options.without):
            continue
        rival = run_rival(name, X, k, seed, threads, clock)
        if isinstance(rival, str):
            print(rival)
            continue
        ours = run_ours(X, k, seed, threads, rival.seconds, clock)
        above = 100.0 * (ours.inertia / rival.inertia - 1.0)
        print(
            f"{name:28} {rival.seconds:8.2f} {rival.inertia:12.6g} {above:+7.2f}% "
            f"{ours.seconds:8.2f} {ours.n_iter:9d}",
            flush=True,
        )
        points.append([setup, name, rival.seconds, rival.inertia])
        points.append([setup, f"ours at {name}", ours.seconds, ours.inertia])
        last = 2.0 * rival.seconds if name == FAISS else max(last, rival.seconds)
    return points + long_run(setup, X, k, options, options.limit or last, clock)


def long_run(
    setup: str, X: Samples, k: int, options: Any, limit: float, clock: Clock
) -> list[list[Any]]:
    """Print our first solution and our last; return all improvements."""
    ours = run_ours(X, k, options.seed, options.threads, limit, clock)
    seconds, value = ours.steps[0]
    print(f"{'ours, first solution':28} {seconds:8.2f} {value:12.6g}")
    print(f"{'ours, end':28} {ours.seconds:8.2f} {ours.inertia:12.6g} {ours.n_iter:26d}")
    return [[setup, "ours", *step] for step in (*ours.steps, (ours.seconds, ours.inertia))]


# ---- picture -------------------------------------------------------------------------------------


def draw() -> None:
    """Draw the inertia over time, ours as steps and rivals as points."""
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    from evomeans.plotting.axes import FAINT, INK, MUTED, OKABE_ITO

    with CURVES.open(newline="") as file:
        rows = [
            (r["setup"], r["who"], float(r["seconds"]), float(r["inertia"]))
            for r in csv.DictReader(file)
        ]
    setups = list(dict.fromkeys(row[0] for row in rows))
    figure, panels = plt.subplots(1, len(setups), figsize=(5 * len(setups), 3.6), squeeze=False)
    for panel, setup in zip(panels[0], setups, strict=True):
        own = [row[1:] for row in rows if row[0] == setup]
        limited = sorted((x, y) for who, x, y in own if who.startswith("ours at"))
        improved = sorted((x, y) for who, x, y in own if who == "ours")
        panel.step(*zip(*improved, strict=True), where="post", color=OKABE_ITO[0], label="HGMeans")
        panel.plot(
            *zip(*limited, strict=True), "o", color=OKABE_ITO[0], label="HGMeans with max_time"
        )
        rivals = [row for row in own if not row[0].startswith("ours")]
        for (who, x, y), color in zip(rivals, OKABE_ITO[1:], strict=False):
            panel.plot(x, y, "s", color=color, label=who)
        panel.set(xscale="log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel("CPU seconds", color=MUTED)
        panel.set_title(setup.replace(":", ", k = "), color=INK)
        panel.grid(color=FAINT, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("inertia", color=MUTED)
    # Rivals leave this corner free.
    panels[0][0].legend(frameon=False, fontsize=8, loc="upper right")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)
    print(f"drawn: {PICTURE.name}")


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("embeddings", __doc__)
    parser.add_argument("setups", nargs="*", default=SETUPS, metavar="SET-UP")
    parser.add_argument("--embed", choices=("docstrings", "manuals"), help="make sentences")
    parser.add_argument("--rows", type=int, help="rows at most")
    parser.add_argument("--skip", type=int, default=0, help="rows to leave out before")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, help="seconds of the long run of ours")
    parser.add_argument("--without", nargs="*", default=[], help="words of rivals to leave out")
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds")
    parser.add_argument("--keep", action="store_true", help="write all points as CSV")
    parser.add_argument("--draw", action="store_true", help="draw the points that were kept")
    options = parser.parse_args(given)
    if options.draw:
        draw()
        return
    if options.embed:
        from lab.data.sentences import make_sentences

        print(make_sentences(options.embed, options.rows or 40_000))
        return
    if options.cpu:
        # Before the package is imported: its limits of time follow this clock as well.
        time.perf_counter = time.process_time
    clock = time.perf_counter
    points: list[list[Any]] = []
    for setup in options.setups:
        name, k = parse_setup(setup)
        X = some_rows(samples_named(name), options.skip, options.rows)
        with threadpool_limits(options.threads):
            compile_kernels(X, k, options.threads)
            points += compare(setup, X, k, options, clock)
    if options.keep:
        with CURVES.open("w", newline="") as file:
            csv.writer(file).writerows([["setup", "who", "seconds", "inertia"], *points])
