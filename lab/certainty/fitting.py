"""Fits the coefficients of certainty to traces of the development half."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lab.certainty.traces import Moment
from lab.paper.ablation import SUCCESS

Search = Sequence[Moment]

# More starts and more waiting must not make a search less certain, nor a late best more.
FREE = ((None, None), (0.0, None), (None, 0.0), (0.0, None))
# Of searches that ended when three starts agreed, 96.2 % were right on this half's 136 problems.
# On the 39 problems of `lab whole_runs` these were 96.9 %, and on 33 others 86 %: 94.7 % on average
# over all 208. So the odds are lower by this, because some of the values that are best known here
# are not the best, and because other people's problems are harder.
CAUTION = math.log(0.962 / 0.038) - math.log(0.947 / 0.053)
# A little shrinkage, in units of one problem: a half without failures would have no finite fit.
SHRINKAGE = 0.1


class Fitted(NamedTuple):
    """The coefficients of the logit."""

    intercept: float
    coefficients: tuple[float, ...]

    def certainty(self, moment: Moment) -> float:
        """Return the probability that a moment has."""
        terms = zip(self.coefficients, moment.evidence.features, strict=True)
        return float(1.0 / (1.0 + np.exp(-self.intercept - sum(a * b for a, b in terms))))


class Found(Protocol):
    """An inertia that was found for a problem."""

    @property
    def problem(self) -> str:
        """Its name."""
        ...

    @property
    def inertia(self) -> float:
        """Of the best solution."""
        ...


def is_right(found: Found, best: Mapping[str, float]) -> bool:
    """Whether an inertia is within 0.01 % of the best known."""
    return 100.0 * (found.inertia / best[found.problem] - 1.0) <= SUCCESS


def fit(searches: Sequence[Search], best: Mapping[str, float]) -> Fitted:
    """Fit by maximum likelihood; every problem has the same weight, spread over its searches.

    Moments at which a population has ended determine all but the last coefficient, because there
    searches end. The last one tells how much less is known at other times. The intercept is lower
    than fitted, by :data:`CAUTION`.
    """
    *common, _ = fit_moments(searches, best, lambda one: one.has_ended, FREE)
    fixed = [(value, value) for value in common]
    intercept, *coefficients = fit_moments(searches, best, lambda _: True, [*fixed, (0.0, None)])
    return Fitted(intercept - CAUTION, tuple(coefficients))


def fit_moments(
    searches: Sequence[Search],
    best: Mapping[str, float],
    is_used: Callable[[Moment], bool],
    bounds: Sequence[tuple[float | None, float | None]],
) -> list[float]:
    """Return the intercept and the coefficients, within bounds, that fit some moments."""
    used = [[moment for moment in search if is_used(moment)] for search in searches]
    moments = [moment for search in used for moment in search]
    X = np.array([(1.0, *moment.evidence.features) for moment in moments])
    y = np.array([is_right(moment, best) for moment in moments], dtype=float)
    seeds = Counter(search[0].problem for search in used)
    shares = [1.0 / (len(search) * seeds[search[0].problem]) for search in used]
    weights = np.repeat(shares, [len(search) for search in used])
    return maximum_likelihood(X, y, weights, bounds)


def maximum_likelihood(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    bounds: Sequence[tuple[float | None, float | None]],
) -> list[float]:
    """Return the coefficients of a logistic regression within bounds, the intercept first."""

    def loss(beta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = X @ beta
        likelihood = weights @ (np.logaddexp(0.0, logits) - y * logits)
        slopes = X.T @ (weights * (1.0 / (1.0 + np.exp(-logits)) - y))
        shrunk = np.concatenate([[0.0], beta[1:]])
        return likelihood + 0.5 * SHRINKAGE * shrunk @ shrunk, slopes + SHRINKAGE * shrunk

    start = [low if low is not None and low == high else 0.0 for low, high in bounds]
    found = minimize(loss, np.array(start), jac=True, bounds=bounds, method="L-BFGS-B")
    values: list[float] = found.x.tolist()
    return values
