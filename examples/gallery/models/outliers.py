"""
The strangest handwritten digits
================================

K-means has to put every sample into a cluster, and samples unlike all others pull the centres
towards them. :class:`evomeans.TrimmedHGMeans` leaves out as many samples as you say, and finds
the clusters of the others. Here it looks for the 30 images that resemble no cluster.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from evomeans import TrimmedHGMeans

X, digit = load_digits(return_X_y=True)
model = TrimmedHGMeans(10, n_outliers=30, max_time=10, random_state=0).fit(X)
print(f"{np.sum(model.labels_ == -1)} images have the label -1")

# %%
# Distances to the closest centre: outliers are the images beyond ``radius_``.

distances = model.transform(X).min(axis=1)
outliers = np.flatnonzero(model.labels_ == -1)
strangest = outliers[np.argsort(-distances[outliers])]

# %%
# The centres are typical digits. The numbers above the outliers are what their writers meant.

fig = plt.figure(figsize=(12, 4.4))
left, right = fig.subfigures(1, 2, width_ratios=[1, 1.35])
left.suptitle("centres of the clusters")
right.suptitle("outliers, the farthest first")
for ax, center in zip(left.subplots(2, 5).flat, model.cluster_centers_):
    ax.imshow(center.reshape(8, 8), cmap="gray_r")
    ax.set_axis_off()
for ax, i in zip(right.subplots(3, 10).flat, strangest):
    ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(digit[i], size=9)
    ax.set_axis_off()
plt.show()
