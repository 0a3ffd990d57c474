"""
An operator of your own
=======================

A strategy is a value, and its operators are functions. To try a crossover of your own, write one
function and pass it in with a :class:`evomeans.search.Strategy`.
"""

from dataclasses import replace

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from evomeans import HGMeans
from evomeans.search import PAPER, Crossing
from evomeans.search.crossover import Child, squared_matching_crossover

# %%
# This crossover cuts space by a random plane. The child takes the centres of the first parent on
# one side, and those of the second on the other. If the two sides do not add up to k centres, it
# returns None, and the next crossover of the strategy makes the child. ``breeding`` has what it
# needs besides the parents: ``rng``, a generator, ``coins``, a uniform number for each cluster, and
# ``engine``, which holds the samples.


def plane_crossover(first, second, breeding):
    """Take the centres of one parent on each side of a random plane."""
    k, n_features = first.centers.shape
    normal = breeding.rng.normal(size=n_features)
    through = first.centers[int(breeding.rng.random() * k)]
    kept = (first.centers - through) @ normal <= 0.0
    taken = (second.centers - through) @ normal > 0.0
    if np.count_nonzero(kept) + np.count_nonzero(taken) != k:
        return None
    centers = first.centers.copy()
    centers[~kept] = second.centers[taken]
    return Child(centers, parent=first)


# %%
# It is tried for half of the offspring; matching by squared distances makes the others.

PLANES = replace(
    PAPER,
    name="planes",
    crossovers=(Crossing(plane_crossover, share=0.5), Crossing(squared_matching_crossover)),
)

# %%
# The history records which operator made each solution, so operators can be compared within one
# search.

X = load_digits().data
model = HGMeans(30, strategy=PLANES, max_offspring=300, random_state=0).fit(X)
made_by = model.history_.column("made_by")
inertia = model.history_.column("inertia")
gap = 100 * (inertia / model.inertia_ - 1)

fig, ax = plt.subplots(figsize=(8, 4.2))
number = np.arange(len(gap))
for operator, color in zip(
    ("random samples", "squared matching", "plane"), ("0.7", "#0072B2", "#D55E00")
):
    mask = made_by == operator
    ax.scatter(number[mask], gap[mask], s=16, color=color, label=f"{operator}: {mask.sum()}")
ax.set(xlabel="solutions made", ylabel="percent above the best", yscale="symlog")
ax.set_title("Digits, k = 30: solutions by the operator that made them", loc="left")
ax.legend(frameon=False)
plt.show()
