"""The exact silhouette, of all samples or of some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evomeans.criteria.base import Evidence, Verdict
from evomeans.criteria.free import Counts, among
from evomeans.criteria.rules import largest
from evomeans.metrics.silhouette import silhouette_score


@dataclass(frozen=True)
class Silhouette:
    """The mean silhouette; see :func:`evomeans.metrics.silhouette_score`.

    Parameters
    ----------
    sample_size : int, optional
        How many samples to take, if there are more; None takes all of them. The time grows with
        its square.
    """

    sample_size: int | None = 10_000
    name: ClassVar[str] = "silhouette"
    title: ClassVar[str] = "Silhouette"
    rule: ClassVar[str] = "maximum"
    is_costly: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.sample_size is not None and self.sample_size < 2:
            raise ValueError(f"sample_size={self.sample_size} must be at least 2, or None.")

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute all distances between the samples taken."""
        X, weights = evidence.samples.in_memory("The silhouette")
        size = self.sample_size

        def value(k: int) -> float:
            labels = np.asarray(evidence.labels(k))
            if k not in allowed or len(np.unique(labels)) < 2:
                return np.nan
            return silhouette_score(
                X, labels, weights, sample_size=size, random_state=evidence.seed
            )

        values = evidence.per_k(value)
        return Verdict(values, largest(allowed, among(evidence, values, allowed)), {})
