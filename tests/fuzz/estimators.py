"""All estimators on small problems, against the optimum of brute force.

A search may miss an optimum, and the kind of the outcome says so: ``above``. What it says must be
true all the same: nothing is below the optimum, labels, inertia, predict, score and transform
belong together, constraints hold, and the same fit gives the same bits again.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from evomeans import (
    ConstrainedHGMeans,
    HGMeans,
    HGMeansPath,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from evomeans.engines.constrained.links import InfeasibleError
from tests.fuzz import optima

# Most cases have tiny searches, so that there are many of them; of some, the default is tried.
TINY = {"min_population": 2, "max_population": 3, "max_offspring": 2}
DEFAULT_SHARE = 0.1
# A relative difference of objectives that is more than rounding in double and single precision.
ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}


@dataclass(frozen=True)
class Problem:
    """Samples in some form, the same in double precision, weights, and a number of clusters."""

    given: Any
    X: NDArray[np.float64]
    dtype: np.dtype[Any]
    weights: NDArray[np.float64] | None
    k: int
    settings: dict[str, Any]

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.X)

    @property
    def w(self) -> NDArray[np.float64]:
        """The weights, ones if there are none."""
        return np.ones(self.n) if self.weights is None else self.weights

    @property
    def tolerance(self) -> float:
        """What rounding of coordinates to the precision of the data may change."""
        eps = float(np.finfo(self.dtype).eps)
        return 64.0 * float(self.w @ (eps * (1.0 + np.abs(self.X).max(axis=1))) ** 2)

    @property
    def squares(self) -> NDArray[np.float64]:
        """Squared distances of all pairs of samples."""
        return optima.squared_distances(self.X)

    @property
    def costs(self) -> NDArray[np.float64]:
        """What all subsets cost as clusters of plain k-means."""
        return optima.costs_of_subsets(self.squares, self.w)

    def check(self, found: float, optimum: float, tolerance: float | None = None) -> str:
        """Refuse an objective below the optimum; say whether it is above."""
        slack = self.tolerance if tolerance is None else tolerance
        slack += ROUNDING[self.dtype] * optimum
        assert found >= optimum - slack, f"{found!r} is below the optimum {optimum!r}"
        return "optimal" if found <= optimum + slack else "above"


def case(rng: np.random.Generator) -> str:
    """Fit an estimator to a problem, and check all that is known of the answer."""
    kind = list(KINDS)[int(rng.integers(len(KINDS)))]
    is_tiny = rng.random() >= DEFAULT_SHARE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = KINDS[kind](rng, TINY if is_tiny else {})
    return f"{kind}, {'tiny' if is_tiny else 'default'}: {outcome}"


def draw_problem(
    rng: np.random.Generator, settings: dict[str, Any], *, sparse: bool = False, most: int = 7
) -> Problem:
    """Draw samples of an awkward kind, in some form and precision, with weights or without."""
    n, d = int(rng.integers(1, most + 1)), int(rng.integers(1, 4))
    match rng.integers(6):
        case 0:
            X = rng.integers(0, 2, (n, d)).astype(np.float64)
        case 1:
            X = rng.integers(-2, 3, (n, d)).astype(np.float64)
        case 2:
            X = rng.standard_t(1.5, (n, d))
        case 3:
            X = rng.normal(size=(n, d)) + 1e3
        case 4:
            X = rng.normal(size=(n, d))[rng.integers(0, n, n)]
        case _:
            X = rng.normal(size=(n, d))
    dtype = np.dtype([np.float64, np.float32][int(rng.integers(2))])
    X = X.astype(dtype)
    given, dtype = in_some_form(rng, X, sparse=sparse)
    k = int(rng.integers(1, min(n, 4) + 1))
    own = {"n_jobs": 1, "random_state": int(rng.integers(1000)), **settings}
    return Problem(given, X.astype(np.float64), dtype, draw_weights(rng, n), k, own)


def in_some_form(
    rng: np.random.Generator, X: NDArray[Any], *, sparse: bool
) -> tuple[Any, np.dtype[Any]]:
    """Return samples as users may have them, and the precision in which they are searched."""
    form = rng.integers(6)
    if form == 1:
        return np.asfortranarray(X), X.dtype
    if form == 2:
        return X.tolist(), np.dtype(np.float64)
    if form == 3 and (np.round(X) == X).all():
        return X.astype(np.int64), np.dtype(np.float64)
    if form == 4 and sparse:
        return csr_array(X), X.dtype
    if form == 5:
        return np.repeat(X, 2, axis=0)[::2], X.dtype
    return X, X.dtype


def draw_weights(rng: np.random.Generator, n: int) -> NDArray[np.float64] | None:
    """Draw weights: none, whole ones, very different ones, or some zeros."""
    match rng.integers(5):
        case 0:
            return rng.integers(1, 5, n).astype(np.float64)
        case 1:
            return np.exp(rng.normal(0.0, 2.0, n))
        case 2:
            weights = np.where(rng.random(n) < 0.3, 0.0, rng.random(n))
            return weights if weights.any() else None
        case _:
            return None


# The answers


def check_plain(model: Any, problem: Problem) -> None:
    """Labels are those of the closest centres, and all numbers follow from them."""
    distances = np.asarray(model.transform(problem.given), dtype=np.float64)
    labels = model.labels_
    assert distances.shape == (problem.n, problem.k)
    assert (model.predict(problem.given) == labels).all(), "predict differs from labels_"
    own, least = distances[np.arange(problem.n), labels], distances.min(axis=1)
    slack = 1e-3 if problem.dtype == np.float32 else 1e-7
    assert (own <= least * (1 + slack) + slack * np.abs(problem.X).max()).all(), "not the closest"
    check_inertia(model, problem, labels)
    score = model.score(problem.given, sample_weight=problem.weights)
    assert np.isclose(-score, model.inertia_, rtol=1e-6, atol=problem.tolerance), score


def check_inertia(model: Any, problem: Problem, labels: NDArray[Any]) -> None:
    """Compute the inertia from labels and centres, and compare."""
    centers = model.cluster_centers_.astype(np.float64)
    kept = labels >= 0
    squares = ((problem.X - centers[labels]) ** 2).sum(axis=1)[kept]
    expected = float(problem.w[kept] @ squares)
    rtol = 100.0 * ROUNDING[problem.dtype]
    assert np.isclose(model.inertia_, expected, rtol=rtol, atol=problem.tolerance), expected


def check_again(rng: np.random.Generator, model: Any, problem: Problem, **links: Any) -> None:
    """Compare the bits of another such fit: of a clone, with two threads, or once more."""
    names = ("labels_", "cluster_centers_", "inertia_")
    expected = [np.asarray(getattr(model, name)).tobytes() for name in names]
    how = int(rng.integers(8))
    if how == 0:
        other = clone(model).fit(problem.given, sample_weight=problem.weights, **links)
    elif how == 1:
        other = clone(model).set_params(n_jobs=2)
        other.fit(problem.given, sample_weight=problem.weights, **links)
    elif how == 2:
        other = pickle.loads(pickle.dumps(model))
        assert (other.predict(problem.given) == model.predict(problem.given)).all()
    elif how == 3:
        other = model.fit(problem.given, sample_weight=problem.weights, **links)
    else:
        return
    found = [np.asarray(getattr(other, name)).tobytes() for name in names]
    assert found == expected, ("clone", "n_jobs=2", "pickle", "refit")[how]


def check_repeated(rng: np.random.Generator, model: Any, problem: Problem, optimum: float) -> None:
    """Repeat samples by their weights, if these are whole numbers: the optimum is the same."""
    w = problem.weights
    if w is not None and (w == np.round(w)).all() and rng.random() < 0.5:
        repeated = np.repeat(problem.X.astype(problem.dtype), w.astype(int), axis=0)
        problem.check(clone(model).fit(repeated).inertia_, optimum)


# The estimators


def plain(rng: np.random.Generator, settings: dict[str, Any], **parameters: Any) -> str:
    """HGMeans, with an engine and a strategy."""
    is_sparse = parameters.get("engine") != "reference"
    problem = draw_problem(rng, {**settings, **parameters}, sparse=is_sparse)
    model = HGMeans(problem.k, **problem.settings)
    model.fit(problem.given, sample_weight=problem.weights)
    optimum = optima.lowest(problem.costs, problem.n, problem.k)
    outcome = problem.check(model.inertia_, optimum)
    check_plain(model, problem)
    check_again(rng, model, problem)
    check_repeated(rng, model, problem, optimum)
    return outcome


def spherical(rng: np.random.Generator, settings: dict[str, Any]) -> str:
    """SphericalHGMeans, with samples of zeros."""
    problem = draw_problem(rng, settings, sparse=True)
    model = SphericalHGMeans(problem.k, **problem.settings)
    model.fit(problem.given, sample_weight=problem.weights)
    lengths = np.linalg.norm(problem.X, axis=1, keepdims=True)
    units = problem.X / np.where(lengths > 0.0, lengths, 1.0)
    costs = optima.cosine_costs_of_subsets(units, problem.w)
    slack = 32.0 * float(np.finfo(problem.dtype).eps) * float(problem.w.sum())
    outcome = problem.check(
        model.inertia_, optima.lowest(costs, problem.n, problem.k), tolerance=slack
    )
    distances = np.asarray(model.transform(problem.given), dtype=np.float64)
    own = distances[np.arange(problem.n), model.labels_]
    assert (model.predict(problem.given) == model.labels_).all(), "predict differs from labels_"
    assert (own <= distances.min(axis=1) + 1e-6).all(), "not the closest"
    assert np.isclose(problem.w @ own, model.inertia_, rtol=1e-4, atol=slack)
    check_again(rng, model, problem)
    return outcome


def trimmed(rng: np.random.Generator, settings: dict[str, Any]) -> str:
    """TrimmedHGMeans, where weights may be left out in part."""
    problem = draw_problem(rng, settings, most=6)
    k = int(rng.integers(1, min(problem.n, 3) + 1))
    count = int(rng.integers(0, problem.n - k + 1))
    model = TrimmedHGMeans(k, n_outliers=count, **problem.settings)
    if count >= problem.w.sum():
        try:
            model.fit(problem.given, sample_weight=problem.weights)
        except ValueError as error:
            if "must be below the total weight" not in str(error):
                raise
            return "refused"
        raise AssertionError("fitted, though nothing would be left")
    model.fit(problem.given, sample_weight=problem.weights)
    optimum = optima.lowest_trimmed(problem.squares, problem.w, float(count), k)
    outcome = problem.check(model.inertia_, optimum)
    check_trimming(model, problem, float(count))
    check_again(rng, model, problem)
    check_repeated(rng, model, problem, optimum)
    return outcome


def check_trimming(model: Any, problem: Problem, count: float) -> None:
    """Leave out the farthest samples ourselves, the last one in part, and compare."""
    closest = model.predict(problem.given)
    centers = model.cluster_centers_.astype(np.float64)
    squares = ((problem.X - centers[closest]) ** 2).sum(axis=1)
    is_inside = model.labels_ >= 0
    assert (model.labels_ == closest)[is_inside].all(), "not the closest"
    order = np.argsort(-squares)
    before = np.cumsum(problem.w[order]) - problem.w[order]
    kept = problem.w[order] - np.clip(count - before, 0.0, problem.w[order])
    rtol = 100.0 * ROUNDING[problem.dtype]
    assert np.isclose(model.inertia_, kept @ squares[order], rtol=rtol, atol=problem.tolerance)
    outside = float(problem.w[~is_inside].sum())
    assert outside <= count * (1.0 + 1e-9), "too much is left out"
    heaviest = float(problem.w[is_inside].max())
    assert count < outside + heaviest or count == outside, "too little is left out"


def constrained(rng: np.random.Generator, settings: dict[str, Any]) -> str:
    """ConstrainedHGMeans, with sizes, links and penalties; what cannot be is refused."""
    problem = draw_problem(rng, settings, most=6)
    n, k = problem.n, problem.k
    parameters, low, high = draw_limits(rng, n, k)
    must, cannot = (draw_pairs(rng, n, most) for most in (3, 5))
    penalty = float(np.exp(rng.uniform(-3.0, 3.0))) if rng.random() < 0.5 else None
    price = np.inf if penalty is None else penalty
    optimum = optima.lowest_constrained(problem.costs, low, high, must, cannot, price)
    model = ConstrainedHGMeans(k, penalty=penalty, **parameters, **problem.settings)
    links = {"must_link": must, "cannot_link": cannot}
    try:
        model.fit(problem.given, sample_weight=problem.weights, **links)
    except InfeasibleError:
        assert optimum == np.inf, "refused, but there is a clustering"
        return "infeasible"
    assert optimum < np.inf, "no clustering keeps these constraints"
    sizes = np.bincount(model.labels_, minlength=k)
    assert ((sizes >= low) & (sizes <= high)).all(), f"sizes {sizes}"
    labels = model.labels_
    split = int((labels[must[:, 0]] != labels[must[:, 1]]).sum())
    joined = int((labels[cannot[:, 0]] == labels[cannot[:, 1]]).sum())
    assert model.n_violations_ == split + joined, "other number of violations"
    assert np.isclose(model.penalty_, (split + joined) * (0.0 if penalty is None else penalty))
    assert penalty is not None or split + joined == 0, "a link does not hold"
    check_inertia(model, problem, labels)
    check_again(rng, model, problem, **links)
    total, told = model.inertia_ + model.penalty_, model.history_[-1].best
    assert np.isclose(told, total, rtol=1e-4, atol=problem.tolerance), "history has another sum"
    return problem.check(total, optimum)


def draw_limits(
    rng: np.random.Generator, n: int, k: int
) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.int64]]:
    """Draw size limits: none, equal sizes, one pair for all clusters, or one for each."""
    match rng.integers(4):
        case 0:
            return {"size_max": "balanced"}, np.full(k, n // k), np.full(k, -(-n // k))
        case 1:
            low, high = int(rng.integers(0, n // k + 1)), int(rng.integers(n // k, n + 1))
            return {"size_min": low, "size_max": high}, np.full(k, low), np.full(k, high)
        case 2:
            sizes = rng.multinomial(n, np.ones(k) / k)
            lows, highs = (
                np.maximum(sizes - rng.integers(0, 2, k), 0),
                sizes + rng.integers(0, 2, k),
            )
            return {"size_min": lows, "size_max": highs}, lows, highs
        case _:
            return {}, np.zeros(k, np.int64), np.full(k, n)


def draw_pairs(rng: np.random.Generator, n: int, most: int) -> NDArray[np.int64]:
    """Draw pairs of different samples."""
    pairs = rng.integers(0, n, (int(rng.integers(0, most)), 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


def path(rng: np.random.Generator, settings: dict[str, Any]) -> str:
    """HGMeansPath: for each k as for HGMeans, and never higher for more clusters."""
    problem = draw_problem(rng, {"max_offspring": 5} if settings else {}, sparse=True)
    model = HGMeansPath((1, problem.k), criteria=None, select=None, **problem.settings).fit(
        problem.given, sample_weight=problem.weights
    )
    outcomes = [
        problem.check(float(inertia), optima.lowest(problem.costs, problem.n, int(k)))
        for k, inertia in zip(model.k_values_, model.inertias_, strict=True)
    ]
    drops = np.diff(model.inertias_)
    slack = problem.tolerance + ROUNDING[problem.dtype] * model.inertias_[0]
    assert (drops <= slack).all(), f"inertias {model.inertias_} rise"
    return "above" if "above" in outcomes else "optimal"


KINDS: dict[str, Callable[[np.random.Generator, dict[str, Any]], str]] = {
    "deep": plain,
    "paper": partial(plain, strategy="paper"),
    "reference": partial(plain, engine="reference"),
    "spherical": spherical,
    "trimmed": trimmed,
    "constrained": constrained,
    "path": path,
}
