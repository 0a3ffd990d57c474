"""Which proof to attempt, and the attempt: the one place that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evomeans.exact.limits import Limits, Threads
from evomeans.exact.plane_proof import PlaneTree, plane_bound
from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints
from evomeans.exact.projection import CpuProjector, ProjectionTools, Projector
from evomeans.exact.proofs import (
    DirectProof,
    Method,
    Proof,
    SeparationProof,
    check_proof,
    direct_optimum,
    is_direct,
)
from evomeans.exact.separation import separation_bound
from evomeans.exact.tree import RelaxationTree, TreeProof
from evomeans.typing import FloatArray, Integers

MOST_POINTS = 1200
"""Distinct points up to which the relaxation is solved as a whole; an iteration takes 0.3 s."""
MOST_POINTS_ON_GPU = 3000
"""The same for eigenvectors on a GPU."""
MOST_IN_PLANE = 2000
"""Distinct points up to which columns are generated; a step of the program grows with n³."""
SEPARATED = "the clusters are well separated"
TOO_WIDE = "the samples or weights span too many orders of magnitude for a proof in float64"

Map = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], list[Any]]
"""Calls a function with all these arguments, perhaps several at a time; results in order."""


@dataclass(frozen=True)
class Choice:
    """A method, and why it was chosen."""

    method: Method
    reason: str


@dataclass(frozen=True)
class Finding:
    """What an attempt has proven, in the units of the points.

    Parameters
    ----------
    method : Method
    lower : float
        No clustering into k clusters costs less. With a ``confidence`` only as likely as that.
    labels : (n,) array
        The best clustering known, perhaps better than the given one.
    proof : Proof
    n_nodes, n_cuts : int
    confidence : float, optional
        Of a statement from a sample of parts.
    reason : str, optional
        Why another method was used than the one that suits the problem.
    """

    method: Method
    lower: float
    labels: Integers
    proof: Proof
    n_nodes: int = 0
    n_cuts: int = 0
    confidence: float | None = None
    reason: str | None = None


def choose_method(points: WeightedPoints, k: int, most_points: int = MOST_POINTS) -> Choice:
    """Return what to attempt after `separation`, which costs next to nothing, has failed."""
    n, d = points.values.shape
    if is_direct(points, k):
        return Choice(Method.DIRECT, "the problem can be solved exactly without a search")
    if d == 2 and n <= MOST_IN_PLANE:
        return Choice(Method.PLANE, f"the {n} distinct samples lie in a plane")
    if n <= most_points:
        return Choice(Method.RELAXATION, f"there are only {n} distinct samples")
    return Choice(Method.PARTS, f"{n} distinct samples are too many for one relaxation")


def attempt(
    points: WeightedPoints,
    k: int,
    labels: Integers,
    limits: Limits,
    *,
    method: Method | None = None,
    run: Map | None = None,
    n_jobs: int = 1,
    projector: Callable[[FloatArray, int], Projector] = CpuProjector,
    most_points: int = MOST_POINTS,
    sampled_parts: int | None = None,
    part_size: int | None = None,
) -> Finding:
    """Prove as much as possible about the clusterings of some points.

    Parameters
    ----------
    points : WeightedPoints
    k : int
        May exceed the number of points.
    labels : (n,) array
        The known clustering, of the points.
    limits : Limits
    method : Method, optional
        By default the one that suits the problem.
    run : callable, optional
        How to work on several parts at a time.
    n_jobs : int
        How many ``run`` works on, and the threads of a relaxation.
    projector : callable
        Where the relaxation computes eigenvectors, see `projection`.
    most_points : int
        Distinct points up to which the relaxation is solved as a whole.
    sampled_parts : int, optional
        Prove bounds for so many parts only, for a statistical statement.
    part_size : int, optional
        Points of a part.
    """
    wanted = method or choose_method(points, k, most_points).method
    if wanted is Method.DIRECT and not is_direct(points, k):
        raise ValueError(
            f"method='direct' is for one cluster, one feature, or at most n_clusters + 1 distinct "
            f"samples, got n_clusters={k} and {points.n} distinct samples with "
            f"{points.values.shape[1]} features."
        )
    if wanted is Method.DIRECT or points.n <= k:
        lower, best = direct_optimum(points, k)
        labels = best if points.inertia(best) < points.inertia(labels) else labels
        is_exact = lower > 0 or (points.n <= k and points.is_whole)
        reason = None if is_exact else TOO_WIDE
        return Finding(Method.DIRECT, lower, labels, DirectProof(), reason=reason)
    separated = _by_separation(points, k, labels)
    cutoff = points.inertia(labels)
    is_closed = method is None and separated.lower >= cutoff * (1 - limits.gap)
    if method is Method.SEPARATION:
        return separated
    if cutoff < SMALLEST_INERTIA:
        return replace(separated, reason=TOO_WIDE)
    if is_closed:
        return replace(separated, reason=SEPARATED)
    if wanted is Method.RELAXATION:
        with Threads(n_jobs) as threads:
            bench = ProjectionTools(threads, projector)
            found = _by_relaxation(points, k, labels, limits, bench)
    elif wanted is Method.PLANE:
        found = by_columns(points, k, labels, limits)
    else:
        from evomeans.exact.parts import by_parts

        found = by_parts(
            points,
            k,
            labels,
            limits,
            run=run,
            n_jobs=n_jobs,
            sampled=sampled_parts,
            part_size=part_size,
        )
    is_best = method is not None or found.lower >= separated.lower or found.confidence is not None
    return found if is_best else replace(separated, reason=SEPARATED)


def _by_separation(points: WeightedPoints, k: int, labels: Integers) -> Finding:
    lower = separation_bound(points, labels) if labels.max() + 1 == k else 0.0
    return Finding(Method.SEPARATION, lower, labels, SeparationProof(labels))


def _by_relaxation(
    points: WeightedPoints, k: int, labels: Integers, limits: Limits, tools: ProjectionTools
) -> Finding:
    known = labels if len(np.unique(labels)) == k else None
    tree = RelaxationTree(points, k, points.inertia(labels), known, limits, tools=tools)
    proof: TreeProof = tree.prove()
    # Whatever the search believes, what counts is what the check of the proof returns.
    lower = check_proof(points, k, proof)
    best = labels if tree.labels is None else tree.labels
    return Finding(Method.RELAXATION, lower, best, proof, proof.n_nodes, proof.n_cuts)


def by_columns(points: WeightedPoints, k: int, labels: Integers, limits: Limits) -> Finding:
    """Raise the bound of prices until it meets the known inertia or time is up."""
    if points.values.shape[1] != 2:
        raise ValueError(
            f"method='plane' is for samples with 2 features, got {points.values.shape[1]}."
        )
    tree = PlaneTree(points, k, points.inertia(labels), labels, limits)
    proof = tree.prove()
    # Whatever the search believes, what counts is what the check returns.
    lower = plane_bound(points, k, proof)
    return Finding(Method.PLANE, lower, tree.labels, proof, proof.n_nodes, tree.n_columns)
