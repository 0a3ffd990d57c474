"""What the search itself tells: whether independent populations find the same clusters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from evomeans.criteria.base import Evidence, Verdict
from evomeans.criteria.free import Counts, among
from evomeans.criteria.rules import last_of_a_run
from evomeans.metrics.centroid_index import centroid_index


@dataclass(frozen=True)
class Agreement:
    """The share of clusters that independent populations of the search have in common.

    Two sweeps over the path know nothing of each other. With the centroid index CI, the number of
    clusters that one solution has and the other one lacks, the value is the mean over pairs of

        1 − CI/k.

    If populations that search well come to different clusters, there are more clusters than the
    samples can tell apart. So the rule takes the largest k such that it and all smaller ones reach
    the threshold. Only a search for the global minimum can be asked this: K-means differs from run
    to run where the optimum is plain.

    Parameters
    ----------
    threshold : float
        1 asks for the same clusters.
    """

    threshold: float = 1.0
    name: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Agreement of populations"
    rule: ClassVar[str] = "last k before populations disagree"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compare the best solutions of the populations."""

        def value(k: int) -> float:
            pairs = list(combinations(evidence.populations.get(k, ()), 2))
            if not pairs:
                return np.nan
            return float(np.mean([1.0 - centroid_index(a, b) / k for a, b in pairs]))

        values = evidence.per_k(value)
        choice = last_of_a_run(allowed, among(evidence, values, allowed), self.threshold)
        return Verdict(values, choice, {})
