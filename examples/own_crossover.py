"""Try a crossover of your own: write one function, and pass it in with a strategy.

Run ``python examples/own_crossover.py``. It clusters the handwritten digits with the crossover from
the paper and with one that cuts the space by a random plane, and prints which operator made how
many offspring and how deep both searches came.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_digits

from evomeans import HGMeans
from evomeans.search import PAPER, Crossing, Individual, Strategy
from evomeans.search.crossover import Breeding, Child, squared_matching_crossover


def plane_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child | None:
    """Take the centres of the first parent on one side of a random plane, else those of the second.

    The plane goes through a centre of the first parent, drawn at random. If the two sides do not
    add up to k centres, return None: then the next crossover of the strategy makes the child.
    """
    normal = breeding.rng.normal(size=first.centers.shape[1])
    k = len(first.centers)
    through = first.centers[int(breeding.rng.random() * k)]
    kept = (first.centers - through) @ normal <= 0.0
    taken = (second.centers - through) @ normal > 0.0
    if np.count_nonzero(kept) + np.count_nonzero(taken) != k:
        return None
    centers = first.centers.copy()
    centers[~kept] = second.centers[taken]
    return Child(centers, parent=first)


PLANES: Strategy = replace(
    PAPER,
    name="planes",
    crossovers=(Crossing(plane_crossover, share=0.5), Crossing(squared_matching_crossover)),
)


def main() -> None:
    """Compare the two on the digits, with the same number of offspring."""
    X = load_digits().data
    for strategy in ("paper", PLANES):
        inertias = []
        for seed in range(3):
            model = HGMeans(30, strategy=strategy, max_offspring=300, random_state=seed).fit(X)
            inertias.append(model.inertia_)
        operators, counts = np.unique(model.history_.column("made_by"), return_counts=True)
        made = ", ".join(f"{n} by {name}" for name, n in zip(operators, counts, strict=True))
        name = strategy if isinstance(strategy, str) else strategy.name
        print(f"{name:8} mean inertia {np.mean(inertias):,.1f}; the last search made {made}")


if __name__ == "__main__":
    main()
