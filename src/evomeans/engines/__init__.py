"""Engines hold the samples and run K-means on them; they know nothing of genetics."""

from evomeans.engines.protocol import Engine, Order, Refinement
from evomeans.engines.registry import (
    ENGINE_NAMES,
    create_engine,
    is_dask,
    prepare_calls,
    prepare_kernels,
)

__all__ = [
    "ENGINE_NAMES",
    "Engine",
    "Order",
    "Refinement",
    "create_engine",
    "is_dask",
    "prepare_calls",
    "prepare_kernels",
]
