"""
A codebook for vector search
============================

Product quantisation stores a vector in a few bytes: it is cut into pieces, and each piece is
replaced by the number of the closest entry of a codebook. The codebook is a k-means clustering of
the pieces, and its inertia is the error of what is stored. A better clustering stores vectors
more accurately in the same number of bytes.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from evomeans import HGMeans

N_PIECES = 8

X = load_digits().data
pieces = np.split(X, N_PIECES, axis=1)

# %%
# An image of 8 × 8 pixels becomes eight pieces of one row each. Every piece has a codebook of its
# own.


def restarts(k):
    """KMeans, the best of ten starts."""
    return KMeans(k, n_init=10, random_state=0)


def search(k):
    """HG-means in its fast setting."""
    return HGMeans.fast(k, random_state=0)


def codebooks(make, k):
    """Fit one model per piece."""
    return [make(k).fit(piece) for piece in pieces]


def error(models):
    """Mean squared error of a stored image."""
    return sum(model.inertia_ for model in models) / len(X)


def decoded(models, rows):
    """Put the entries of the codebooks together again."""
    return np.hstack([model.cluster_centers_[model.labels_[rows]] for model in models])


sizes = (16, 32)
books = {k: (codebooks(restarts, k), codebooks(search, k)) for k in sizes}
for k, (theirs, ours) in books.items():
    print(f"{k:3d} entries: KMeans {error(theirs):7.2f}, HGMeans.fast {error(ours):7.2f}")

# %%
# The more entries a codebook has, the more local minima there are, and the more the search gains
# over restarts. The images are stored in eight codes of four bits, at 16 entries.

fig = plt.figure(figsize=(12, 4.2))
left, right = fig.subfigures(1, 2, width_ratios=[1.3, 1])
rows = np.arange(8)
images = {
    "original": X[rows],
    "KMeans": decoded(books[16][0], rows),
    "HGMeans": decoded(books[16][1], rows),
}
axes = left.subplots(3, 8)
for line, (name, vectors) in zip(axes, images.items()):
    line[0].set_ylabel(name)
    for ax, vector in zip(line, vectors):
        ax.imshow(vector.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
ax = right.subplots()
excess = [100 * (error(theirs) / error(ours) - 1) for theirs, ours in books.values()]
bars = ax.bar(range(len(sizes)), excess, color="#0072B2", width=0.6)
ax.bar_label(bars, [f"{value:.1f} %" for value in excess], padding=3)
ax.set_xticks(range(len(sizes)), [f"{k} entries" for k in sizes])
ax.set_ylabel("error of KMeans(n_init=10) above HGMeans")
plt.show()
