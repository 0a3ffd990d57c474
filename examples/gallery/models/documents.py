"""
Documents by the words they share
=================================

For texts the direction of a vector of words matters, not its length.
:class:`evomeans.SphericalHGMeans` maximises the cosine between documents and the centre of their
cluster. The documents are the docstrings of SciPy's functions.
"""

import importlib

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from evomeans import SphericalHGMeans

K = 6

# %%
# One document per function: its docstring without the examples. The subpackage it comes from is
# not shown to the search.

PACKAGES = ["fft", "linalg", "ndimage", "signal", "stats"]
texts, origin = [], []
for package in PACKAGES:
    module = importlib.import_module(f"scipy.{package}")
    for name in sorted(module.__all__):
        text = getattr(getattr(module, name), "__doc__", None) or ""
        text = text.split("Examples\n")[0]
        if len(text) > 400:
            texts.append(text)
            origin.append(package)
vectorizer = TfidfVectorizer(
    stop_words="english", min_df=3, max_df=0.3, token_pattern=r"[a-z]{4,}", sublinear_tf=True
)
X = vectorizer.fit_transform(texts)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} in each on average")

# %%
# The matrix stays sparse. The words with the largest weights in a centre describe its cluster.

model = SphericalHGMeans(K, random_state=0).fit(X)
words = vectorizer.get_feature_names_out()
for j in np.argsort(-np.bincount(model.labels_)):
    top = ", ".join(words[np.argsort(-model.cluster_centers_[j])[:7]])
    print(f"{np.sum(model.labels_ == j):4d}  {top}")
print(f"adjusted Rand index with the subpackages: {adjusted_rand_score(origin, model.labels_):.2f}")

# %%
# How clusters and subpackages overlap, in documents:

table = np.zeros((K, len(PACKAGES)), dtype=int)
for label, package in zip(model.labels_, origin):
    table[label, PACKAGES.index(package)] += 1
order = np.argsort(table.argmax(axis=1), kind="stable")
names = [", ".join(words[np.argsort(-model.cluster_centers_[j])[:3]]) for j in order]

plane = TruncatedSVD(3, random_state=0).fit_transform(X)[:, 1:]
fig, (left, right) = plt.subplots(1, 2, figsize=(13, 5), width_ratios=[1, 1.2])
left.scatter(*plane.T, c=plt.cm.Dark2(model.labels_), s=14)
left.set(title="Clusters, on two singular vectors", xticks=[], yticks=[])
right.imshow(table[order], cmap="Blues", aspect="auto")
for (i, j), count in np.ndenumerate(table[order]):
    if count:
        right.text(j, i, count, ha="center", va="center", color="w" if count > 60 else "k")
right.set_xticks(range(len(PACKAGES)), PACKAGES, rotation=40, ha="right")
right.set_yticks(range(K), names)
right.set_title("Documents of each subpackage")
plt.show()
