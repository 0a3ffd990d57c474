"""Models other than plain k-means, compared with what people would run instead.

Run ``python -m lab models`` (an hour), or one part of it: ``sizes``, ``links``, ``cosine`` or
``outliers``. All times are CPU seconds of one thread. The data is drawn by this file
or comes with scikit-learn.

``sizes`` needs the package k-means-constrained: ``pip install --group benchmark``. It runs with its
default of 10 starts. *To its value* is the time that ConstrainedHGMeans takes to an objective that
is not higher, and *times* how many times that fits into the time of k-means-constrained. Then the
search continues until it has used ``--share`` of that time; *lower by* says where it ends.

``links`` draws pairs of samples, and takes their classes for must-links and cannot-links; in noisy
problems, a tenth of the pairs is drawn from shuffled classes instead. The search ends by itself, or
after ``--seconds``. Then COP-KMeans and alternating exact assignments get the same CPU time, and at
least one whole run. *above* is how much higher their best objective is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from evomeans import (
    ConstrainedHGMeans,
    HGMeans,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from evomeans.engines.constrained.links import InfeasibleError, Links
from evomeans.typing import FloatArray
from lab.constrained_rivals import (
    best_within,
    cop_kmeans,
    exact_alternation,
    spherical_restarts,
)
from lab.measure import Column, Table, parser_for, timed
from lab.planted import texts

Row = dict[str, Any]
SIZES = ((2_000, 10, 20), (10_000, 20, 10), (23_000, 50, 10))
SHARES = (0.005, 0.01, 0.02)
STARTS = 10


def mixture(n: int, d: int, k: int, seed: int) -> FloatArray:
    """Draw overlapping clusters, twice as many as are looked for."""
    return np.asarray(
        datasets.make_blobs(n, d, centers=2 * k, cluster_std=4.0, random_state=seed)[0]
    )


# Sizes


def size_limits(n: int, k: int) -> dict[str, tuple[int, int]]:
    """Return equal sizes, and limits of 20 % below and above them."""
    return {
        "equal": (n // k, -(-n // k)),
        "±20 %": (int(np.ceil(0.8 * n / k)), int(1.2 * n / k)),
    }


def compare_sizes(chosen: argparse.Namespace) -> Iterator[Row]:
    """Compare with k-means-constrained."""
    from k_means_constrained import KMeansConstrained

    warm_up(ConstrainedHGMeans, size_max="balanced")
    for n, d, k in SIZES[: chosen.problems]:
        for seed in range(chosen.seeds):
            X = mixture(n, d, k, seed)
            for name, (low, high) in size_limits(n, k).items():
                limits = {"size_min": low, "size_max": high}
                rival = KMeansConstrained(k, **limits, n_init=STARTS, random_state=seed, n_jobs=1)
                _, theirs = timed(lambda rival=rival, X=X: rival.fit(X))
                reached, model = search_to(
                    rival.inertia_, X, k, limits, chosen.share * theirs, seed
                )
                sizes = np.bincount(model.labels_, minlength=k)
                yield {
                    "problem": f"{n:,} x {d}, k = {k}, {name}, seed {seed}",
                    "theirs": theirs,
                    "reached": reached,
                    "times": theirs / reached,
                    "gap": 100.0 * (1.0 - model.inertia_ / rival.inertia_),
                    "within": bool(sizes.min() >= low and sizes.max() <= high),
                }


def search_to(
    value: float, X: FloatArray, k: int, limits: dict[str, int], seconds: float, seed: int
) -> tuple[float, ConstrainedHGMeans]:
    """Return the CPU time to a value, NaN if it was not reached, and the model in the end."""
    reached = np.nan

    def watch(record: Any) -> bool:
        nonlocal reached
        spent = process_time() - began
        if np.isnan(reached) and record.best <= value * (1.0 + 1e-9):
            reached = spent
        return spent > seconds

    model = ConstrainedHGMeans(k, **limits, random_state=seed, n_jobs=1, observers=watch)
    began = process_time()
    model.fit(X)
    return reached, model


# Links


def glass_like(seed: int = 0) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw 214 samples of 9 features in six classes of unequal size that overlap."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(6), [70, 76, 17, 13, 9, 29])
    centers = rng.normal(size=(6, 9))
    return centers[classes] + 0.9 * rng.normal(size=(214, 9)), classes


def classic(load: Callable[..., Any]) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return a data set of scikit-learn with standardised features, and its classes."""
    X, classes = load(return_X_y=True)
    return StandardScaler().fit_transform(X), classes


