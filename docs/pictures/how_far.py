"""Draw how far from the best KMeans ends: 100 runs and 100 restarted ones on the digits, k = 30.

Run it with ``make picture``; it writes how-far.png, which the landing page and
docs/guide/local-optima.md show.
"""

from __future__ import annotations

import os

# Threads only wait for each other on data this small.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from evomeans import HGMeans

TARGET = Path(__file__).resolve().parents[1] / "images" / "how-far.png"
K, N_RUNS = 30, 100


def gaps() -> dict[int, np.ndarray]:
    """Return the percentages above HGMeans, by ``n_init``."""
    X = load_digits().data
    best = HGMeans(K, random_state=0).fit(X).inertia_

    def above(n_init: int, seed: int) -> float:
        return 100 * (KMeans(K, n_init=n_init, random_state=seed).fit(X).inertia_ / best - 1)

    return {n: np.array([above(n, seed) for seed in range(N_RUNS)]) for n in (1, 10)}


def main() -> None:
    """Draw both histograms and the search."""
    found = gaps()
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    ax = figure.subplots()
    bins = np.linspace(0, np.ceil(found[1].max()), 46)
    ax.hist(found[1], bins, color="#8fc4e6", label=f"{N_RUNS} runs of KMeans(n_init=1)")
    ax.hist(found[10], bins, color="#0072B2", alpha=0.85, label=f"{N_RUNS} of KMeans(n_init=10)")
    ax.axvline(0, color="#D55E00", linewidth=4, label="HGMeans, every seed")
    ax.set(xlabel="inertia above HGMeans, in percent", ylabel="runs", xlim=(-0.05, None))
    ax.spines[["top", "right"]].set_visible(False)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False)
    figure.savefig(TARGET, dpi=150)
    for n_init, values in found.items():
        print(
            f"n_init={n_init}: {values.min():.2f} to {values.max():.2f} %, {np.median(values):.2f}"
        )


if __name__ == "__main__":
    main()
