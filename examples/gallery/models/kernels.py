"""
Rings: clusters that no line separates
======================================

K-means separates clusters by straight lines. A kernel measures how similar two samples are;
:class:`evomeans.KernelHGMeans` clusters by it, in a space where a ring inside another one can be
separated.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from evomeans import HGMeans, KernelHGMeans

X, ring = make_circles(400, factor=0.35, noise=0.06, random_state=0)

# %%
# ``gamma`` decides how far similarity reaches. There is no truth to choose it by, so look at a few
# values. The adjusted Rand index is 1 if the clusters are the rings, and about 0 for random labels.

models = {"HGMeans": HGMeans(2, random_state=0).fit(X)}
for gamma in (0.5, 2, 10):
    model = KernelHGMeans(2, kernel="rbf", gamma=gamma, random_state=0)
    models[f"gamma = {gamma}"] = model.fit(X)

fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items()):
    index = adjusted_rand_score(ring, model.labels_)
    ax.scatter(*X.T, c=plt.cm.Dark2(model.labels_), s=10)
    ax.set(title=f"{name}: {max(index, 0):.2f}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# A kernel that fits separates the rings. One that does not is no better than plain k-means, however
# good the search is: the inertia says nothing about the choice of the kernel.
