"""
Sixteen colours for a photograph
================================

Colour quantisation replaces the colours of an image by a small palette. Each palette colour is
the mean of the pixels that it stands for, so the best palette is the best k-means clustering of
the pixels.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

from evomeans import HGMeans

N_COLOURS = 16

image = load_sample_image("china.jpg")[::2, ::2] / 255.0

# %%
# Many pixels have nearly the same colour. Rounding to 6 bits per channel leaves a few thousand
# distinct colours; how many pixels have each of them is its weight. Both estimators take
# ``sample_weight``.

rounded = np.round(image.reshape(-1, 3) * 63) / 63
colours, place, weight = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
print(f"{len(rounded):,} pixels, {len(colours):,} colours")

# %%
# KMeans with its best of ten starts, and the search.

restarts = KMeans(N_COLOURS, n_init=10, random_state=0).fit(colours, sample_weight=weight)
search = HGMeans(N_COLOURS, random_state=0).fit(colours, sample_weight=weight)
excess = 100 * (restarts.inertia_ / search.inertia_ - 1)
print(
    f"KMeans {restarts.inertia_:.2f}, HGMeans {search.inertia_:.2f}: KMeans is {excess:.2f} % above"
)

# %%
# The two palettes, sorted by brightness, are shown below the images.


def draw(top, bottom, title, model):
    """Draw the image in the colours of a model, and the palette."""
    palette = np.clip(model.cluster_centers_, 0, 1)
    top.imshow(palette[model.labels_[place.ravel()]].reshape(image.shape))
    order = np.argsort(palette @ [0.299, 0.587, 0.114])
    bottom.imshow(palette[order][None], aspect="auto")
    top.set_title(title)


fig, axes = plt.subplots(2, 3, figsize=(12, 4), height_ratios=[8, 1])
axes[0, 0].imshow(image)
axes[0, 0].set_title("original")
axes[1, 0].remove()
draw(axes[0, 1], axes[1, 1], "KMeans(n_init=10)", restarts)
draw(axes[0, 2], axes[1, 2], "HGMeans", search)
for ax in axes.flat:
    ax.set_axis_off()
plt.show()
