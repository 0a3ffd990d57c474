"""What an offspring costs, in units of one single-threaded scikit-learn run on the same data.

Run with ``python -m benchmarks.offspring``. The yardstick Y is the CPU time of
``KMeans(init="random", n_init=1, tol=0, max_iter=1000, algorithm="lloyd")`` on one thread, measured
beside the search. The ratio to the authors' C++ program compares whole runs, each in its own Y;
it is shown for whole runs only (``--whole``): a search cut short tells nothing about it.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.datasets import load, reference_runs
from evomeans.engines import create_engine
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.search import SearchSettings, evolve

DEFAULT = ("pendigit:10", "pendigit:50", "letters:10", "letters:50", "pla85900:15", "skin:10")


def yardstick(X: NDArray[np.float64], m: int, runs: int) -> float:
    """Mean CPU seconds of a scikit-learn run from random samples."""
    seconds = []
    with threadpool_limits(1):
        for seed in range(runs):
            began = time.process_time()
            KMeans(
                m,
                init="random",
                n_init=1,
                tol=0,
                max_iter=1000,
                algorithm="lloyd",
                random_state=seed,
            ).fit(X)
            seconds.append(time.process_time() - began)
    return statistics.fmean(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("setups", nargs="*", default=DEFAULT, help="dataset:k, e.g. letters:50")
    parser.add_argument("--offspring", type=int, default=300, help="of each search")
    parser.add_argument("--whole", action="store_true", help="searches to their own end instead")
    parser.add_argument("--runs", type=int, default=5, help="of the yardstick")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    known = {(run.dataset, run.m): run for run in reference_runs()}
    print(
        f"{'set-up':<24} {'Y':>9} {'offspring':>9} {'each':>9} {'in Y':>7} {'iterations':>10} "
        f"{'avoided':>8} {'to authors':>10}"
    )
    for setup in arguments.setups:
        name, _, clusters = setup.partition(":")
        m, X = int(clusters), load(name)
        Y = yardstick(X, m, arguments.runs)
        engine = create_engine("cpu", X, None)
        assert isinstance(engine, CpuEngine)
        evolve(
            engine, m, SearchSettings(2, 2, max_offspring=2), np.random.default_rng(1)
        )  # compiles
        before = engine.comparisons
        limit = 5000 if arguments.whole else arguments.offspring
        began = time.process_time()
        rng = np.random.default_rng(arguments.seed)
        result = evolve(engine, m, SearchSettings(max_offspring=limit), rng)
        seconds = time.process_time() - began
        iterations = result.history.column("n_iter")
        avoided = 1.0 - (engine.comparisons - before) / (float(iterations.sum()) * len(X) * m)
        run = known.get((name, m))
        ratio = f"{run.cpu_s / run.yardstick_s / (seconds / Y):>9.1f}x" if run else ""
        each = seconds / result.n_offspring
        print(
            f"{setup:<24} {1e3 * Y:>6.1f} ms {result.n_offspring:>9} {1e3 * each:>6.2f} ms "
            f"{each / Y:>7.3f} {iterations[20:].mean():>10.1f} {100 * avoided:>6.1f} % "
            f"{ratio if arguments.whole else '-':>10}",
            flush=True,
        )


if __name__ == "__main__":
    main()
