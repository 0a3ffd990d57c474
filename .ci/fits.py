"""Fit planted clusters, to see whether the installed versions of the dependencies work together.

Every warning is an error. ``.ci/run`` calls it with the lowest versions that pyproject.toml
declares.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_array

from evomeans import ConstrainedHGMeans, HGMeans, SphericalHGMeans

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "numba", "llvmlite")
N_CLUSTERS = 6


def main() -> None:
    """Fit each, and compare with what was planted."""
    warnings.simplefilter("error")
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    rng = np.random.default_rng(0)
    planted = np.repeat(np.arange(N_CLUSTERS), 40)
    X = 20.0 * np.eye(N_CLUSTERS)[planted] + rng.normal(size=(len(planted), N_CLUSTERS))
    settings = {"n_clusters": N_CLUSTERS, "max_offspring": 40, "random_state": 0}
    links = {"must_link": [(0, 1), (1, 2), (40, 41)]}
    for name, model, samples, options in (
        ("dense", HGMeans(**settings), X, {}),
        ("single precision", HGMeans(**settings), X.astype(np.float32), {}),
        ("sparse, two threads", HGMeans(**settings, n_jobs=2), csr_array(X), {}),
        ("one column", HGMeans(**settings), 20.0 * planted[:, None] + X[:, :1] % 1.0, {}),
        ("reference", HGMeans(**settings, engine="reference"), X, {}),
        ("spherical", SphericalHGMeans(**settings), X, {}),
        ("constrained", ConstrainedHGMeans(**settings, size_max="balanced"), X, links),
    ):
        model.fit(samples, **options)
        pairs = set(zip(planted, model.labels_, strict=True))
        assert len(pairs) == N_CLUSTERS, f"{name}: not the planted clusters"
        assert (model.predict(samples) == model.labels_).all(), f"{name}: predictions differ"
        print(f"{name}: as planted, objective {model.inertia_:.10g}", flush=True)


if __name__ == "__main__":
    main()
