"""Compile every kernel of the package and of the baselines that is not compiled on this machine.

``make test`` does so before its processes start, which would otherwise wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from evomeans.cli.info import needed_calls
from evomeans.compiled.ready import count_cores, missing_calls, ready
from lab.baselines.engines.prepare import kernel_calls_for
from lab.measure import parser_for


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("warmup", __doc__)
    parser.add_argument("--jobs", type=int, default=count_cores(), help="default: all cores")
    arguments = parser.parse_args(given)
    calls = needed_calls()
    for dtype in (np.float64, np.float32):
        dense = np.ones((1, 1), dtype)
        for samples in (dense, csr_array(dense)):
            calls += kernel_calls_for(samples)
    began, missing = time.perf_counter(), len(missing_calls(calls))
    ready(calls, arguments.jobs)
    seconds = time.perf_counter() - began
    print(f"{missing} of {len(calls)} kernels compiled in {seconds:.1f} s")
