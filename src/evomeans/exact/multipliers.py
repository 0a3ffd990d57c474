"""What a lower bound is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evomeans.exact.points import Floats
from evomeans.exact.star_cuts import Cuts, no_cuts
from evomeans.exact.subproblem import Subproblem


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of Y >= 0 and of star cuts. Any values give a valid bound, good ones a high one.

    Parameters
    ----------
    slack : (n, n) array
        S, symmetric. Only its positive part counts, except for pairs that must stay apart, where
        any sign is allowed.
    cuts : (m, LARGEST + 1) array of int32
    prices : (m,) array
        Of the cuts. Negative ones count as zero.
    """

    slack: Floats
    cuts: Cuts
    prices: Floats

    @classmethod
    def none(cls, n: int) -> Multipliers:
        """Return the multipliers of the plain eigenvalue bound."""
        return cls(np.zeros((n, n)), no_cuts(), np.zeros(0))

    def admissible_slack(self, problem: Subproblem) -> Floats:
        """Return S with the signs that a proof needs."""
        return np.where(problem.apart, self.slack, np.maximum(self.slack, 0.0))

    def compact(self) -> Multipliers:
        """Drop the cuts that have no price, and make the slack symmetric to the last bit."""
        used = self.prices > 0
        return Multipliers((self.slack + self.slack.T) / 2, self.cuts[used], self.prices[used])