LABELLED: dict[str, Callable[[], tuple[FloatArray, NDArray[np.int64]]]] = {
    "iris": lambda: classic(datasets.load_iris),
    "wine": lambda: classic(datasets.load_wine),
    "glass-like": glass_like,
    "breast cancer": lambda: classic(datasets.load_breast_cancer),
}


def drawn_links(classes: NDArray[np.int64], share: float, noisy: bool, seed: int) -> Links:
    """Draw pairs; classes say whether they are must-links or cannot-links."""
    rng = np.random.default_rng(seed)
    n = len(classes)
    every = np.column_stack(np.triu_indices(n, 1))
    pairs = every[rng.choice(len(every), round(share * len(every)), replace=False)]
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    if noisy:
        shuffled = rng.permutation(classes)
        wrong = rng.random(len(pairs)) < 0.1
        same = np.where(wrong, shuffled[pairs[:, 0]] == shuffled[pairs[:, 1]], same)
    hard = [np.full(len(one), np.inf) for one in (pairs[same], pairs[~same])]
    return Links(pairs[same], hard[0], pairs[~same], hard[1])


def compare_links(chosen: argparse.Namespace) -> Iterator[Row]:
    """Compare with COP-KMeans and with alternating exact assignments."""
    warm_up(ConstrainedHGMeans, size_max="balanced")
    for name, load in LABELLED.items():
        X, classes = load()
        k = len(np.unique(classes))
        for share in SHARES:
            for noisy in (False, True):
                for seed in range(chosen.seeds):
                    links = drawn_links(classes, share, noisy, seed)
                    yield linked_row(name, X, k, links, share, noisy, seed, chosen.seconds)


def linked_row(
    name: str,
    X: FloatArray,
    k: int,
    links: Links,
    share: float,
    noisy: bool,
    seed: int,
    seconds: float,
) -> Row:
    """Search under links, and let the rivals have as much time."""
    row: Row = {"problem": f"{name}, {share:.1%}{' noisy' if noisy else ''}, seed {seed}"}
    model = ConstrainedHGMeans(k, random_state=seed, n_jobs=1, max_time=seconds)
    try:
        _, spent = timed(lambda: model.fit(X, must_link=links.must, cannot_link=links.cannot))
    except InfeasibleError:
        return {**row, "verdict": "infeasible"}
    for rival, method in (("cop", cop_kmeans), ("pccc", exact_alternation)):
        best, runs = best_within(method(X, links, k, seed), spent)
        row[rival] = 100.0 * (best / model.inertia_ - 1.0) if np.isfinite(best) else np.nan
        row[f"{rival}_runs"] = runs
    violations = links.count_violations(model.labels_)[0]
    verdict = f"{violations} violations"
    return {**row, "seconds": spent, "inertia": model.inertia_, "verdict": verdict}


# Cosine, outliers


def directions() -> dict[str, Callable[[int], tuple[Any, int]]]:
    """Return sparse texts that are drawn, and digits."""
    return {
        "texts 4,000 x 6,000 CSR": lambda seed: (
            texts(4_000, 6_000, 20, np.random.default_rng(seed)).X,
            20,
        ),
        "digits": lambda seed: (datasets.load_digits().data, 10),
        "digits, k = 30": lambda seed: (datasets.load_digits().data, 30),
    }


