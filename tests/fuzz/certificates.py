"""Random certificates against exact rational arithmetic.

``case`` draws a small problem, proves what can be proven, and compares all that is claimed with the
optimum over all clusterings in rational numbers: no lower bound may exceed it, not even in the last
digit. ``python -m tests.fuzz certificates --minutes 10`` runs many.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evomeans import Certificate, HGMeans, HGMeansPath, certify
from evomeans.exact.proofs import InvalidProofError
from tests.fuzz import running

Floats = NDArray[np.float64]
Rng = np.random.Generator

REFUSALS = (
    "cannot be written in float64",
    "method='direct' is for",
    "method='plane' is for",
    "The smallest cluster has",
    "The given clustering has",
)
"""What certify may say instead of a certificate."""
MODEL_REFUSALS = (
    "ums of squared distances overflow",
    "squared distances underflow",
    "are lost when clusters are summed up",
    "sample_weight",
)
"""What a fit may say instead."""
ROUNDING = Fraction(1, 10**11)
GRID = 2**1074
FINE = 2**8000
"""No cost is below 2**-5400, unless it is zero."""


# Problems


def drawn(rng: Rng, n: int, d: int) -> Floats:
    return rng.normal(size=(n, d))


def near_ties(rng: Rng, n: int, d: int) -> Floats:
    """Corners of a grid, moved by a few units in the last place."""
    X = rng.integers(1, 4, size=(n, d)).astype(float)
    return X * (1 + rng.integers(-3, 4, size=(n, d)) * 2.0**-52)


def clumps(rng: Rng, n: int, d: int) -> Floats:
    middles = rng.integers(-3, 4, size=(3, d)).astype(float)
    return middles[rng.integers(0, 3, n)] + 10.0 ** -rng.integers(3, 16) * drawn(rng, n, d)


def with_outlier(rng: Rng, n: int, d: int, largest: int) -> Floats:
    X = drawn(rng, n, d)
    X[0] *= 10.0 ** rng.uniform(2, largest)
    return X


def timestamps(rng: Rng, n: int, d: int) -> Floats:
    seconds = rng.choice([1e-6, 1e-3, 1.0, 3600.0])
    return 1.7e9 + seconds * np.round(5 * drawn(rng, n, d), int(rng.integers(0, 3)))


def with_offset(rng: Rng, n: int, d: int) -> Floats:
    return drawn(rng, n, d) + 10.0 ** rng.uniform(0, 15) * rng.choice([-1, 1])


def scaled(rng: Rng, n: int, d: int) -> Floats:
    return drawn(rng, n, d) * 10.0 ** rng.choice([-150, -140, -30, 30, 140, 149])


def magnitudes(rng: Rng, n: int, d: int) -> Floats:
    widest = rng.choice([5.0, 30.0, 160.0])
    return rng.choice([-1, 1], (n, d)) * 10.0 ** rng.uniform(-widest, widest, (n, d))


DATA: dict[str, Callable[[Rng, int, int], Floats]] = {
    "plain": drawn,
    "integers": lambda rng, n, d: np.round(3 * drawn(rng, n, d)),
    "duplicates": lambda rng, n, d: drawn(rng, n, d)[rng.integers(0, max(1, n - 2), n)],
    "grid": lambda rng, n, d: rng.integers(0, 3, (n, d)) / 10,
    "offset": with_offset,
    "timestamps": timestamps,
    "scale": scaled,
    "denormal": lambda rng, n, d: drawn(rng, n, d) * 10.0 ** -rng.uniform(150, 322),
    "outlier": partial(with_outlier, largest=20),
    "far outlier": partial(with_outlier, largest=160),
    "near ties": near_ties,
    "clumps": clumps,
    "magnitudes": magnitudes,
    "columns": lambda rng, n, d: drawn(rng, n, d) * 10.0 ** rng.uniform(-9, 9, d),
}

WEIGHTS: dict[str, Callable[[Rng, int], Floats | None]] = {
    "none": lambda _rng, _n: None,
    "uniform": lambda rng, n: rng.random(n) + 1e-3,
    "integers": lambda rng, n: rng.integers(1, 5, n).astype(float),
    "zeros": lambda rng, n: np.append(rng.integers(0, 3, n - 1), 1).astype(float),
    "spread": lambda rng, n: 10.0 ** -rng.uniform(0, rng.choice([5, 15, 25, 60]), n),
    "likelihoods": lambda rng, n: np.exp(-rng.uniform(0, 120, n)),
    "extreme": lambda rng, n: 10.0 ** rng.uniform(-300, 300, n),
    "tiny or huge": lambda rng, n: rng.random(n) * 10.0 ** rng.choice([-300, -140, 140, 290]),
}


@dataclass(frozen=True)
class Problem:
    """Samples, weights and the number of clusters."""

    data: str
    weighting: str
    X: Floats
    weights: Floats | None
    k: int

    @classmethod
    def draw(cls, rng: Rng) -> Problem:
        """Draw a problem of any kind."""
        n, d = int(rng.integers(2, 8)), int(rng.choice([1, 1, 2, 2, 3, 4]))
        data, weighting = str(rng.choice([*DATA])), str(rng.choice([*WEIGHTS]))
        with np.errstate(all="ignore"):
            X = DATA[data](rng, n, d)
            if d > 1 and rng.random() < 0.1:
                X[:, 1] = X[:, 0]
            weights = WEIGHTS[weighting](rng, n)
        k = int(rng.integers(1, n + 1 if rng.random() < 0.9 else n + 3))
        return cls(data, weighting, X, weights, k)


class Rationals:
    """Inertias of all sets of samples, and the optimum, in rational numbers."""

    def __init__(self, problem: Problem) -> None:
        X, n = problem.X, len(problem.X)
        weights = np.ones(n) if problem.weights is None else problem.weights
        self.n = n
        self.costs = subset_costs(X, weights)
        self.blocks = self._solve(problem.k)
        self.optimum = sum((self.costs[block] for block in self.blocks), Fraction(0))

    def of_labels(self, labels: NDArray[np.integer]) -> Fraction:
        """Return the inertia of a clustering."""
        masks: dict[int, int] = {}
        for row, label in enumerate(labels.tolist()):
            masks[label] = masks.get(label, 0) | 1 << row
        return sum((self.costs[mask] for mask in masks.values()), Fraction(0))

    def _solve(self, k: int) -> list[int]:
        """Return at most k sets of least cost, by the set that holds the lowest sample.

        Costs are compared in steps of FINE, which makes them integers.
        """
        costs = [cost.numerator * FINE // cost.denominator for cost in self.costs]
        every = (1 << self.n) - 1
        best = [(cost, [mask]) for mask, cost in enumerate(costs)]
        best[0] = 0, []
        for _ in range(min(k, self.n) - 1):
            layer = list(best)
            for mask in range(1, every + 1):
                part = rest = mask & (mask - 1)
                while part:
                    # The rest of the set without this part holds the lowest sample.
                    cost = costs[mask ^ part] + best[part][0]
                    if cost < layer[mask][0]:
                        layer[mask] = cost, [mask ^ part, *best[part][1]]
                    part = (part - 1) & rest
            best = layer
        return best[every][1]

    def labels(self) -> NDArray[np.int64]:
        """Return an optimal clustering."""
        return np.array(
            [
                next(q for q, block in enumerate(self.blocks) if block >> row & 1)
                for row in range(self.n)
            ]
        )


def subset_costs(X: Floats, weights: Floats) -> list[Fraction]:
    """Return the inertia of every set of samples about its mean, by the bits of its number."""
    w = on_grid(weights)
    columns = [on_grid(column) for column in X.T]
    squares = [sum(b * b for b in row) for row in zip(*columns, strict=True)]
    powers = [[a * b for a, b in zip(w, one, strict=True)] for one in (*columns, squares)]
    sums = [subset_sums(one) for one in (w, *powers)]
    costs = []
    for weight, *firsts, second in zip(*sums, strict=True):
        lost = sum(first * first for first in firsts)
        cost = Fraction(second * weight - lost, weight) if weight else Fraction(0)
        costs.append(cost / GRID**3)
    return costs


def on_grid(values: Floats) -> list[int]:
    """Return float64 numbers as multiples of the smallest one."""
    ratios = (value.as_integer_ratio() for value in values.tolist())
    return [numerator * (GRID // denominator) for numerator, denominator in ratios]


def subset_sums(values: list[int]) -> list[int]:
    """Return the sum of every subset, by the bits of its number."""
    sums = [0]
    for value in values:
        sums += [one + value for one in sums]
    return sums


# Claims


def check(holds: bool, claim: str, *figures: object) -> None:
    """Raise if a claim is false."""
    if not holds:
        raise AssertionError(f"{claim}: {', '.join(map(repr, figures))}")


def share(one: Fraction | float, other: Fraction | float) -> float:
    """Return the excess of one number over another; infinite if it cannot be written."""
    try:
        return float((Fraction(one) - Fraction(other)) / Fraction(other))
    except (OverflowError, ZeroDivisionError):
        return float("inf")


def check_certificate(
    found: Certificate, problem: Problem, exact: Rationals, gap: float, rounding: Fraction
) -> None:
    """Compare all figures of a certificate with the exact ones."""
    optimum, lower, upper = exact.optimum, Fraction(found.lower_bound), Fraction(found.upper_bound)
    check(lower <= optimum, "lower bound above the optimum", found, share(lower, optimum))
    check(optimum <= upper * (1 + rounding), "upper bound below the optimum", found)
    assert found.labels is not None
    own = exact.of_labels(found.labels)
    check(abs(own - upper) <= rounding * own + Fraction(5e-324), "not its inertia", found, own)
    check(len(set(found.labels.tolist())) <= problem.k, "too many clusters", found.labels)
    if found.status == "optimal":
        limit = own * (1 - Fraction(gap)) * (1 - rounding)
        check(optimum >= limit, "not optimal", found, share(own, optimum))
    proven = Fraction(found.verify(problem.X, problem.weights))
    check(proven <= optimum, "verified above the optimum", found, share(proven, optimum))


def check_models(problem: Problem, exact: Rationals, rng: Rng) -> str:
    """Check what a fit says to be proven; return what it says."""
    k, n = problem.k, len(problem.X)
    options = {"random_state": int(rng.integers(100)), "max_offspring": 40}
    try:
        if problem.X.shape[1] == 1 and rng.random() < 0.3:
            path = HGMeansPath(k_range=(min(k, n), n)).fit(problem.X, sample_weight=problem.weights)
            model = path.at(min(k, n))
        else:
            model = HGMeans(min(k, n), **options).fit(problem.X, sample_weight=problem.weights)
    except ValueError as error:
        if not any(text in str(error) for text in MODEL_REFUSALS):
            raise
        return "refused"
    own, reason = exact.of_labels(model.labels_), str(model.stop_reason_)
    if reason == "proven_optimal":
        limit = exact.optimum * (1 + Fraction(2, 10**6))
        check(own <= limit, "said to be proven_optimal", model.inertia_, share(own, exact.optimum))
    return reason


def start_labels(problem: Problem, exact: Rationals, rng: Rng) -> NDArray[np.int64]:
    """Labels to certify: mostly optimal ones, else any."""
    if rng.random() < 0.6:
        return exact.labels()
    return rng.integers(0, problem.k, len(problem.X))


def methods(problem: Problem, rng: Rng) -> list[str]:
    """Methods to try: the one that suits the problem, and two others that can be asked for."""
    others = ["separation", "relaxation", "parts"]
    n, d = problem.X.shape
    if d == 2:
        others.append("plane")
    if d == 1 or problem.k in (1, n - 1):
        others.append("direct")
    return ["auto", *rng.choice(others, 2, replace=False).tolist()]


def check_one(problem: Problem, exact: Rationals, method: str, rng: Rng) -> str:
    """Certify labels with one method, and check what it says; return method and status."""
    labels = start_labels(problem, exact, rng)
    gap = float(rng.choice([1e-6, 1e-3, 1e-9]))
    options = {"n_clusters": problem.k, "method": method, "gap": gap, "max_time": 5.0}
    try:
        found = certify(problem.X, labels, problem.weights, **options)
    except ValueError as error:
        is_refusal = any(text in str(error) for text in REFUSALS)
        if isinstance(error, InvalidProofError) or not is_refusal:
            raise
        return f"{method} refused"
    check_certificate(found, problem, exact, gap, ROUNDING)
    return f"{found.method} {found.status}"


def case(rng: Rng) -> str:
    """Draw a problem and check all claims about it; return what was said of it."""
    problem = Problem.draw(rng)
    exact = Rationals(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        said = [check_one(problem, exact, method, rng) for method in methods(problem, rng)]
    if problem.X.shape[1] == 1 or rng.random() < 0.1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said.append(f"model {check_models(problem, exact, rng)}")
    return running.SEPARATOR.join(said)
