"""From samples and a clustering to a certificate: checks, clock, Ctrl-C, threads and words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from evomeans.engines import is_dask
from evomeans.engines.frame import is_sparse
from evomeans.estimators.parameters import (
    check_int,
    check_real,
    check_thread_count,
    check_verbose,
    shown,
)
from evomeans.estimators.validation import from_torch
from evomeans.progress import Printer, ProofDisplay
from evomeans.search.stopping import DeferredInterrupt
from evomeans.sparse import as_csr

if TYPE_CHECKING:
    from evomeans.exact.certificate import Certificate

LARGEST_DENSE = 10**8
"""Entries of a sparse matrix that are still written out."""
SMALLEST, LARGEST = 1e-300, 1e300
"""Inertias that can be certified."""
METHODS = ("auto", "direct", "separation", "relaxation", "plane", "parts")

Progress = Callable[[float, float, int], object]


def certify(
    X: Any,
    clustering: Any,
    sample_weight: Any = None,
    *,
    n_clusters: int | None = None,
    max_time: float = 60.0,
    gap: float = 1e-6,
    n_jobs: int | None = None,
    method: str = "auto",
    part_size: int | None = None,
    constrained: bool = False,
    verbose: int = 0,
    progress: Progress | None = None,
) -> Certificate:
    """Prove that a clustering is optimal, or bound its distance from the optimum.

    The clustering may come from anywhere. What is proven is a lower bound for the inertia of all
    clusterings into as many clusters; if both meet, the clustering is optimal. docs/guide/proof.md
    explains the methods and has the proofs.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples, in memory.
    clustering : array-like of shape (n_samples,) or (n_clusters, n_features)
        The labels of the samples, or centres to which the nearest samples belong.
    sample_weight : float or array-like of shape (n_samples,), default=None
        The weight of each sample. None means equal weights.
    n_clusters : int, default=None
        By default the number of labels or centres.
    max_time : float, default=60
        Stop after this many seconds, with the best bound so far. Ctrl-C does the same.
    gap : float, default=1e-6
        The proof is done when the lower bound is within this share of the upper one. The clustering
        is called optimal if it is within one millionth.
    n_jobs : int, default=None
        Cases or parts of the proof that are worked on at a time, by default one; -1 means one for
        each core. Unless time runs out, the result is the same for any number. Within
        ``joblib.parallel_config("dask")``, parts go to a Dask cluster.
    method : {"auto", "direct", "separation", "relaxation", "plane", "parts"}, default="auto"
        How to prove it. "auto" takes what suits the samples.
    part_size : int, default=None
        Distinct samples of a part, at most 1,200. Larger parts take longer and lose less. By
        default as many as one core can work on within ``max_time``; give more if there are more
        cores.
    constrained : bool, default=False
        Whether the clustering satisfies constraints, such as limited sizes. The lower bound of all
        clusterings holds for those that satisfy the constraints, too. The given clustering is then
        kept, because a better one need not satisfy them.
    verbose : int, default=0
        1 prints a line now and then.
    progress : callable, default=None
        Called with the lower bound, the upper bound and the number of nodes so far.

    Returns
    -------
    Certificate
        ``print`` it for a sentence. Its ``labels`` are the best clustering known, which can be
        better than the given one.

    Examples
    --------
    >>> import evomeans
    >>> X = [[0, 0], [0, 1], [1, 0], [8, 8], [8, 9], [9, 7]]
    >>> certificate = evomeans.certify(X, [0, 0, 0, 1, 1, 1])
    >>> certificate.status, round(certificate.lower_bound, 4)
    ('optimal', 4.0)
    >>> round(certificate.verify(X), 4)
    4.0
    """
    from evomeans.exact.certificate import certificate_of, checked_weights

    X = dense_samples(X)
    sample_weight = checked_weights(from_torch(sample_weight), X.shape[0])
    labels, count = check_clustering(clustering, X)
    k = count if n_clusters is None else check_int("n_clusters", n_clusters, at_least=1)
    if count > k:
        raise ValueError(f"n_clusters={k} is less than the {count} clusters of the clustering.")
    limit, target = check_limits(max_time, gap)
    n_threads = check_thread_count(1 if n_jobs is None else n_jobs)
    if part_size is not None:
        check_int("part_size", part_size, at_least=2)
    listeners = [] if progress is None else [progress]
    if level := check_verbose(verbose):
        listeners.append(ProofDisplay(Printer("certify"), verbose=level))

    def listener(*figures: Any) -> None:
        for one in listeners:
            one(*figures)

    check_method(method)
    from evomeans.exact.cases import Limits
    from evomeans.exact.certify import attempt, prepare
    from evomeans.exact.points import WeightedPoints, inertia_of_samples
    from evomeans.exact.proofs import Method

    prepare()
    limits = Limits(target, limit, progress=listener)
    points = WeightedPoints.of_samples(X, sample_weight)
    before = limits.seconds
    given = inertia_of_samples(points, X, sample_weight, labels)
    # The certificate states another one.
    limit -= limits.seconds - before
    has_range = points.n > k or not points.is_whole
    if has_range and given.value and not SMALLEST <= given.value <= LARGEST:
        raise ValueError(
            f"The inertia, {given.value:.3g}, cannot be written in float64 with all its digits; "
            "multiply X or sample_weight by a constant first."
        )
    chosen = None if method == "auto" else Method(method)
    with DeferredInterrupt() as interrupt, threadpool_limits(1):
        limits = replace(limits, max_time=limit, interrupted=lambda: interrupt.requested)
        known = points.labels_of_points(labels)
        finding = attempt(
            points, k, known, limits, method=chosen, n_jobs=n_threads, part_size=part_size
        )
    if interrupt.requested:
        warnings.warn(
            "certify was interrupted; the best bound so far is kept.", RuntimeWarning, stacklevel=2
        )
    return certificate_of(points, finding, k, limits, X, sample_weight, labels, given, constrained)


def dense_samples(X: Any) -> NDArray[np.float64]:
    """Return samples as `verify` sees them: dense, in float64, with every digit."""
    if is_dask(X):
        raise TypeError("certify takes samples in memory, got a Dask collection; pass X.compute().")
    if is_sparse(X):
        if X.shape[0] * X.shape[1] > LARGEST_DENSE:
            raise ValueError(
                f"certify writes sparse samples out; X of shape {X.shape} is too large for that."
            )
        X = as_csr(X)
    from evomeans.exact.certificate import checked_samples

    return checked_samples(from_torch(X))


def check_clustering(clustering: Any, X: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Return labels, and the number of clusters: of labels or of centres."""
    values = np.asarray(from_torch(clustering))
    if values.ndim == 1:
        if values.shape[0] != X.shape[0]:
            raise ValueError(
                f"clustering.shape={values.shape} must be ({X.shape[0]},): one label per sample."
            )
        if not (np.issubdtype(values.dtype, np.integer) or values.dtype.kind in "bUO"):
            raise TypeError(f"clustering must be labels or centres, got {shown(clustering)}.")
        names, labels = np.unique(values, return_inverse=True)
        return labels.ravel().astype(np.int64), len(names)
    if values.ndim != 2 or values.shape[1] != X.shape[1] or len(values) == 0:
        raise ValueError(
            f"clustering.shape={values.shape} must be ({X.shape[0]},) for labels, or "
            f"(n_clusters, {X.shape[1]}) for centres."
        )
    centres = check_array(values, dtype=np.float64, input_name="clustering")
    from sklearn.metrics import pairwise_distances_argmin

    # Around the mean, so that an offset costs no digits.
    middle = X.mean(axis=0)
    return pairwise_distances_argmin(X - middle, centres - middle), len(centres)


def check_limits(max_time: Any, gap: Any) -> tuple[float, float]:
    """Return the seconds and the gap of a proof."""
    seconds, share = check_real("max_time", max_time), check_real("gap", gap)
    if seconds is None or not seconds > 0:
        raise ValueError(f"max_time={max_time} must be a positive number of seconds.")
    if share is None or not 1e-9 <= share < 1:
        raise ValueError(f"gap={gap} must be at least 1e-9 and less than 1.")
    return seconds, share


def check_method(method: Any) -> None:
    """Reject what is not the name of a method."""
    if method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"method={method!r} must be one of {names}.")
