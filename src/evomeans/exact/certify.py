"""Which proof to attempt, and the attempt: the one place that decides."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from evomeans.compiled.ready import Call, ready
from evomeans.exact.admm import (
    RelaxationTree,
    capped_simplex,
    finish,
    point_to_project,
    relax,
    shift,
)
from evomeans.exact.cases import Limits
from evomeans.exact.cuts import FoundCuts, add_cuts, find_cuts, grow_stars, no_cuts, sweep_cuts
from evomeans.exact.line import prefix_sums, row_minima
from evomeans.exact.parts import MOST_POINTS, by_parts, exchange
from evomeans.exact.plane_boxes import Boxes, PricedGroups, bound_boxes, descend, join, sort_groups
from evomeans.exact.plane_prices import PlaneTree, normal_matrix
from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints
from evomeans.exact.proofs import (
    DirectProof,
    Finding,
    Method,
    SeparationProof,
    direct_optimum,
    is_direct,
)
from evomeans.exact.relaxation import fix_pairs
from evomeans.typing import Integers

MOST_IN_PLANE = 2000
"""Distinct points up to which columns are generated; a step of the program grows with n³."""
SEPARATED = "the clusters are well separated"
TOO_WIDE = "the samples or weights span too many orders of magnitude for a proof in float64"


def choose_method(points: WeightedPoints, k: int) -> tuple[Method, str]:
    """Return what suits a problem that `separation` does not close, and why."""
    n, d = points.values.shape
    if is_direct(points, k):
        return Method.DIRECT, "the problem can be solved exactly without a search"
    if d == 2 and n <= MOST_IN_PLANE:
        return Method.PLANE, f"the {n} distinct samples lie in a plane"
    if n <= MOST_POINTS:
        return Method.RELAXATION, f"there are only {n} distinct samples"
    return Method.PARTS, f"{n} distinct samples are too many for one relaxation"


def attempt(
    points: WeightedPoints,
    k: int,
    labels: Integers,
    limits: Limits,
    *,
    method: Method | None = None,
    n_jobs: int = 1,
    part_size: int | None = None,
) -> Finding:
    """Prove as much as possible about the clusterings of some points, of which one is known.

    The options are those of `evomeans.certify`, and k may exceed the number of points.
    """
    wanted, reason = choose_method(points, k)
    if method is not None:
        wanted, reason = method, "asked for"
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
        reason = reason if is_exact else TOO_WIDE
        return Finding(lower, labels, DirectProof(), reason)
    separation = SeparationProof(labels)
    separated = Finding(separation.lower_bound(points, k), labels, separation, reason)
    cutoff = points.inertia(labels)
    if method is Method.SEPARATION:
        return separated
    if cutoff < SMALLEST_INERTIA:
        return replace(separated, reason=TOO_WIDE)
    if method is None and separated.lower >= cutoff * (1 - limits.gap):
        return replace(separated, reason=SEPARATED)
    if wanted is Method.PARTS and limits.expired():
        return separated
    if wanted is Method.PARTS:
        found = by_parts(points, k, labels, limits, n_jobs, part_size)
    else:
        threads = ThreadPoolExecutor(n_jobs, "evomeans proof") if n_jobs > 1 else nullcontext()
        with threads as pool:
            found = by_cases(wanted, points, k, labels, limits, pool)
    is_best = method is not None or found.lower >= separated.lower
    return replace(found, reason=reason) if is_best else replace(separated, reason=SEPARATED)


def by_cases(
    method: Method,
    points: WeightedPoints,
    k: int,
    labels: Integers,
    limits: Limits,
    pool: Executor | None = None,
) -> Finding:
    """Raise the bound of a search tree until it meets the known inertia or time is up."""
    cutoff = points.inertia(labels)
    tree: PlaneTree | RelaxationTree
    if method is Method.RELAXATION:
        known = labels if len(np.unique(labels)) == k else None
        tree = RelaxationTree(points, k, cutoff, known, limits, pool=pool)
    elif points.values.shape[1] == 2:
        tree = PlaneTree(points, k, cutoff, labels, limits)
    else:
        raise ValueError(
            f"method='plane' is for samples with 2 features, got {points.values.shape[1]}."
        )
    proof = tree.prove()
    # Whatever the search believes, what counts is what the check of the proof returns.
    lower = proof.lower_bound(points, k)
    best = labels if tree.labels is None else tree.labels
    n_cuts = tree.n_columns if isinstance(tree, PlaneTree) else proof.n_cuts
    return Finding(lower, best, proof, "", proof.n_nodes, n_cuts)


# ---- what is compiled before the clock of a proof starts -----------------------------------------


def kernel_calls() -> list[Call]:
    """Return the calls of all kinds of proofs."""
    one, grid, cube = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1, 1))
    index, small = np.zeros(1, np.int64), np.zeros(1, np.int32)
    marks, mask = np.zeros(1, np.bool_), np.zeros((1, 1), np.bool_)
    cuts = no_cuts()
    found = FoundCuts(cuts, one, small, index, one, one, grid, one, index)
    groups = PricedGroups(grid, one, one, index, index, index, small)
    boxes = Boxes(np.zeros((1, 1), np.int32), cube, index, one)
    pairs, scratch = np.zeros((1, 2), np.int64), np.zeros((4, 2), np.int64)
    parts = grid, grid, one, index, index, grid, one, cube, grid, pairs
    return [
        Call(point_to_project, (grid, grid, grid, 1.0, grid), 0.3),
        Call(shift, (grid, one, one), 0.2),
        Call(capped_simplex, (one, 1.0), 0.2),
        Call(relax, (grid, grid, grid, 1.0, grid, grid), 0.3),
        Call(finish, (grid, grid, mask, grid, grid, grid, grid), 0.4),
        Call(exchange, parts, 0.6),
        Call(find_cuts, (grid, 0.0, 0, 0, found), 1.5),
        Call(grow_stars, (grid, 0.0, 0, 0, found), 1.0),
        Call(fix_pairs, (grid, one, mask, 0.0, mask), 0.3),
        Call(bound_boxes, (groups, 0.0, 0.0, 0.0, boxes, grid, index), 2.0),
        Call(descend, (groups, small, grid, one), 0.7),
        Call(join, (groups, grid, mask), 0.4),
        Call(sort_groups, (groups, 0.0, 0.0, 0.0, boxes, index, marks, scratch), 2.0),
        Call(normal_matrix, (index, small, one, one, grid), 0.3),
        Call(add_cuts, (grid, grid, one, cuts, one), 0.5),
        Call(sweep_cuts, (grid, mask, one, cuts, one), 0.8),
        Call(prefix_sums, (one, one, one, grid), 0.6),
        Call(row_minima, (grid, small, one, one, small, 1, 1, 0, 0, 1.0), 1.2),
    ]


def prepare() -> None:
    """Compile what proofs call, unless that was done on this machine before."""
    ready(kernel_calls())
