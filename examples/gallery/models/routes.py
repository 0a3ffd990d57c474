"""
Balanced delivery routes
========================

A courier has 240 parcels for eight vans, and no van can carry more than 32. Plain k-means
clusters ignore that limit; :class:`evomeans.ConstrainedHGMeans` keeps it in every solution it
makes.
"""

import numpy as np
from matplotlib import pyplot as plt

from evomeans import ConstrainedHGMeans, HGMeans

# %%
# Addresses are dense in the centre of the town and in one suburb, and sparse elsewhere.

rng = np.random.default_rng(3)
X = np.concatenate(
    [
        rng.normal([0, 0], 1.0, (120, 2)),
        rng.normal([5.5, 2.5], 0.7, (50, 2)),
        rng.uniform([-6, -4], [8, 5], (70, 2)),
    ]
)

# %%
# The same search, without and with the limit.

plain = HGMeans(8, random_state=0).fit(X)
limited = ConstrainedHGMeans(8, size_min=25, size_max=32, random_state=0).fit(X)
print("plain  ", np.sort(np.bincount(plain.labels_)))
print("limited", np.sort(np.bincount(limited.labels_)))


# %%
# A tour through each cluster shows the routes: start at any address, always continue with the
# closest one that is left, then undo crossings by reversing parts of the tour.


def tour(points):
    """Order points along a short closed tour."""
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    order, left = [0], set(range(1, len(points)))
    while left:
        order.append(min(left, key=lambda i: apart[order[-1], i]))
        left.remove(order[-1])
    improved = True
    while improved:
        improved = False
        for i in range(1, len(order) - 1):
            for j in range(i + 1, len(order)):
                a, b, c, d = order[i - 1], order[i], order[j], order[(j + 1) % len(order)]
                if apart[a, c] + apart[b, d] < apart[a, b] + apart[c, d] - 1e-12:
                    order[i : j + 1] = order[i : j + 1][::-1]
                    improved = True
    return points[[*order, order[0]]]


fig, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharex=True, sharey=True)
for ax, model, title in zip(axes, (plain, limited), ("HGMeans", "25 to 32 parcels per van")):
    for j in range(8):
        members = X[model.labels_ == j]
        color = plt.cm.Dark2(j)
        ax.plot(*tour(members).T, "-", color=color, linewidth=1)
        ax.scatter(*members.T, s=14, color=color)
        ax.text(*model.cluster_centers_[j], len(members), weight="bold", size=13, ha="center")
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
plt.show()
