"""The CPU engine: K-means with inherited bounds, in Numba."""

from __future__ import annotations

from typing import Any

from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Engine, FloatArray


def create_cpu_engine(
    X: Any, sample_weight: FloatArray | None, *, n_jobs: int = 1, frame: Frame | None = None
) -> Engine:
    """Build the CPU engine for dense or CSR samples."""
    return CpuEngine(X, sample_weight, n_jobs=n_jobs, frame=frame)
