"""The CPU engine: K-means with inherited bounds, in Numba."""

from evomeans.engines.cpu.engine import CpuEngine

__all__ = ["CpuEngine"]
