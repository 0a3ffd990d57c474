"""Runs searches that lab.side_by_side asks for, with the package of one revision.

Each line of the input is a request in JSON: ``samples``, the path of an NPY file, ``clusters``,
``offspring`` (null for ``HGMeans.fast``) and ``seed``, and perhaps ``limit``, CPU seconds of a fit
at most, and ``solutions``, how many are made at most. Each is answered by a line with the CPU and
wall seconds of the fit, and what came out of it. ``steps`` are its improvements, each with the CPU
seconds until then.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lab.measure import Samples
from lab.revisions import check_imported, estimator


def answer(
    samples: str,
    clusters: int,
    offspring: int | None,
    seed: int,
    limit: float = math.inf,
    solutions: float = math.inf,
) -> dict[str, Any]:
    """Fit once, compiled code being loaded before."""
    X = warm_samples(samples, clusters)
    steps: list[tuple[float, float]] = []
    seen: list[float] = []

    def watch(record: Any) -> bool:
        now = time.process_time() - cpu
        if not steps or record.best < steps[-1][1]:
            steps.append((now, record.best))
        seen.append(record.inertia)
        return now > limit or len(seen) >= solutions

    model = estimator(clusters, offspring, random_state=seed, observers=watch)
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(X)
    return {
        "steps": steps,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "inertia": model.inertia_,
        "offspring": model.n_iter_,
        "solutions": len(seen),
        "rediscoveries": getattr(model, "n_rediscoveries_", 0),
        "certainty": getattr(model, "certainty_", math.nan),
    }


@lru_cache(maxsize=1)
def warm_samples(path: str, clusters: int) -> Samples:
    """Load samples, and compile what a search on them needs."""
    X: Samples = np.load(path)
    few = X[: max(1000, 4 * clusters)]
    estimator(clusters, 20, min_population=2, max_population=2, random_state=0).fit(few)
    # What the compiler leaves behind would make every collection slower.
    gc.collect()
    gc.freeze()
    return X


def main() -> None:
    check_imported(Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
