"""
A palette of 64 colours
=======================

Colour quantisation replaces the colours of an image by a small palette. Each palette colour is
the mean of the pixels that it stands for, so the best palette is the best k-means clustering of
the pixels.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

from evomeans import HGMeans

N_COLOURS, PATCH = 64, 64

image = load_sample_image("flower.jpg")[::2, ::2] / 255.0

# %%
# Many pixels have nearly the same colour. Rounding to 6 bits per channel leaves fewer distinct
# colours, and the number of pixels of a colour is its weight. Both estimators take
# ``sample_weight``.

rounded = np.round(image.reshape(-1, 3) * 63) / 63
colours, place, weight = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
print(f"{len(rounded):,} pixels, {len(colours):,} colours")

# %%
# KMeans with the best of ten starts, and the search.

restarts = KMeans(N_COLOURS, n_init=10, random_state=0).fit(colours, sample_weight=weight)
search = HGMeans.fast(N_COLOURS, random_state=0).fit(colours, sample_weight=weight)
excess = 100 * (restarts.inertia_ / search.inertia_ - 1)
print(f"The error of KMeans is {excess:.1f} % above that of HGMeans.")


def painted(model):
    """Return the image in the colours of a model."""
    palette = np.clip(model.cluster_centers_, 0, 1)
    return palette[model.labels_[place.ravel()]].reshape(image.shape)


# %%
# Two good palettes look alike from a distance. The difference is in single places, where one
# palette lacks a colour. These are the squares of the image in which KMeans is worse than HGMeans
# by most (top), and HGMeans worse than KMeans by most (bottom).


def corner(loss):
    """Return the upper left corner of the square with the largest sum."""
    sums = np.pad(loss.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    p = PATCH
    squares = sums[p:, p:] - sums[:-p, p:] - sums[p:, :-p] + sums[:-p, :-p]
    return np.unravel_index(squares.argmax(), squares.shape)


pictures = {"original": image, "KMeans(n_init=10)": painted(restarts), "HGMeans": painted(search)}
errors = [((picture - image) ** 2).sum(axis=2) for picture in pictures.values()]
fig, axes = plt.subplots(2, 4, figsize=(12, 5.6), width_ratios=[1.5, 1, 1, 1])
for line, sign in zip(axes, (1, -1)):
    row, column = corner(sign * (errors[1] - errors[2]))
    line[0].imshow(image)
    line[0].add_patch(plt.Rectangle((column, row), PATCH, PATCH, fill=False, color="w", lw=2))
    for ax, (title, picture) in zip(line[1:], pictures.items()):
        ax.imshow(picture[row : row + PATCH, column : column + PATCH])
        ax.set_title(title)
for ax in axes.flat:
    ax.set_axis_off()
plt.show()
