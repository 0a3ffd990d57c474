"""Draw the picture of the README: KMeans in a bad minimum next to HG-means.

Run it with ``make picture``. The KMeans run is not a chosen one: of the runs with the seeds 0 to
19 it is the one with the median inertia.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.cluster import KMeans

from evomeans import HGMeans

TARGET = Path(__file__).resolve().parents[1] / "images" / "kmeans-vs-hgmeans.png"
N_CLUSTERS = 50
N_RUNS = 20

INK = "#1b1f24"


@dataclass(frozen=True)
class Style:
    """How the centres of one kind and their samples look."""

    meaning: str
    marker: str
    size: int
    center: str
    samples: str


# Okabe and Ito's colours, which stay apart for colour-blind readers; the markers differ as well.
STYLES = (
    Style("one centre, one cloud", "o", 90, INK, "#bcc3cb"),
    Style("two centres share a cloud", "^", 190, "#0072B2", "#8fc4e6"),
    Style("one centre for two clouds", "s", 150, "#D55E00", "#f0ad80"),
)


def make_clouds(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Make 50 round Gaussian clouds of unequal size and spread, their middles well apart.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The samples.
    cloud : ndarray of shape (n_samples,)
        The cloud each sample was drawn from.
    """
    rng = np.random.default_rng(seed)
    middles: list[np.ndarray] = []
    while len(middles) < N_CLUSTERS:
        candidate = rng.uniform((0.0, 0.0), (10.0, 6.4))
        if all(np.hypot(*(candidate - middle)) > 0.8 for middle in middles):
            middles.append(candidate)
    sizes = np.exp(rng.uniform(np.log(40), np.log(400), N_CLUSTERS)).astype(int)
    cloud = np.repeat(np.arange(N_CLUSTERS), sizes)
    spread = rng.uniform(0.108, 0.18, N_CLUSTERS)[cloud, None]
    return np.array(middles)[cloud] + spread * rng.standard_normal((len(cloud), 2)), cloud


def kmeans_runs(X: np.ndarray) -> list[KMeans]:
    """Run KMeans once from each of 20 seeds, and order the runs by inertia."""
    runs = [KMeans(N_CLUSTERS, n_init=1, random_state=seed).fit(X) for seed in range(N_RUNS)]
    return sorted(runs, key=lambda run: run.inertia_)


def misplaced(labels: np.ndarray, cloud: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tell which centres share one cloud, and which hold most of several clouds.

    Returns
    -------
    sharing, covering : ndarray of shape (n_clusters,), bool
        One entry per centre.
    """
    table = np.zeros((N_CLUSTERS, N_CLUSTERS), dtype=int)
    np.add.at(table, (labels, cloud), 1)
    owned = np.bincount(table.argmax(axis=0), minlength=N_CLUSTERS)
    main_cloud = table.argmax(axis=1)
    sharing = np.bincount(main_cloud, minlength=N_CLUSTERS)[main_cloud] > 1
    covering = owned > 1
    return sharing & ~covering, covering


def draw(axes: Axes, model: Any, X: np.ndarray, cloud: np.ndarray) -> None:
    """Draw the samples, and the centres of a fitted model with the misplaced ones marked."""
    sharing, covering = misplaced(model.labels_, cloud)
    for mask, style in zip((~sharing & ~covering, sharing, covering), STYLES, strict=True):
        axes.scatter(*X[mask[model.labels_]].T, s=8, color=style.samples, linewidths=0)
        axes.scatter(
            *model.cluster_centers_[mask].T,
            s=style.size,
            marker=style.marker,
            color=style.center,
            edgecolors="white",
            linewidths=1.5,
            zorder=3,
        )
    axes.set(xlim=(-0.7, 10.7), ylim=(-0.6, 7.0), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_color("#d5d9de")


def main() -> None:
    """Fit both methods, draw them side by side and write the PNG."""
    X, cloud = make_clouds()
    runs = kmeans_runs(X)
    usual = runs[N_RUNS // 2]
    best = HGMeans(N_CLUSTERS, random_state=0).fit(X)
    gap = 100 * (usual.inertia_ / best.inertia_ - 1)

    figure = Figure(figsize=(16, 7.1), dpi=100)
    left, right = figure.subplots(1, 2)
    draw(left, usual, X, cloud)
    draw(right, best, X, cloud)
    titles = (
        (left, "KMeans", f"inertia {usual.inertia_:.1f}, which is {gap:.0f} % above HG-means"),
        (right, "HG-means", f"inertia {best.inertia_:.1f}"),
    )
    for axes, name, result in titles:
        axes.text(0, 1.085, name, transform=axes.transAxes, size=27, weight="bold", color=INK)
        axes.text(0, 1.025, result, transform=axes.transAxes, size=19, color="#4a5058")
    handles = [
        Line2D([], [], linestyle="", marker=style.marker, color=style.center, markersize=13)
        for style in STYLES
    ]
    meanings = [style.meaning for style in STYLES]
    figure.legend(
        handles,
        meanings,
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=19,
        handletextpad=0.1,
    )
    figure.subplots_adjust(left=0.012, right=0.988, top=0.875, bottom=0.095, wspace=0.03)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(TARGET, metadata={"Software": None})
    print(f"{TARGET.name}: HG-means {best.inertia_:.2f}; {N_RUNS} runs of KMeans:", end=" ")
    gaps = [100 * (run.inertia_ / best.inertia_ - 1) for run in runs]
    print(f"best +{gaps[0]:.1f} %, median +{gap:.1f} %, worst +{gaps[-1]:.1f} %")


if __name__ == "__main__":
    main()
