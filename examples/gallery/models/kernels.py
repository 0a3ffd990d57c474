"""
Rings: clusters that no line separates
======================================

K-means separates clusters by straight lines. A kernel measures how similar two samples are. In the
space of the kernel, a ring inside another one can be separated, and scikit-learn's ``Nystroem``
gives samples coordinates there. With as many components as samples, they are exact.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from evomeans import HGMeans

X, ring = make_circles(400, factor=0.35, noise=0.06, random_state=0)

# %%
# ``gamma`` decides how far similarity reaches. There is no truth to choose it by, so look at a few
# values. The adjusted Rand index is 1 if the clusters are the rings, and about 0 for random labels.

labels = {"HGMeans": HGMeans(2, random_state=0).fit_predict(X)}
for gamma in (0.5, 2, 10):
    kernel = Nystroem(kernel="rbf", gamma=gamma, n_components=len(X), random_state=0)
    model = make_pipeline(kernel, HGMeans(2, random_state=0))
    labels[f"gamma = {gamma}"] = model.fit_predict(X)

fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True)
for ax, (name, clusters) in zip(axes, labels.items()):
    index = adjusted_rand_score(ring, clusters)
    ax.scatter(*X.T, c=plt.cm.Dark2(clusters), s=10)
    ax.set(title=f"{name}: {max(index, 0):.2f}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# A kernel that fits separates the rings. One that does not is no better than plain k-means, however
# good the search is: the inertia says nothing about the choice of the kernel.
