"""
A million rows
==============

A search of many rows begins on a subsample and ends on all of them. This example shows what
happens on the way.
"""

import numpy as np
from matplotlib import pyplot as plt

from evomeans import HGMeans

N_ROWS = 1_000_000
K = 25

# %%
# A mixture of 25 clusters of unequal size in the plane, in single precision.

rng = np.random.default_rng(4)
means = rng.uniform(0, 10, (K, 2))
kind = rng.choice(K, size=N_ROWS, p=rng.dirichlet(np.full(K, 3.0)))
X = (means[kind] + 0.35 * rng.normal(size=(N_ROWS, 2))).astype(np.float32)

# %%
# ``levels_`` has the number of rows, and the sizes of the subsamples on which populations begin.

model = HGMeans(K, random_state=0).fit(X)
print("levels", model.levels_)
print(f"{model.n_iter_} offspring, {model.n_rediscoveries_} rediscoveries")

# %%
# ``made_by`` says for each solution which operator made it. The founders come from subsamples and
# are refined on all rows.

operators, counts = np.unique(model.history_.column("made_by"), return_counts=True)
for operator, count in zip(operators, counts):
    print(f"{count:5d}  {operator}")

# %%
# The density of the samples, and the centres. Circles have an area in proportion to the rows of
# their cluster.

sizes = np.bincount(model.labels_)
fig, ax = plt.subplots(figsize=(8, 6))
ax.hexbin(*X.T, gridsize=160, bins="log", cmap="Blues", linewidths=0)
ax.scatter(
    *model.cluster_centers_.T,
    s=2500 * sizes / sizes.max() / 4,
    facecolors="none",
    edgecolors="#D55E00",
    linewidths=1.8,
)
ax.set(title=f"{N_ROWS:,} rows, k = {K}", xticks=[], yticks=[], aspect="equal")
plt.show()
