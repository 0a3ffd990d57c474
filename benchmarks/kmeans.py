"""One K-means run of the CPU engine beside scikit-learn's Lloyd, both on one thread.

Run with ``python -m benchmarks.kmeans``. Both start from the same random samples and run to the
fixed point, in turns, so that a noisy machine hurts both; the ratio of their CPU times is what
counts. The inertias agree unless a cluster runs empty, which the two repair differently.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from evomeans.engines import Start, create_engine


def measure(n: int, d: int, k: int, runs: int) -> tuple[float, float, float]:
    """Return CPU seconds per run of ours and of scikit-learn, and the ratio of the inertias."""
    X, _ = make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)
    engine = create_engine("cpu", X, None)
    ours, theirs, ratios = [], [], []
    with threadpool_limits(1):
        for seed in range(-1, runs):
            rows = np.random.default_rng(seed % 2**32).choice(n, k, replace=False)
            began = time.process_time()
            (result,) = engine.refine([Start(engine.frame.encode(X[rows]))])
            between = time.process_time()
            model = KMeans(k, init=X[rows], n_init=1, tol=0, max_iter=10_000, algorithm="lloyd")
            model.fit(X)
            ended = time.process_time()
            if seed >= 0:  # the first run compiles
                ours.append(between - began)
                theirs.append(ended - between)
                ratios.append(result.inertia / model.inertia_)
    return statistics.fmean(ours), statistics.fmean(theirs), statistics.fmean(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print(f"{'n':>8} {'d':>4} {'k':>4}  {'evomeans':>9}  {'sklearn':>9}  {'ratio':>6}  inertia")
    for n, d, k in [(10_000, 16, 50), (10_000, 16, 10), (50_000, 2, 25), (5_000, 128, 25)]:
        ours, theirs, inertia = measure(n, d, k, runs)
        print(
            f"{n:>8} {d:>4} {k:>4}  {1e3 * ours:>6.1f} ms  {1e3 * theirs:>6.1f} ms  "
            f"{theirs / ours:>5.1f}x  {inertia:.6f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
