"""
Prove that a clustering is optimal
==================================

A search ends with a very good clustering; a proof ends with certainty.
:meth:`evomeans.HGMeans.certify` computes a lower bound that no clustering can beat. If the bound
meets the inertia, the clustering is optimal.
"""

from textwrap import fill

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from evomeans import HGMeans

X = load_iris().data
model = HGMeans(3, random_state=0).fit(X)
print(fill(str(model.certify(X)), 78))

# %%
# The certificate also puts other methods on an absolute scale. Here are 100 single runs of KMeans
# for each k, in percent above an optimum that is proven, not just believed.

rng = np.random.default_rng(0)
fig, ax = plt.subplots(figsize=(8, 4.2))
for k in range(2, 9):
    certificate = HGMeans(k, random_state=0).fit(X).certify(X)
    assert certificate.status == "optimal"
    runs = np.array([KMeans(k, n_init=1, random_state=s).fit(X).inertia_ for s in range(100)])
    gaps = 100 * (runs / certificate.upper_bound - 1)
    is_optimal = gaps < 1e-4
    ax.scatter(k + rng.uniform(-0.3, 0.3, 100), gaps, s=12, alpha=0.6, color="#0072B2")
    ax.text(k, 30, f"{is_optimal.sum()} %", ha="center", color="#D55E00", weight="bold")
ax.axhline(0, color="#D55E00", linewidth=2)
ax.set(ylim=(-1.5, 33), xlabel="k", ylabel="percent above the proven optimum")
ax.set_title("100 runs of KMeans on Iris; orange: how many reach the optimum", loc="left")
plt.show()
