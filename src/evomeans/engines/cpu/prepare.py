"""Which kernels a fit will call, so that they can be compiled before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.ready import Call
from evomeans.engines.cpu.acceleration import lead
from evomeans.engines.cpu.assignment import reassign
from evomeans.engines.cpu.hartigan import move_singles
from evomeans.engines.cpu.kernels import Kernels
from evomeans.engines.cpu.layout import Samples, State
from evomeans.engines.cpu.offspring import make_offspring
from evomeans.engines.cpu.order import distribute, halve, route, split
from evomeans.engines.cpu.partition import choose_parts
from evomeans.engines.cpu.predict import kernel_calls_for
from evomeans.engines.cpu.refine import refine, step, sum_distances
from evomeans.engines.cpu.samples import (
    can_move_singles,
    encode_samples,
    fill_tiles,
    frame_for,
)
from evomeans.engines.cpu.seeding import Candidates, all_distances, draw_at, seed
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.swaps.search import try_swaps
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.frame import is_sparse
from evomeans.engines.protocol import Ability
from evomeans.engines.rules import MANY_ROWS
from evomeans.kernels.vectors import smallest_size


def calls(
    X: Any, n_clusters: int, abilities: frozenset[Ability], *, breeding: bool, momentum: bool
) -> list[Call]:
    """Return the calls of a fit, with arguments of the right types and next to no size.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        The samples. Only their types and their number matter.
    n_clusters : int
    abilities : frozenset of Ability
        What the search uses beyond K-means.
    breeding : bool
        Whether there is a search that crosses solutions.
    momentum : bool
        Whether K-means may have momentum.
    """
    samples = blank_samples(X)
    workspace = Workspace(samples, 1, 1, 1)
    samples, centers, scratch, target = (
        workspace.samples,
        workspace.centers,
        workspace.scratch,
        workspace.target,
    )
    kernels = Kernels(samples, centers, scratch, n_clusters)
    single, double, grid = samples.radii, np.zeros(1), np.zeros((1, 1))
    points = np.zeros((1, 1)) if is_sparse(X) else samples.rows
    pairs = np.zeros((1, 2), np.int64)
    found = [
        Call(reassign, kernels.arguments[reassign], 1.4),
        Call(refine, kernels.arguments[refine], 2.0),
        Call(halve, (points, samples.order, WIDTH, 1, pairs, double, grid), 0.5),
        Call(smallest_size, (np.zeros(1, X.dtype),), 0.1),
    ]
    if not is_sparse(X):
        tiles = samples.tiles, samples.middles, samples.squares, single
        found.append(Call(fill_tiles, (samples.rows, *tiles), 0.3))
        if X.shape[0] >= MANY_ROWS:
            found += [*bucket_calls(samples.rows, samples.order), *kernel_calls_for(X)]
    if Ability.SEEDING in abilities:
        memory = Candidates.allocate(1, 1, 1), grid, pairs[0]
        found.append(Call(seed, (samples, target, scratch, *memory, 0, 1), 0.9))
    if Ability.SINGLE_MOVES in abilities and can_move_singles(X):
        found.append(Call(move_singles, kernels.arguments[move_singles], 2.3))
    if Ability.SWAPS in abilities:
        found.append(Call(try_swaps, kernels.arguments[try_swaps], 4.0))
    if Ability.PARTS in abilities:
        found.append(Call(choose_parts, kernels.arguments[choose_parts], 0.8))
    if momentum and not is_sparse(X):
        found.append(Call(lead, kernels.arguments[lead], 1.0))
    if breeding:
        found.append(Call(make_offspring, kernels.arguments[make_offspring], 0.6))
    return found


def bucket_calls(rows: Any, order: Any) -> list[Call]:
    """Return the calls that put many samples into buckets."""
    buckets, tree = np.zeros(1, np.uint16), (np.zeros((1, 1)), np.zeros(1))
    return [
        Call(split, (rows, order, *tree, np.zeros(1), np.zeros((2, 1))), 0.8),
        Call(route, (rows, *tree, 1, buckets), 0.3),
        Call(distribute, (buckets, np.zeros(1, np.int64), order), 0.2),
    ]


def other_calls(X: Any) -> list[Call]:
    """Return what large data and the Dask engine call, beyond the calls of a fit.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        The samples. Only their types matter.
    """
    workspace, state = Workspace(blank_samples(X), 1, 1, 1), State.allocate(1, 1)
    samples, centers, scratch = workspace.samples, workspace.centers, workspace.scratch
    found = [
        Call(step, (samples, state, centers, scratch, False, -1, 0, 1), 4.0),
        Call(sum_distances, (samples, state, centers, scratch, 1, 0, 1), 0.7),
        Call(draw_at, (scratch.nearby, scratch.partial, samples.places, 0.0), 0.4),
        Call(all_distances, (samples, centers.exact, np.zeros((1, 1))), 0.5),
    ]
    return found if is_sparse(X) else [*found, *bucket_calls(samples.rows, samples.order)]


def blank_samples(X: Any) -> Samples:
    """Return samples of the types that those of ``X`` will have."""
    if is_sparse(X):
        return encode_samples(X[:1], None, frame_for(X[:1], None), in_order=False)
    index = np.zeros(1, np.uint32)
    return Samples(
        rows=np.zeros((1, 1), X.dtype),
        order=index,
        places=index,
        weights=np.zeros(0),
        tiles=np.zeros((1, WIDTH), np.float32),
        middles=np.zeros((1, 1)),
        squares=np.zeros((1, WIDTH), np.float32),
        radii=np.zeros(1, np.float32),
        weight_unit=1.0,
        roundoff=np.float32(0.0),
        scales=np.zeros(2),
        limb=1.0,
    )
