"""
A few known labels
==================

K-means prefers round clusters and cuts long ones across. A few labelled samples can correct that:
pairs that share a label must be together, pairs that do not must be apart.
:class:`evomeans.ConstrainedHGMeans` finds the best clustering that satisfies all pairs.
"""

from itertools import pairwise

import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import adjusted_rand_score

from evomeans import ConstrainedHGMeans, HGMeans

# %%
# Two long clouds of 150 samples. Every sixth sample is labelled.

rng = np.random.default_rng(1)
truth = np.repeat([0, 1], 150)
X = np.column_stack([rng.uniform(-3.2, 3.2, 300), 0.3 * rng.normal(size=300) + 2.8 * truth])
known = np.arange(0, 300, 6)
known = known[np.argsort(X[known, 0])]

# %%
# Samples with the same label are linked in a chain, which joins all of them. One cannot-link
# keeps the two chains apart.

groups = [known[truth[known] == label] for label in range(2)]
must = [pair for group in groups for pair in pairwise(group)]
cannot = [(groups[0][0], groups[1][0])]

plain = HGMeans(2, random_state=0).fit(X)
linked = ConstrainedHGMeans(2, random_state=0).fit(X, must_link=must, cannot_link=cannot)
print(f"{len(must)} must-links, {len(cannot)} cannot-link, {linked.n_violations_} violated")

# %%
# Samples without a label follow those with one. Only they count in the comparison; the adjusted
# Rand index is 1 where clusters and clouds are the same, and about 0 for random labels.

rest = np.setdiff1d(np.arange(len(X)), known)
fig, axes = plt.subplots(1, 2, figsize=(12, 4.2), sharex=True, sharey=True)
for ax, model, title in zip(axes, (plain, linked), ("no labels", "50 labels of 300")):
    index = adjusted_rand_score(truth[rest], model.labels_[rest])
    ax.scatter(*X.T, c=plt.cm.Dark2(model.labels_), s=16)
    ax.set(title=f"{title}: adjusted Rand index {index:.2f}", xticks=[], yticks=[])
for pair in must:
    axes[1].plot(*X[list(pair)].T, color="#1b1f24", linewidth=0.6)
axes[1].scatter(*X[known].T, s=50, facecolors="none", edgecolors="#1b1f24")
plt.show()
