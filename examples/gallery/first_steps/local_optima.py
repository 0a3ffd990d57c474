"""
How far from the best is KMeans?
================================

K-means stops at a local minimum, and which one depends on where it begins. This example runs
:class:`sklearn.cluster.KMeans` 100 times on the handwritten digits and shows where the runs end,
next to one search by :class:`evomeans.HGMeans`.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from evomeans import HGMeans

X = load_digits().data
k = 30

# %%
# A hundred runs of KMeans from k-means++ starts, each with a seed of its own, and one search.

runs = np.array([KMeans(k, n_init=1, random_state=seed).fit(X).inertia_ for seed in range(100)])
model = HGMeans(k, random_state=0).fit(X)
print(f"HGMeans {model.inertia_:,.0f}, the best of 100 runs {runs.min():,.0f}")

# %%
# Not one run of KMeans reaches the value of the search, and a typical run is about two percent
# above it. ``n_init=10`` takes the best of ten such runs, which moves you to the left end of the
# histogram, but not beyond it.

gaps = 100 * (runs / model.inertia_ - 1)
best_of_ten = gaps.reshape(10, 10).min(axis=1)
fig, ax = plt.subplots(figsize=(8, 4))
bins = np.linspace(0, gaps.max(), 41)
ax.hist(gaps, bins, color="#8fc4e6", label="one run of KMeans")
ax.hist(best_of_ten, bins, color="#0072B2", label="KMeans(n_init=10)")
ax.axvline(0, color="#D55E00", linewidth=3, label="HGMeans")
ax.set(xlabel="inertia above HGMeans, in percent", ylabel="runs", title=f"Digits, k = {k}")
ax.legend(frameon=False)
plt.show()
