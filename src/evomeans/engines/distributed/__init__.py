"""The Dask engine: samples in blocks that stay where they are; centres travel, sums come back."""

from evomeans.engines.distributed.engine import DistributedEngine

__all__ = ["DistributedEngine"]
