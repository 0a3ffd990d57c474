"""
Dask: two workers
=================

Samples that do not fit into memory stay in Dask. Here a cluster of two processes on this machine
holds them; the address of any other Dask cluster works in the same way. Centres travel to the
workers, and integer sums come back, so the result has the same bits for any number of workers.
"""

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from matplotlib import pyplot as plt

from evomeans import HGMeans

N_ROWS, K = 20_000, 9


def make_blocks():
    """Make samples in four blocks: rings of clusters around a large one in the middle."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * rng.integers(K - 1, size=N_ROWS) / (K - 1)
    in_ring = rng.random(N_ROWS) < 0.75
    places = 4.0 * in_ring[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return da.from_array(places + 0.6 * rng.normal(size=(N_ROWS, 2)), chunks=(N_ROWS // 4, 2))


def draw(X, models):
    """Draw the samples in the colours of their clusters, and what both fits found."""
    _, ax = plt.subplots(figsize=(6.5, 6))
    labels = models[0].labels_.compute()
    ax.scatter(*X.compute()[::4].T, c=plt.cm.tab10(labels[::4]), s=3)
    two, one = (model.cluster_centers_.T for model in models)
    ax.scatter(*two, facecolors="none", edgecolors="k", marker="o", s=160, linewidths=2)
    ax.scatter(*one, color="k", marker="x", s=70)
    ax.set(title="circles: two workers, crosses: one worker", xticks=[], yticks=[], aspect="equal")
    plt.show()


# %%
# Worker processes import this script, so the code that starts them is guarded.

if __name__ == "__main__":
    X = make_blocks()
    models = []
    for n_workers in (2, 1):
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster),
        ):
            models.append(HGMeans(K, max_offspring=50, random_state=0).fit(X))
    two, one = models
    print(f"two workers {two.inertia_!r}")
    print(f"one worker  {one.inertia_!r}")
    assert np.array_equal(two.cluster_centers_, one.cluster_centers_)
    draw(X, models)
