"""Draw the pictures of docs/guide/models.md: plain k-means on the left, another model on the right.

Run it with ``make picture``. The samples are drawn here, and every clustering is computed by the
library, with the seed 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evomeans import (
    ConstrainedHGMeans,
    HGMeans,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from evomeans.plotting.axes import INK, MUTED, OKABE_ITO

IMAGES = Path(__file__).resolve().parents[1] / "images"


def two_panels(titles: tuple[str, str], height: float = 3.9) -> tuple[Figure, list[Axes]]:
    """Return a figure with two plain axes of equal scale."""
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = list(figure.subplots(1, 2, sharex=True, sharey=True))
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize="medium", color=INK)
        ax.set_aspect("equal")
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set_color("#d5d9de")
    return figure, axes


def scatter(ax: Axes, X: Any, labels: Any, size: float = 14.0) -> None:
    """Draw samples by cluster; outliers are grey crosses."""
    for cluster in np.unique(labels):
        own = X[labels == cluster]
        if cluster < 0:
            ax.scatter(*own.T, s=size, color=MUTED, marker="x", linewidths=0.8)
        else:
            color = OKABE_ITO[cluster % len(OKABE_ITO)]
            ax.scatter(*own.T, s=size, color=color, alpha=0.8, linewidths=0)


def mark_centers(ax: Axes, centers: Any) -> None:
    """Draw centres as crosses."""
    ax.scatter(*centers.T, s=70, color=INK, marker="+", linewidths=1.6)


def draw_sizes() -> Figure:
    """Show four clusters of equal size."""
    rng = np.random.default_rng(0)
    dense = rng.normal([0.0, 0.0], 1.0, (300, 2))
    loose = rng.uniform(-6.0, 6.0, (180, 2))
    X = np.concatenate([dense, loose])
    plain = HGMeans(4, random_state=0).fit(X)
    equal = ConstrainedHGMeans(4, size_max="balanced", random_state=0).fit(X)
    figure, axes = two_panels((_sizes("HGMeans", plain), _sizes('size_max="balanced"', equal)))
    for ax, model in zip(axes, (plain, equal), strict=True):
        scatter(ax, X, model.labels_)
        mark_centers(ax, model.cluster_centers_)
    return figure


def _sizes(name: str, model: Any) -> str:
    return f"{name}: {', '.join(map(str, np.bincount(model.labels_)))} samples"


def draw_links() -> Figure:
    """Show two long clusters that pairs of known samples tell apart."""
    rng = np.random.default_rng(1)
    classes = np.repeat([0, 1], 100)
    X = np.column_stack([rng.uniform(-3.2, 3.2, 200), 0.3 * rng.normal(size=200) + 3.0 * classes])
    pairs = rng.permutation(200)[:40].reshape(20, 2)
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    plain = HGMeans(2, random_state=0).fit(X)
    linked = ConstrainedHGMeans(2, random_state=0)
    linked.fit(X, must_link=pairs[same], cannot_link=pairs[~same])
    n_must, n_cannot = np.count_nonzero(same), np.count_nonzero(~same)
    right = f"{n_must} must-links, {n_cannot} cannot-links (dashed)"
    figure, axes = two_panels(("HGMeans", right), height=3.0)
    scatter(axes[0], X, plain.labels_)
    scatter(axes[1], X, linked.labels_)
    for pair, is_must in zip(pairs, same, strict=True):
        axes[1].plot(*X[pair].T, "-" if is_must else "--", color=INK, linewidth=0.8)
    return figure


def draw_cosine() -> Figure:
    """Show directions of any length."""
    rng = np.random.default_rng(2)
    angles = np.repeat([0.15, 0.75, 1.4], 70) + 0.07 * rng.normal(size=210)
    lengths = rng.uniform(0.5, 8.0, 210)
    X = lengths[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    plain = HGMeans(3, random_state=0).fit(X)
    cosine = SphericalHGMeans(3, random_state=0).fit(X)
    figure, axes = two_panels(("HGMeans", "SphericalHGMeans"))
    scatter(axes[0], X, plain.labels_)
    mark_centers(axes[0], plain.cluster_centers_)
    scatter(axes[1], X, cosine.labels_)
    for center in cosine.cluster_centers_:
        axes[1].plot(*np.stack([np.zeros(2), 8.0 * center]).T, color=INK, linewidth=1.1)
    return figure


def draw_outliers() -> Figure:
    """Show three clusters in noise."""
    rng = np.random.default_rng(3)
    places = np.repeat([[0.0, 0.0], [3.0, 0.5], [1.2, 2.8]], 80, axis=0)
    clusters = places + 0.35 * rng.normal(size=(240, 2))
    X = np.concatenate([clusters, rng.uniform([-9.0, -6.0], [13.0, 9.0], (60, 2))])
    plain = HGMeans(3, random_state=0).fit(X)
    trimmed = TrimmedHGMeans(3, n_outliers=0.2, random_state=0).fit(X)
    figure, axes = two_panels(("HGMeans", "TrimmedHGMeans(n_outliers=0.2)"), height=3.0)
    for ax, model in zip(axes, (plain, trimmed), strict=True):
        scatter(ax, X, model.labels_)
        mark_centers(ax, model.cluster_centers_)
    return figure


def main() -> None:
    """Draw all pictures."""
    pictures = {
        "sizes": draw_sizes,
        "links": draw_links,
        "cosine": draw_cosine,
        "outliers": draw_outliers,
    }
    for name, draw in pictures.items():
        path = IMAGES / f"model-{name}.png"
        draw().savefig(path, dpi=110)
        print(path)


if __name__ == "__main__":
    main()
