"""Many points: split them into parts, and add up the bounds of the parts.

For any partition of the points, the optimum of the whole is at least the sum of the optima of the
parts: restricted to a part, the optimal clustering costs at most its share, and the part's own
optimum costs no more [1]_. The parts come from `anticlusters`.

If bounds are proven for a random sample of the parts only, the rest is estimated. What each part
lacks, its share of the known inertia minus its bound, varies little. Student's t with the
correction for a finite number of parts gives an upper confidence limit for the sum. It assumes that
these deficits are roughly normal, so that the statement is statistical and not a proof.

References
----------
.. [1] A. L. Croella, V. Piccialli, A. M. Sudoso: "Strong bounds for large-scale minimum
   sum-of-squares clustering", arXiv:2502.08397, 2025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as students_t
from threadpoolctl import threadpool_limits

from evomeans.exact import direct
from evomeans.exact.anticlusters import anticlusters
from evomeans.exact.certify import MOST_POINTS, Finding, Map
from evomeans.exact.limits import Limits
from evomeans.exact.points import SMALLEST_INERTIA, Floats, Indices, WeightedPoints
from evomeans.exact.proofs import (
    DirectProof,
    Method,
    PartsProof,
    Proof,
    check_proof,
    part_bounds,
)
from evomeans.exact.rounding import kmeans
from evomeans.exact.tree import Tree

PART_SIZES = 250, 800
"""Points of a part, at least and at most. Other clusterings gain less in larger parts."""
PART_SECONDS = 1.5e-7
"""What a part takes, divided by the cube of its points: an estimate, on one core."""
CONFIDENCE = 0.99
PART_GAP = 2e-4
"""Relative gap at which a part is left: closing the rest gains less than the split loses."""


class UselessError(ValueError):
    """A proof that would say next to nothing, and is not attempted."""


def count_parts(
    points: WeightedPoints, labels: Indices, max_time: float, part_size: int | None = None
) -> int:
    """Return into how many parts to split, or refuse.

    By default the parts are as large as time allows on one core, so that their number does not
    depend on the number of cores.
    """
    smallest = int(np.bincount(labels).min())
    fewest = math.ceil(points.n / MOST_POINTS)
    if smallest < max(fewest, 2):
        raise UselessError(
            f"The smallest cluster has {smallest} distinct samples, fewer than the "
            f"{max(fewest, 2)} parts into which {points.n} distinct samples would have to be "
            "split. Most parts would miss that cluster, and the bound would say next to nothing. "
            "Certify fewer samples or fewer clusters."
        )
    affordable = np.clip(math.sqrt(max_time / (PART_SECONDS * points.n)), *PART_SIZES)
    size = affordable if part_size is None else min(part_size, MOST_POINTS)
    return max(2, fewest, min(round(points.n / size), smallest))


@dataclass(frozen=True)
class PartTask:
    """One part to prove a bound for."""

    points: WeightedPoints
    k: int
    labels: Indices
    max_time: float


def prove_part(task: PartTask, limits: Limits | None = None) -> Proof | None:
    """Prove a bound for one part, at the root of its search tree; None if underflow forbids it."""
    points, k = task.points, task.k
    if direct.solves(points, k):
        return DirectProof()
    labels = np.unique(task.labels, return_inverse=True)[1].ravel()
    better = kmeans(points, points.means(labels))
    if better is not None and points.inertia(better) < points.inertia(labels):
        labels = better
    if points.inertia(labels) < SMALLEST_INERTIA:
        return None
    known = labels if labels.max() + 1 == k else None
    limits = limits or Limits(gap=PART_GAP, max_time=task.max_time)
    with threadpool_limits(1):
        tree = Tree(points, k, points.inertia(labels), known, limits, False, max_nodes=1)
        return tree.prove().proof


def by_parts(
    points: WeightedPoints,
    k: int,
    labels: Indices,
    limits: Limits,
    *,
    run: Map | None = None,
    n_jobs: int = 1,
    sampled: int | None = None,
    part_size: int | None = None,
) -> Finding:
    """Prove a bound by parts: all of them, or a sample for a statistical statement."""
    if labels.max() + 1 != k:
        raise UselessError(f"The given clustering has {labels.max() + 1} clusters, not {k}.")
    n_parts = count_parts(points, labels, limits.max_time, part_size)
    parts = anticlusters(points, labels, n_parts)
    chosen = np.arange(n_parts)
    is_sample = sampled is not None and sampled < n_parts
    if is_sample:
        chosen = np.sort(np.random.default_rng(1).permutation(n_parts)[:sampled])
    members = [np.flatnonzero(parts == number) for number in range(n_parts)]
    share = max(limits.seconds_left, 0.0) * 0.95 * n_jobs / len(chosen)
    tasks = [PartTask(points.restricted(members[q]), k, labels[members[q]], share) for q in chosen]
    if run is not None and n_jobs > 1:
        found = run(prove_part, [(task,) for task in tasks])
    else:
        found = _one_by_one(tasks, limits, points, points.inertia(labels))
    proofs: list[Proof | None] = [None] * n_parts
    for q, proof in zip(chosen, found, strict=True):
        proofs[q] = proof
    proof = PartsProof(parts, tuple(proofs))
    cuts = sum(getattr(part, "n_cuts", 0) for part in found)
    count = len(chosen)
    if not is_sample:
        whole = check_proof(points, k, proof)
        return Finding(Method.PARTS, whole, labels, proof, count, cuts)
    shares = np.array(
        [_restricted_inertia(points.restricted(part), labels[part]) for part in members]
    )
    bounds = np.array(part_bounds(points, k, parts, proofs))[chosen]
    lower = estimated_bound(shares, shares[chosen] - bounds)
    return Finding(Method.PARTS, lower, labels, proof, count, cuts, CONFIDENCE)


def _one_by_one(
    tasks: list[PartTask], limits: Limits, points: WeightedPoints, cutoff: float
) -> list[Proof | None]:
    """Prove part after part; time that one does not need is left to the others."""
    found: list[Proof | None] = []
    lower = 0.0
    for number, task in enumerate(tasks):
        if limits.expired():
            # A part without a proof counts as nothing, which is valid.
            found.append(None)
            continue
        share = max(limits.seconds_left, 0.0) / (len(tasks) - number)
        own = Limits(PART_GAP, share, limits.interrupted, clock=limits.clock)
        proof = prove_part(task, own)
        lower += 0.0 if proof is None else check_proof(task.points, task.k, proof)
        limits.progress(points.in_data_units(lower), points.in_data_units(cutoff), number + 1)
        found.append(proof)
    return found


def _restricted_inertia(points: WeightedPoints, labels: Indices) -> float:
    return points.inertia(np.unique(labels, return_inverse=True)[1].ravel())


def estimated_bound(shares: Floats, deficits: Floats) -> float:
    """Return the confidence limit for the sum of the bounds of all parts.

    Parameters
    ----------
    shares : (n_parts,) array
        Inertia of the known clustering in every part, about the means of the part.
    deficits : (n_sampled,) array
        What the proven bounds of the sampled parts lack to these.
    """
    n, m = len(shares), len(deficits)
    spread = float(deficits.std(ddof=1)) / math.sqrt(m) * math.sqrt((n - m) / (n - 1))
    most = float(deficits.mean()) + float(students_t.ppf(CONFIDENCE, m - 1)) * spread
    return max(0.0, math.fsum(shares.tolist()) - n * most)