def compare_cosine(chosen: argparse.Namespace) -> Iterator[Row]:
    """Compare with ten restarts of spherical k-means."""
    for name, load in directions().items():
        for seed in range(chosen.seeds):
            X, k = load(seed)
            SphericalHGMeans(2, max_offspring=1, max_population=2, min_population=1).fit(X[:50])
            runs = spherical_restarts(X, k, seed)
            best, theirs = timed(lambda runs=runs: min(next(runs) for _ in range(STARTS)))
            model = SphericalHGMeans(k, random_state=seed, n_jobs=1, max_time=chosen.seconds)
            _, ours = timed(lambda model=model, X=X: model.fit(X))
            yield {
                "problem": f"{name}, seed {seed}",
                "theirs": theirs,
                "ours": ours,
                "inertia": model.inertia_,
                "gap": 100.0 * (best / model.inertia_ - 1.0),
            }


def compare_outliers(chosen: argparse.Namespace) -> Iterator[Row]:
    """Compare with plain k-means where uniform noise surrounds planted clusters."""
    for share in (0.05, 0.2):
        for seed in range(chosen.seeds):
            rng = np.random.default_rng(seed)
            centers = rng.uniform(-10.0, 10.0, (8, 3))
            classes = rng.integers(0, 8, 2000)
            count = round(2000 * share / (1.0 - share))
            noise = rng.uniform(-60.0, 60.0, (count, 3))
            X = np.concatenate([centers[classes] + 0.8 * rng.normal(size=(2000, 3)), noise])
            models = {
                "trimmed": TrimmedHGMeans(8, n_outliers=share, random_state=seed, n_jobs=1),
                "plain": HGMeans(8, random_state=seed, n_jobs=1),
                "sklearn": KMeans(8, n_init=STARTS, random_state=seed),
            }
            found = {name: model.fit(X).predict(X)[:2000] for name, model in models.items()}
            row: Row = {"problem": f"{share:.0%} noise, seed {seed}"}
            yield row | {
                name: adjusted_rand_score(classes, labels) for name, labels in found.items()
            }


def warm_up(model: Any, **parameters: Any) -> None:
    """Compile, or load, before the clock counts."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    model(2, max_offspring=4, n_jobs=1, **parameters).fit(X)


PROBLEM = Column("problem", "problem")
PARTS: dict[str, tuple[Callable[[argparse.Namespace], Iterator[Row]], list[Column]]] = {
    "sizes": (
        compare_sizes,
        [
            PROBLEM,
            Column("k-means-constrained", "theirs", "{:.2f} s"),
            Column("to its value", "reached", "{:.2f} s"),
            Column("times", "times", "{:.0f}"),
            Column("lower by", "gap", "{:.3f} %"),
            Column("within limits", "within"),
        ],
    ),
    "links": (
        compare_links,
        [
            PROBLEM,
            Column("time", "seconds", "{:.1f} s"),
            Column("inertia", "inertia", "{:.4f}"),
            Column("COP-KMeans above", "cop", "{:.3f} %"),
            Column("runs", "cop_runs"),
            Column("exact alternation above", "pccc", "{:.3f} %"),
            Column("runs", "pccc_runs"),
            Column("links", "verdict"),
        ],
    ),
    "cosine": (
        compare_cosine,
        [
            PROBLEM,
            Column("10 starts", "theirs", "{:.1f} s"),
            Column("ours", "ours", "{:.1f} s"),
            Column("inertia", "inertia", "{:.4f}"),
            Column("10 starts above", "gap", "{:.4f} %"),
        ],
    ),
    "outliers": (
        compare_outliers,
        [
            PROBLEM,
            Column("TrimmedHGMeans", "trimmed", "{:.3f}"),
            Column("HGMeans", "plain", "{:.3f}"),
            Column("KMeans", "sklearn", "{:.3f}"),
        ],
    ),
}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("models", __doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", type=int, default=len(SIZES), help="of sizes")
    parser.add_argument("--share", type=float, default=0.5, help="of the time, for sizes")
    parser.add_argument("--seconds", type=float, default=20.0, help="for links and cosine")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse_arguments(arguments)
    for part in chosen.parts:
        compare, columns = PARTS[part]
        print(f"\n{part}")
        table = Table(columns, "23,000 x 50, k = 10, equal, seed 0")
        table.print_head()
        for row in compare(chosen):
            table.print_row(row)
