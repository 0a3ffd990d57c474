"""
Topics in sentence embeddings
=============================

A language model turns a sentence into a vector. Sentences about the same topic have vectors with a
small angle between them, so clusters of vectors are topics. With dozens of topics, restarts of
k-means find other ones with every seed; a search finds nearly the same ones.
"""

from itertools import combinations

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from evomeans import HGMeans

N_TOPICS, SEEDS = 30, range(4)

# %%
# The sentences are the first ones of the documentation of 1,580 functions and classes of NumPy,
# SciPy and scikit-learn. The model all-MiniLM-L6-v2 has made 384 features of each, stored as small
# integers (:download:`functions.npz <functions.npz>`, also in the archive at the end of this page).
# Rows get length one. Then plain k-means is as good as the cosine, and much faster.

stored = np.load("functions.npz")
names = np.array([name.rpartition(".")[2] for name in stored["names"]])
X = normalize(stored["embeddings"].astype(np.float32))
print(X.shape)

searches = [HGMeans.fast(N_TOPICS, random_state=seed).fit(X) for seed in SEEDS]
restarts = [KMeans(N_TOPICS, n_init=10, random_state=seed).fit(X) for seed in SEEDS]

# %%
# Half of the topics, each with the names that are closest to its centre:

model = searches[0]
distances = model.transform(X)
for topic in range(0, N_TOPICS, 2):
    members = np.flatnonzero(model.labels_ == topic)
    closest = members[np.argsort(distances[members, topic])]
    print(f"{len(members):4d}  {', '.join(dict.fromkeys(names[closest[:4]]))}")

# %%
# A gap of a percent in the inertia looks small. But with another seed, restarts put a good part of
# the sentences into other topics: the adjusted Rand index of two clusterings is 1 if they are the
# same.

best = min(one.inertia_ for one in searches)
methods = {"KMeans(n_init=10)": restarts, "HGMeans.fast": searches}
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for place, (name, models) in enumerate(methods.items()):
    gaps = [100 * (one.inertia_ / best - 1) for one in models]
    pairs = [adjusted_rand_score(a.labels_, b.labels_) for a, b in combinations(models, 2)]
    print(
        f"{name:18} {np.mean(gaps):.2f} % above the best, labels of two seeds {np.mean(pairs):.2f}"
    )
    for ax, values in zip(axes, (gaps, pairs), strict=True):
        ax.plot(np.full(len(values), place), values, "o", color=("#999999", "#0072B2")[place])
for ax, title in zip(axes, ("inertia, % above the best", "agreement of two seeds"), strict=True):
    ax.set(title=title, xlim=(-0.6, 1.6))
    ax.set_xticks(range(2), list(methods))
plt.show()

# %%
# What the topics mean is for you to read. But they are those of the sentences, not of the seed.
