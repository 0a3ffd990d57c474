"""``KernelHGMeans``: k-means in the space of a kernel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from evomeans.engines import Engine
from evomeans.engines.constrained.links import contract
from evomeans.estimators.callbacks import EXTRA_FRAMES
from evomeans.estimators.parameters import (
    Parameters,
    check_int,
    check_random_source,
    check_real,
    generator_from,
    shown,
)
from evomeans.estimators.searching import Model
from evomeans.estimators.solution import FinalSolution, Task, encode_centers, plain_task
from evomeans.search import Individual
from evomeans.typing import FloatArray

Kernel = Callable[[NDArray[Any], NDArray[Any]], FloatArray]
# What the products of coordinates may differ from a kernel, as a share of its largest value.
INDEFINITE = 1e-6
# Columns that are factorised together, and operations in a row for which Ctrl-C may have to wait.
PANEL, MOST_OPERATIONS = 64, 2 * 10**10


class IndefiniteKernelError(ValueError):
    """A kernel that is not the product of anything."""


@dataclass(frozen=True)
class Coordinates:
    """A map from samples to coordinates: φ(x) = L⁻¹k(landmarks, x)."""

    # (r,). Which of the samples are landmarks.
    chosen: NDArray[np.intp]
    # (r, r). L, lower triangular, with LLᵀ the kernel of the landmarks.
    factor: FloatArray


def find_coordinates(gram: FloatArray) -> Coordinates:
    """Choose landmarks that span all samples, by a Cholesky factorisation with pivots [1]_.

    Samples whose coordinates follow from those of the landmarks, up to rounding, add nothing. So
    all products of coordinates are the kernel itself, however few landmarks there are.

    References
    ----------
    .. [1] Higham, N. J. (1990). "Analysis of the Cholesky decomposition of a semi-definite matrix".
       Reliable Numerical Computation, 161-185.
    """
    largest = float(np.diagonal(gram).max())
    if not largest > 0.0:
        raise IndefiniteKernelError(
            f"The kernel of no sample with itself is positive; the largest is {largest:.3g}."
        )
    tolerance = len(gram) * np.finfo(np.float64).eps * largest
    factor, chosen = pivoted_cholesky(gram, tolerance)
    coordinates = apply_map(gram[chosen], factor)
    error = max(
        float(np.abs(coordinates[rows] @ coordinates.T - gram[rows]).max())
        for rows in blocks_of(len(gram), len(gram) * len(chosen))
    )
    if error > INDEFINITE * largest:
        raise IndefiniteKernelError(
            "The kernel is not positive semi-definite: it differs from all products of coordinates "
            f"by {error:.3g}, with values up to {largest:.3g}. Use another kernel, or add a "
            "constant to the diagonal of a precomputed one."
        )
    return Coordinates(chosen, factor)


def pivoted_cholesky(gram: FloatArray, tolerance: float) -> tuple[FloatArray, NDArray[np.intp]]:
    """Factorise a kernel by panels of columns, the largest pivot first, and return its samples.

    What LAPACK's ``dpstrf`` does; but that one cannot be interrupted for as long as it takes. The
    pivots of samples that are left out are at most the tolerance.
    """
    rest, order, n = gram.copy(), np.arange(len(gram)), len(gram)
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        pivots = rest.diagonal().copy()
        for j in range(first, last):
            best = j + int(np.argmax(pivots[j:]))
            if not pivots[best] > tolerance:
                return np.tril(rest[:j, :j]), order[:j]
            for one in (rest, rest.T, order, pivots):
                one[[j, best]] = one[[best, j]]
            column = rest[j:, j] - rest[j:, first:j] @ rest[j, first:j]
            column[0] = math.sqrt(pivots[j])
            column[1:] /= column[0]
            rest[j:, j] = column
            pivots[j + 1 :] -= np.square(column[1:])
        below = rest[last:, first:last]
        rest[last:, last:] -= below @ below.T
    return np.tril(rest), order


def apply_map(products: FloatArray, factor: FloatArray) -> FloatArray:
    """Return the coordinates of samples from their kernel with the landmarks, (r, n)."""
    r, n = products.shape
    coordinates = np.empty((n, r))
    for rows in blocks_of(n, r * r):
        coordinates[rows] = solve_triangular(factor, products[:, rows], lower=True).T
    return coordinates


def blocks_of(n_rows: int, cost: int) -> Iterator[slice]:
    """Divide rows, each of so many operations, into blocks after which Ctrl-C is heard."""
    size = max(1, MOST_OPERATIONS // max(1, cost))
    return (slice(first, first + size) for first in range(0, n_rows, size))


LINEAR, PRECOMPUTED = "linear", "precomputed"
# Up to so many samples, the kernel of all pairs is computed: 800 MB, and twice that to factorise.
MOST_EXACT = 10_000
# Landmarks beyond that, unless n_components says otherwise.
DEFAULT_LANDMARKS = 1000
# Of a time limit, the share that the coordinates of all samples may take: LAPACK cannot be stopped.
COORDINATES_SHARE = 0.3
# Up to so many landmarks, they take hundredths of a second.
FEW_LANDMARKS = 200
# Size of the products, and number of kernel values, that are timed.
TIMED_SIZE, TIMED_VALUES = 384, 2**18


@dataclass(eq=False, repr=False, kw_only=True)
class KernelHGMeans(Model):
    """Kernel k-means with the search of HGMeans.

    Clusters minimise the sum of squared distances in the space of a kernel, where clusters can be
    separated that no straight line separates in the space of the samples [1]_. Samples get
    coordinates whose products are the kernel, and the CPU engine of HGMeans searches among them.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`: "linear", "rbf", "poly",
        "cosine", "laplacian", "chi2" and so on; or "precomputed", if ``X`` is the kernel of all
        pairs of samples. A callable takes two samples and returns a number. Kernels that are not
        positive semi-definite are refused.

    gamma : float, default=None
        For the kernels that have it. None means that of scikit-learn, 1 / n_features for most.

    degree : float, default=3
        Degree of the kernel "poly".

    coef0 : float, default=1
        Constant of the kernels "poly" and "sigmoid".

    kernel_params : dict, default=None
        Further arguments of a callable kernel.

    n_components : int, default=None
        How many samples are landmarks of the Nyström approximation [2]_. None means no
        approximation up to 10,000 samples, and 1000 landmarks beyond, with a UserWarning. Both
        are fewer, with a UserWarning, if ``max_time`` is too short for the coordinates.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_components_)
        The centres, as coordinates in the space of the kernel; with kernel="linear" in that of the
        samples.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each sample.

    inertia_ : float
        Sum of squared distances in the space of the kernel, times the weights; with an
        approximation, that of the approximated kernel.

    landmarks_ : ndarray of shape (n_components_, n_features)
        Samples that span the space. With kernel="precomputed", their numbers; with kernel="linear",
        none.

    factor_ : ndarray of shape (n_components_, n_components_)
        Lower triangular; the coordinates of a sample are the solution of ``factor_ @ z = k`` with
        its kernel values k with the landmarks.

    is_exact_ : int
        1 if the kernel is that of all pairs of samples, 0 if it is approximated.

    References
    ----------
    .. [1] Schölkopf, B., Smola, A. and Müller, K.-R. (1998). "Nonlinear component analysis as a
       kernel eigenvalue problem". Neural Computation 10, 1299-1319.
    .. [2] Williams, C. K. I. and Seeger, M. (2001). "Using the Nyström method to speed up kernel
       machines". NIPS 13, 682-688.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import KernelHGMeans
    >>> angle = np.linspace(0, 2 * np.pi, 30, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([ring, 5 * ring])
    >>> labels = KernelHGMeans(2, gamma=0.5, random_state=0).fit(X).labels_
    >>> len(set(labels[:30])), len(set(labels[30:])), labels[0] != labels[30]
    (1, 1, np.True_)
    """

    kernel: Any = "rbf"
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    n_components: int | None = None

    landmarks_: NDArray[Any] = field(init=False)
    factor_: FloatArray = field(init=False)
    is_exact_: int = field(init=False)
    _fitted_numbers: ClassVar[tuple[str, ...]] = ("is_exact",)
    _fitted_arrays: ClassVar[tuple[str, ...]] = ("landmarks", "factor")
    _is_euclidean: ClassVar[bool] = False

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        self._refuse(X)
        self._check(X)
        k = parameters.n_clusters
        if self.kernel == LINEAR:
            none = np.empty((0, X.shape[1])), np.empty((0, 0)), 1
            task = plain_task(X, sample_weight, k, parameters, is_line=X.shape[1] == 1)
            return self._keeping(task, *none)
        chosen, is_exact = self._candidates(X, sample_weight)
        candidates = X[chosen]
        gram = self._products(candidates, candidates, chosen)
        found = find_coordinates(gram)
        landmarks = candidates[found.chosen]
        if self.kernel == PRECOMPUTED:
            landmarks = chosen[found.chosen, None].astype(np.float64)
        rows = self._embedded(X, landmarks, found.factor)
        task = in_order_of_samples(plain_task(rows, sample_weight, k, parameters), X)
        return self._keeping(task, landmarks.astype(np.float64), found.factor, int(is_exact))

    def _keeping(self, task: Task, landmarks: Any, factor: FloatArray, is_exact: int) -> Task:
        """Let the solution of a task keep the map of its samples."""

        def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
            fitted = {"landmarks_": landmarks, "factor_": factor, "is_exact_": is_exact}
            return replace(task.settle(engine, best, is_final), fitted=fitted)

        return replace(task, settle=settle, identity={"model": "kernel"})

    def _check(self, X: NDArray[Any]) -> None:
        """Check all parameters of the kernel."""
        names = sorted([*PAIRWISE_KERNEL_FUNCTIONS, PRECOMPUTED])
        if not isinstance(self.kernel, str) and not callable(self.kernel):
            raise TypeError(f"kernel must be a name or a callable, got {shown(self.kernel)}.")
        if isinstance(self.kernel, str) and self.kernel not in names:
            raise ValueError(f"kernel={self.kernel!r} must be one of {', '.join(names)}.")
        for name in ("gamma", "degree", "coef0"):
            value = check_real(name, getattr(self, name))
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name}={getattr(self, name)!r} must be finite.")
        if self.kernel_params is not None and not callable(self.kernel):
            raise ValueError("kernel_params are for callable kernels; leave them out.")
        if self.n_components is not None:
            check_int("n_components", self.n_components, at_least=1)
        if self.init is not None or self.warm_start:
            name = "warm_start=True" if self.init is None else "init"
            raise ValueError(
                f"{name} cannot be used with KernelHGMeans, because coordinates in the space of a "
                "kernel are made anew for every fit. Leave it out."
            )
        if self.kernel == PRECOMPUTED and X.shape[0] != X.shape[1]:
            raise ValueError(
                "kernel='precomputed' needs the kernel of all pairs of samples, a square matrix; "
                f"X.shape={X.shape}."
            )
        if self.kernel == PRECOMPUTED and not np.allclose(X, X.T):
            raise ValueError("kernel='precomputed' needs a symmetric matrix, and X is not.")

    def _candidates(
        self, X: NDArray[Any], sample_weight: FloatArray | None
    ) -> tuple[NDArray[np.intp], bool]:
        """Return the samples among which landmarks are, and whether these are all that count."""
        counted = np.arange(X.shape[0])
        if sample_weight is not None:
            counted = np.flatnonzero(sample_weight)
        n_samples, wanted = len(counted), self.n_components
        if wanted is None and n_samples > MOST_EXACT:
            wanted = DEFAULT_LANDMARKS
            warnings.warn(
                f"The kernel of {n_samples} samples is approximated by {wanted} landmarks "
                f"(Nyström), because X has more than {MOST_EXACT} samples. Set n_components to "
                "choose their number.",
                UserWarning,
                stacklevel=5 + EXTRA_FRAMES,
            )
        possible = self._most_landmarks(X, n_samples)
        if possible < min(n_samples, wanted or n_samples):
            wanted = possible
            warnings.warn(
                f"The kernel of {n_samples} samples is approximated by {wanted} landmarks "
                f"(Nyström), because more would take too much of max_time={self.max_time!r}.",
                UserWarning,
                stacklevel=5 + EXTRA_FRAMES,
            )
        if wanted is None or wanted >= n_samples:
            return counted, True
        source = check_random_source(self.random_state)
        # A stream of its own: an int gives the same search with and without it.
        rng = np.random.default_rng([source, 1]) if isinstance(source, int) else None
        rng = generator_from(source) if rng is None else rng
        return np.sort(rng.choice(counted, wanted, replace=False)), False

    def _most_landmarks(self, X: NDArray[Any], n_samples: int) -> int:
        """Estimate how many landmarks the time limit allows, from products and kernel values."""
        if self.max_time is None or n_samples <= FEW_LANDMARKS:
            return n_samples
        square = np.ones((TIMED_SIZE, TIMED_SIZE))
        began = perf_counter()
        square @ square
        operation = (perf_counter() - began) / TIMED_SIZE**3
        value = 0.0
        if self.kernel != PRECOMPUTED:
            some = X[: max(2, math.isqrt(min(TIMED_VALUES, n_samples**2)))]
            began = perf_counter()
            self._products(some, some)
            value = (perf_counter() - began) / len(some) ** 2
        return landmarks_within(COORDINATES_SHARE * self.max_time, n_samples, operation, value)

    def _products(
        self, one: NDArray[Any], other: NDArray[Any], columns: NDArray[Any] | None = None
    ) -> FloatArray:
        """Return the kernel of all pairs of two sets of samples."""
        if self.kernel == PRECOMPUTED:
            return np.asarray(one[:, columns], dtype=np.float64)
        given: dict[str, Any] = self.kernel_params or {}
        if isinstance(self.kernel, str):
            own = {name: getattr(self, name) for name in ("gamma", "degree", "coef0")}
            given = {"filter_params": True, **own}
        wide = [one.astype(np.float64), other.astype(np.float64)]
        if self.kernel == "rbf":
            # It depends on differences only, whose squares lose their digits far from zero.
            low, high = wide[1].min(axis=0), wide[1].max(axis=0)
            is_far = np.minimum(np.abs(low), np.abs(high)) / 8.0 > high / 2.0 - low / 2.0
            wide = [part - np.where(is_far, low, 0.0) for part in wide]
        found = np.asarray(pairwise_kernels(*wide, metric=self.kernel, **given), dtype=np.float64)
        if not np.isfinite(found).all():
            raise ValueError(f"kernel={self.kernel!r} is not finite for some samples of X.")
        return found

    def _embedded(self, X: NDArray[Any], landmarks: NDArray[Any], factor: FloatArray) -> Any:
        """Return the coordinates of samples, in their precision."""
        columns = landmarks[:, 0].astype(np.intp) if self.kernel == PRECOMPUTED else None
        products = self._products(X, landmarks, columns)
        return apply_map(products.T, factor).astype(X.dtype)

    def _checked(self, X: Any) -> Any:
        X = super()._checked(X)
        self._refuse(X)
        if self.kernel == LINEAR:
            return X
        return self._embedded(X, self.landmarks_, self.factor_)

    def _is_consistent(self) -> bool:
        r, d = self.cluster_centers_.shape[1], self.n_features_in_
        if self.kernel == LINEAR:
            return bool(r == d)
        width = 1 if self.kernel == PRECOMPUTED else d
        is_indexed = self.kernel != PRECOMPUTED or bool(
            ((self.landmarks_ >= 0) & (self.landmarks_ < d)).all()
        )
        is_regular = bool(np.diagonal(self.factor_).all())
        shapes = self.landmarks_.shape == (r, width) and self.factor_.shape == (r, r)
        return shapes and is_indexed and is_regular

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        return tags


def landmarks_within(seconds: float, n_samples: int, operation: float, value: float) -> int:
    """Return for how many landmarks the coordinates of samples take at most so long.

    With r landmarks, these are n·r values of the kernel, and r³/3 + n·r² + r³ operations to
    factorise the kernel of the landmarks, to map the samples, and to check the result.
    """
    fewest, most = min(FEW_LANDMARKS, n_samples), n_samples
    while fewest < most:
        r = (fewest + most + 1) // 2
        # The kernel of the landmarks with each other comes first, and then that with all samples.
        taken = value * r * (r + n_samples) + operation * (n_samples * r**2 + 4 * r**3 / 3)
        fewest, most = (r, most) if taken <= seconds else (fewest, r - 1)
    return fewest


def in_order_of_samples(task: Task, X: NDArray[Any]) -> Task:
    """Let the means of samples number clusters; coordinates depend on the choice of landmarks."""

    def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
        solution = task.settle(engine, best, is_final)
        labels, k = solution.labels, len(solution.centers)
        present, compact = np.unique(labels, return_inverse=True)
        means = contract(X, task.weights, compact.reshape(-1)).points
        order = np.arange(k)
        order[: len(present)] = present[np.lexsort(means.T[::-1])]
        centers = solution.centers[order]
        # A sample between two centres belongs to the first, and another one may be the first now.
        labels, _ = engine.assign(encode_centers(engine.frame, centers))
        return replace(solution, centers=centers, labels=np.asarray(labels, dtype=np.int32))

    return replace(task, settle=settle)
