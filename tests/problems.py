"""Samples of every awkward kind, and starts on them, for property tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evomeans.engines import Engine, Order, Refinement, create_engine
from evomeans.engines.protocol import LocalSearch

FloatArray = NDArray[np.float64]

KINDS = (
    "normal",
    "blobs",
    "duplicates",
    "integers",
    "offset",
    "tiny",
    "huge",
    "outliers",
    "needle",
    "constant column",
    "constant",
    "few distinct",
)
LAYOUTS = ("C", "F", "strided", "read-only")
STARTS = ("samples", "normal", "one point", "far away")
MOMENTUM = LocalSearch(momentum=True)
# Problems are drawn as seeds: smaller ones are no simpler, and shrinking a hang takes for ever.
without_shrinking = settings(phases=[Phase.explicit, Phase.generate])
# Each precision and each kind of weights once: for tests that vary other things as well.
paired = pytest.mark.parametrize(
    ("dtype", "weighted"),
    [(np.float32, True), (np.float64, False)],
    ids=["float32-weighted", "float64-equal"],
)


@dataclass(frozen=True)
class Problem:
    """Samples, weights, a number of clusters and where K-means is to begin."""

    X: NDArray[Any]
    weights: FloatArray | None
    k: int
    start: str = "samples"
    seed: int = 0

    @property
    def w(self) -> FloatArray:
        """Return the weights, which may all be one."""
        return np.ones(len(self.X)) if self.weights is None else self.weights

    def engine(self, name: str, **options: Any) -> Engine:
        """Return an engine over the samples."""
        return create_engine(name, self.X, self.weights, **options)

    def starts(self, engine: Engine, count: int = 1) -> list[Order]:
        """Return founders in the engine's frame."""
        rng = np.random.default_rng(self.seed)
        return [self._start(engine, rng) for _ in range(count)]

    def _start(self, engine: Engine, rng: np.random.Generator) -> Order:
        n, d = self.X.shape
        if self.start == "samples":
            slots = rng.choice(n, self.k, replace=False)
            centers = engine.samples_at((slots + 0.5) / n)
        elif self.start == "normal":
            centers = rng.normal(size=(self.k, d))
        elif self.start == "one point":
            centers = np.tile(engine.samples_at(rng.random(1)), (self.k, 1))
        else:
            centers = 100.0 + rng.normal(size=(self.k, d))
        power = int(rng.integers(1, 3))
        return Order(np.array(centers, float), rng.random(), rng.random(), power=power)


def make_samples(kind: str, n: int, d: int, dtype: type, rng: np.random.Generator) -> NDArray[Any]:
    """Return n samples of one of KINDS."""
    double = dtype is np.float64
    X = rng.normal(size=(n, d))
    if kind == "blobs":
        X += 10.0 * rng.integers(0, 5, size=(n, 1))
    elif kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), size=n)]
    elif kind == "few distinct":
        X = X[rng.integers(0, min(n, 3), size=n)]
    elif kind == "integers":
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
    elif kind == "offset":
        X = 1e8 + X * (1.0 if double else 100.0)  # float32 has steps of 8 there
    elif kind == "tiny":
        X *= 1e-150 if double else 1e-36
    elif kind == "huge":
        X *= 1e150 if double else 1e37
    elif kind == "outliers":
        X[rng.random(n) < 0.1] *= 1e6
    elif kind == "needle":
        X[0] += 1e10  # what is left of the others cannot be told apart in single precision
    elif kind == "constant column":
        X[:, 0] = 0.1
    elif kind == "constant":
        X[:] = X[0]
    return X.astype(dtype)


def made(
    n: int,
    d: int,
    k: int,
    *,
    kind: str = "normal",
    dtype: type = np.float64,
    weighted: bool = False,
    seed: int = 0,
) -> Problem:
    """Return samples of one of KINDS, with weights or without, and starts among them."""
    rng = np.random.default_rng(seed)
    X = make_samples(kind, n, d, dtype, rng)
    return Problem(X, make_weights(n, rng) if weighted else None, k, "samples", seed)


def make_weights(n: int, rng: np.random.Generator) -> FloatArray:
    """Weights over three orders of magnitude, one in five of them zero, but not all."""
    weights = 10.0 ** rng.uniform(-2.0, 1.0, size=n)
    weights[rng.random(n) < 0.2] = 0.0
    weights[rng.integers(n)] = 1.0
    return weights


def arranged(X: NDArray[Any], layout: str) -> NDArray[Any]:
    """Return equal samples in another memory layout."""
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    X = X.copy()
    X.setflags(write=layout != "read-only")
    return X


@st.composite
def problems(draw: Any, dtype: type, weighted: bool) -> Problem:
    """Problems of all kinds, layouts and starts, from 1 sample to several tiles and chunks."""
    n = draw(st.one_of(st.integers(1, 20), st.sampled_from([63, 64, 65, 200, 1100])))
    d = draw(st.one_of(st.integers(1, 5), st.sampled_from([8, 17, 33])))
    k = draw(st.integers(1, min(n, 9)))
    kind = draw(st.sampled_from(KINDS))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    X = make_samples(kind, n, d, dtype, rng)
    weights = make_weights(n, rng) if weighted else None
    X = arranged(X, draw(st.sampled_from(LAYOUTS)))
    return Problem(X, weights, k, draw(st.sampled_from(STARTS)), seed)


def with_momentum(engine_name: str, problem: Problem) -> Engine:
    """Return an engine; that on the GPU has momentum for large data only."""
    with pytest.MonkeyPatch.context() as patch:
        if engine_name == "gpu":
            patch.setattr("evomeans.engines.gpu.engine.MANY_ROWS_ON_DEVICE", 1)
        return problem.engine(engine_name)


def with_search(starts: list[Order], local_search: LocalSearch) -> list[Order]:
    """Return orders with another local search."""
    return [replace(start, local_search=local_search) for start in starts]


def offspring(
    mother: Refinement, father: Refinement, rng: np.random.Generator, **changes: Any
) -> Order:
    """Mother's centres, some replaced by father's, and one of them relocated."""
    k = len(mother.centers)
    from_father = rng.random(k) < 0.3
    values = {
        "centers": np.where(from_father[:, None], father.centers, mother.centers),
        "alpha": float(rng.choice([0.0, 0.5, 1.0])),
        "quantile": rng.random(),
        "removed": int(rng.integers(k)),
        "power": int(rng.integers(1, 3)),
        "parent": mother.handle,
    }
    return Order(**{**values, **changes})
