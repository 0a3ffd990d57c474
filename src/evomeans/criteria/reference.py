"""The gap statistic, with references that are searched with equal effort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evomeans.criteria.base import Evidence, Verdict
from evomeans.criteria.free import Counts, among
from evomeans.criteria.rules import first_within_error, within_error_of_first_maximum
from evomeans.metrics.checks import FloatArray, checked_weights
from evomeans.metrics.gap import gap_statistic

RULES = ("tibshirani", "first_maximum")


@dataclass(frozen=True)
class Gap:
    """The gap to samples without clusters; see :func:`evomeans.metrics.gap_statistic`.

    References are drawn uniformly from the box around the samples in their principal axes, and a
    path of its own is searched for each, with the same effort as that of the samples.

    Parameters
    ----------
    n_references : int
        B, the number of references.
    choose_by : {"tibshirani", "first_maximum"}
        The smallest k with Gapₖ ≥ Gapₖ₊₁ − sₖ₊₁; or the smallest k within one standard error of the
        first local maximum.
    """

    n_references: int = 20
    choose_by: str = "tibshirani"
    name: ClassVar[str] = "gap"
    title: ClassVar[str] = "Gap statistic"
    rule: ClassVar[str] = "smallest k within one standard error"
    is_costly: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.n_references < 1:
            raise ValueError(f"n_references={self.n_references} must be at least 1.")
        if self.choose_by not in RULES:
            raise ValueError(f"choose_by={self.choose_by!r} must be one of {', '.join(RULES)}.")

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Search the references."""
        X, weights = evidence.samples.in_memory("The gap statistic")
        box = PrincipalBox.around(X, weights)
        ks = [int(k) for k in evidence.k_values]
        rows = []
        for number in range(self.n_references):
            rng = np.random.default_rng([evidence.seed, number])
            found = evidence.search(box.draw(rng), weights, ks, number)
            rows.append([found.inertias[k] for k in ks])
        gaps, errors = gap_statistic(evidence.inertias, rows)
        given = allowed, among(evidence, gaps, allowed), among(evidence, errors, allowed)
        is_first = self.choose_by == "tibshirani"
        choice = first_within_error(*given) if is_first else within_error_of_first_maximum(*given)
        return Verdict(gaps, choice, {"gap_error": errors})


@dataclass(frozen=True)
class PrincipalBox:
    """The smallest box around samples whose sides are along their principal axes.

    Parameters
    ----------
    mean : (d,) array
    axes : (d, d) array
        One in each row.
    low, high : (d,) arrays
        Ends of the sides, from the mean.
    n_samples : int
    dtype : numpy.dtype
        Of the samples.
    """

    mean: FloatArray
    axes: FloatArray
    low: FloatArray
    high: FloatArray
    n_samples: int
    dtype: np.dtype[Any]

    @classmethod
    def around(cls, X: Any, sample_weight: FloatArray | None) -> PrincipalBox:
        """Return the box of dense samples; sparse ones are made dense."""
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        weights = checked_weights(sample_weight, len(rows))
        mean = np.average(rows, axis=0, weights=weights)
        counted = rows[weights > 0.0] - mean
        roots = np.sqrt(weights[weights > 0.0])[:, None]
        # Only as many axes as there are samples can be told; along others the box is flat.
        axes = np.linalg.svd(roots * counted, full_matrices=False)[2]
        places = counted @ axes.T
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        return cls(mean, axes, places.min(axis=0), places.max(axis=0), len(rows), dtype)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw as many samples as there were, uniformly."""
        places = rng.uniform(self.low, self.high, (self.n_samples, len(self.low)))
        drawn: FloatArray = (places @ self.axes + self.mean).astype(self.dtype)
        return drawn
