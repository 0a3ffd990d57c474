"""The Dask engine: samples in blocks that stay where they are; centres travel, sums come back."""

from evomeans.engines.dask.engine import DaskEngine

__all__ = ["DaskEngine"]
