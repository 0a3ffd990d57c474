"""How much memory a fit takes: 5,000,000 x 10 samples in float32, 20 clusters, 20 offspring.

Run with ``python -m lab memory``; ``--samples`` makes it smaller. The fit runs in a process
of its own, which also makes the samples, and the peak of that process counts, libraries included.
The limit is 4 GiB. Then the memory that the engine keeps of a solution is measured for several
numbers of clusters: what is allocated more when another solution is refined and kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.measure import parser_for

FEATURES, CLUSTERS, OFFSPRING = 10, 20, 20
LIMIT_GIB = 4.0
MOST_KEPT = 20.0
KIB_PER_GIB = 2**20


def clustered(n: int) -> Any:
    """Make samples in single precision without a copy in double precision beside them."""
    import numpy as np

    rng = np.random.default_rng(0)
    centers = rng.normal(scale=2.0, size=(CLUSTERS, FEATURES)).astype(np.float32)
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    for begin in range(0, n, 100_000):
        block = X[begin : begin + 100_000]
        block += centers[rng.integers(CLUSTERS, size=len(block))]
    return X


def peak_gib() -> float:
    """Return the most memory that this process has had resident so far."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In kibibytes, but on macOS in bytes.
    return peak / KIB_PER_GIB / (1024 if sys.platform == "darwin" else 1)


def fit(n: int) -> None:
    """Fit in this process and print its peak."""
    from evomeans import HGMeans

    X = clustered(n)
    before = peak_gib()
    model = HGMeans(CLUSTERS, max_offspring=OFFSPRING, random_state=0, n_jobs=1).fit(X)
    print(
        f"{n:,} x {FEATURES} float32 ({X.nbytes / 2**30:.2f} GiB), m = {CLUSTERS}, "
        f"{model.n_iter_} offspring: peak {peak_gib():.2f} GiB, {before:.2f} GiB before the fit, "
        f"limit {LIMIT_GIB:.0f} GiB"
    )
    if peak_gib() > LIMIT_GIB:
        raise SystemExit("That is above the limit.")


def bytes_kept(n: int, m: int, solutions: int = 5) -> float:
    """Bytes per sample that the engine keeps of a refined solution."""
    import numpy as np

    from evomeans.engines import Order, create_engine

    engine = create_engine("cpu", clustered(n), None)
    rng = np.random.default_rng(0)
    kept, allocated = [], []
    tracemalloc.start()
    for _ in range(solutions):
        start = Order(engine.samples_at(rng.random(m)))
        kept += engine.refine([start])
        allocated.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # The first solution also makes the work space.
    return (allocated[-1] - allocated[0]) / (solutions - 1) / n


def print_kept(n: int) -> None:
    """Print what is kept per sample for several numbers of clusters."""
    kept = {m: bytes_kept(n, m) for m in (10, 20, 50, 100, 200)}
    texts = [f"{value:.1f} (m = {m})" for m, value in kept.items()]
    print(f"Bytes kept per sample and solution: {', '.join(texts)}; limit {MOST_KEPT:.0f}")


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("memory", __doc__)
    parser.add_argument("--samples", type=int, default=5_000_000)
    parser.add_argument("--here", action="store_true", help="only the fit, in this process")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    if arguments.here:
        fit(arguments.samples)
        return
    # First of all: a process starts out with the peak of its parent.
    command = [sys.executable, "-m", "lab", "memory", "--here", "--samples"]
    folder = Path(__file__).parents[1]
    finished = subprocess.run([*command, str(arguments.samples)], cwd=folder, check=False)
    print_kept(50_000)
    raise SystemExit(finished.returncode)
