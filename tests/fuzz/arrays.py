"""Hostile arrays and odd parameters for all estimators: refused, or a true answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn

from evomeans import (
    ConstrainedHGMeans,
    ExactKMeans,
    HGMeans,
    HGMeansPath,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from tests.fuzz.tampering import FLOATS, check_possible

SEARCH: dict[str, Any] = {"random_state": 0, "max_offspring": 10, "max_time": 5.0}
ESTIMATORS: tuple[Any, ...] = (
    HGMeans(3, **SEARCH),
    HGMeans(3, engine="reference", **SEARCH),
    HGMeans(2, strategy="paper", subsample=8, **SEARCH),
    SphericalHGMeans(3, **SEARCH),
    TrimmedHGMeans(3, n_outliers=2, **SEARCH),
    ConstrainedHGMeans(3, size_max="balanced", **SEARCH),
    ConstrainedHGMeans(3, **SEARCH),
    HGMeansPath((2, 3), random_state=0, max_offspring=10, max_time=5.0),
    ExactKMeans(2, max_time=0.3),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 2.5, 10**30, -(10**30), np.nan, np.inf, -np.inf, 1e-300),
    *(1e300, "", "x", "balanced", b"x", [], [1, 2, 3], (2, 3), {}, object(), np.int8(3), 2**63),
    *(np.float32(2), np.array([1, 2, 3]), np.array([[1.0]]), np.array("x"), lambda *_: 1.0, 1j),
)


def case(rng: np.random.Generator) -> str:
    """Fit and use an estimator with something hostile; raise if the answer is wrong or odd."""
    model = sklearn.clone(ESTIMATORS[rng.integers(len(ESTIMATORS))])
    name = type(model).__name__
    good, arguments = samples(rng), {}
    X: Any = good
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            match rng.integers(5):
                case 0:
                    X = hostile(good, rng)
                case 1:
                    arguments["sample_weight"] = hostile_weights(rng)
                case 2:
                    set_odd_parameter(model, rng)
                case 3 if isinstance(model, ConstrainedHGMeans):
                    arguments = hostile_links(rng)
                case 3 if "init" in model.get_params():
                    model.set_params(init=hostile(rng.normal(size=(model.n_clusters, 3)), rng))
                case _:
                    return use(model.fit(good), rng)
            model.fit(X, **arguments)
        except (TypeError, ValueError) as error:
            check_text(error)
            return f"{name} refused"
        check_answer(model, np.shape(X)[0], rng)
    return f"{name} fitted"


def samples(rng: np.random.Generator) -> Any:
    """Return 24 samples of some kind, in some memory layout."""
    X: Any = rng.normal(size=(24, 3))
    match rng.integers(6):
        case 0:
            X = X.astype(np.float32)
        case 1:
            X = np.round(X)
        case 2:
            X = np.where(rng.random(X.shape) < 0.5, 0.0, X)
            X = sp.csr_array(X).asformat(str(rng.choice(["csr", "csc", "coo", "bsr", "lil"])))
        case 3:
            X = np.asfortranarray(X)
    return X


def hostile(good: Any, rng: np.random.Generator) -> Any:
    """Return something that is nearly, or not at all, like the samples given."""
    if sp.issparse(good):
        return hostile_sparse(good, rng)
    X = np.array(good)
    changes: tuple[Callable[[], Any], ...] = (
        lambda: with_values(X, rng),
        lambda: with_values(X, rng),
        lambda: X * float(rng.choice(FLOATS)),
        lambda: X + float(rng.choice(FLOATS)),
        lambda: X.astype(rng.choice(["f2", ">f8", "i1", "u8", "?", "O", "U8", "c16", "g"])),
        lambda: X[:0],
        lambda: X[:, :0],
        lambda: X[:2],
        lambda: X[:, :1],
        lambda: X[None],
        lambda: X[0],
        lambda: np.float64(1.0),
        lambda: X.tolist(),
        lambda: [list(row[: 1 + i % 3]) for i, row in enumerate(X)],
        lambda: np.zeros_like(X),
        lambda: np.repeat(X[:2], 12, axis=0),
        lambda: np.lib.stride_tricks.as_strided(X, (24, 3), (X.strides[0], 0)),
        lambda: X[::-1, ::-1],
        lambda: np.ma.masked_greater(X, 1.0),
        lambda: np.broadcast_to(X[:1], X.shape),
        lambda: X.view(np.uint64),
        lambda: [None] * 24,
        lambda: "not samples",
        lambda: X.astype(np.float32) * np.float32(3e38),
    )
    return changes[rng.integers(len(changes))]()


def with_values(X: Any, rng: np.random.Generator) -> Any:
    X = X.copy()
    for _ in range(int(rng.integers(1, 6))):
        value = rng.choice(FLOATS)
        match rng.integers(3):
            case 0:
                X[rng.integers(len(X)), rng.integers(X.shape[1])] = value
            case 1:
                X[rng.integers(len(X))] = value
            case _:
                X[:, rng.integers(X.shape[1])] = value
    return X


def hostile_sparse(good: Any, rng: np.random.Generator) -> Any:
    """Change arrays of a matrix after SciPy has looked at them."""
    X = good.copy()
    number = int(rng.choice([-(2**31), -1, 3, 24, 99, 10**8, 2**31 - 1]))
    match X.format:
        case "lil":
            X.rows[0] = [number]
            X.data[0] = [1.0]
        case "coo":
            X.coords[int(rng.integers(2))][rng.integers(X.nnz)] = number
        case _:
            match rng.integers(7):
                case 0:
                    X.indptr[rng.integers(len(X.indptr))] = number
                case 1:
                    X.indptr = X.indptr[:-1]
                case 2:
                    X.data = X.data[:-1]
                case 3:
                    X.data = X.data * float(rng.choice(FLOATS))
                case 4:
                    X.indices = X.indices.astype(np.int64) + 2**40
                case 5:
                    # Duplicates, in no order, which the matrix takes for sorted.
                    _ = X.has_sorted_indices
                    X.indices[:] = 0
                case _:
                    X.indices[rng.integers(len(X.indices))] = number
    return X


def hostile_weights(rng: np.random.Generator) -> Any:
    weights = rng.random(24)
    match rng.integers(6):
        case 0:
            weights[rng.integers(24)] = rng.choice(FLOATS)
        case 1:
            weights = np.full(24, rng.choice(FLOATS))
        case 2:
            weights = np.exp(rng.normal(size=24) * 100)
        case 3:
            weights = weights[: rng.integers(24)]
        case 4:
            return ODD[rng.integers(len(ODD))]
        case _:
            weights[2:] = 0.0
    return weights


def hostile_links(rng: np.random.Generator) -> dict[str, Any]:
    pairs: Any = rng.integers(0, 24, size=(int(rng.integers(1, 9)), 2)).astype(float)
    match rng.integers(5):
        case 0:
            pairs[0, rng.integers(2)] = rng.choice([-1, 24, 1e18, 0.5, np.nan, np.inf])
        case 1:
            penalties = rng.choice([v for v in FLOATS if v > 0], size=len(pairs))
            pairs = np.column_stack([pairs, penalties])
        case 2:
            return {"must_link": ODD[rng.integers(len(ODD))], "cannot_link": pairs}
        case 3:
            pairs = np.column_stack([pairs, np.full(len(pairs), rng.choice(FLOATS))])
    return {str(rng.choice(["must_link", "cannot_link"])): pairs}


def set_odd_parameter(model: Any, rng: np.random.Generator) -> None:
    names = [
        name for name in model.get_params() if name not in ("checkpoint", "observers", "verbose")
    ]
    name = str(rng.choice(names))
    value = ODD[rng.integers(len(ODD))]
    is_large = isinstance(value, int | float) and value > 100
    if is_large and name in ("k_range", "max_time", "min_population", "max_population"):
        # More work than a case may take, and what was asked for.
        value = 2
    model.set_params(**{name: value})


def use(model: Any, rng: np.random.Generator) -> str:
    """Ask a fitted estimator about hostile samples."""
    X = hostile(samples(rng), rng)
    methods = [name for name in ("predict", "transform", "score") if hasattr(model, name)]
    method = str(rng.choice(methods))
    options = {"fill_sizes": True} if method == "predict" and hasattr(model, "size_max") else {}
    try:
        answer = getattr(model, method)(X, **options)
    except (TypeError, ValueError) as error:
        check_text(error)
        return f"{method} refused"
    assert method == "score" or len(answer) == np.shape(X)[0]
    assert not np.isnan(answer).any()
    if method == "predict":
        assert np.asarray(answer).max() < 3
    return f"{method} answered"


def check_text(error: Exception) -> None:
    """Refusals of ours and of scikit-learn say something; those of Python's depths do not."""
    if len(str(error)) < 15:
        raise error


def check_answer(model: Any, n_samples: int, rng: np.random.Generator) -> None:
    if isinstance(model, HGMeansPath):
        model = model.at(int(model.k_values_[-1]))
    labels = model.labels_
    check_possible(model, n_samples)
    if isinstance(model, ConstrainedHGMeans) and isinstance(model.size_max, str):
        sizes = np.bincount(labels, minlength=len(model.cluster_centers_))
        assert sizes.max() - sizes.min() <= 1
