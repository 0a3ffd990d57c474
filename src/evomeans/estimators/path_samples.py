"""The samples of a path as its criteria see them: in memory, or in Dask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from evomeans.engines import is_dask
from evomeans.metrics.checks import FloatArray, checked_weights
from evomeans.metrics.sums import ClusterSums, cluster_sums


@dataclass(frozen=True)
class InMemory:
    """Samples in memory, dense or sparse."""

    X: Any
    sample_weight: FloatArray | None

    def sums(self, centers: FloatArray) -> ClusterSums:
        """Sum up over the samples of each cluster."""
        weights = checked_weights(self.sample_weight, self.X.shape[0])
        return cluster_sums(self.X, np.asarray(centers, np.float64), weights)

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Return them."""
        return self.X, self.sample_weight


@dataclass(frozen=True)
class InDask:
    """Samples that stay with Dask; sums are made block by block."""

    X: Any
    sample_weight: Any

    def sums(self, centers: FloatArray) -> ClusterSums:
        """Sum up over the samples of each cluster, each block where it is."""
        import dask

        places = np.asarray(centers, np.float64)
        blocks = self.X.to_delayed().ravel()
        weights = [None] * len(blocks)
        if self.sample_weight is not None:
            weights = self.sample_weight.to_delayed().ravel()
        parts = [
            dask.delayed(_block_sums)(block, places, own)
            for block, own in zip(blocks, weights, strict=True)
        ]
        total: ClusterSums = reduce(add, dask.compute(*parts))
        return total

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Say that there is no such thing."""
        raise ValueError(
            f"{purpose} needs the samples in memory, and X is a Dask collection. Leave this "
            "criterion out, or pass X.compute()."
        )


def _block_sums(block: Any, centers: FloatArray, weights: FloatArray | None) -> ClusterSums:
    own = np.ones(len(block)) if weights is None else np.asarray(weights, np.float64)
    return cluster_sums(np.asarray(block), centers, own)


def samples_of(X: Any, sample_weight: Any) -> InMemory | InDask:
    """Return samples for criteria."""
    return InDask(X, sample_weight) if is_dask(X) else InMemory(X, sample_weight)
