"""How kernels are called: types of arguments, addresses, and what a fit lets be compiled before.

The tables of calls let several processes compile at the same time. A small fit would find the same
kernels by itself, but one after the other; docs/background/cpu-engine.md has the measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from evomeans.compiled.jit import entry
from evomeans.compiled.ready import Call
from evomeans.engines.cpu.acceleration import MomentumState, lead
from evomeans.engines.cpu.assignment import reassign
from evomeans.engines.cpu.hartigan import move_singles
from evomeans.engines.cpu.instructions import Instructions
from evomeans.engines.cpu.layout import Centers, Samples, Scratch, Solution, SparseRows, State
from evomeans.engines.cpu.offspring import OffspringArrays, make_offspring
from evomeans.engines.cpu.order import distribute, halve, route, split
from evomeans.engines.cpu.partition import Parts, choose_parts
from evomeans.engines.cpu.predict import kernel_calls_for
from evomeans.engines.cpu.refine import refine, step, sum_distances
from evomeans.engines.cpu.samples import (
    can_move_singles,
    encode_samples,
    fill_tiles,
    frame_for,
    with_room,
)
from evomeans.engines.cpu.seeding import Candidates, all_distances, draw_at, seed
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.swaps.lists import Clusters, UndoLog
from evomeans.engines.cpu.swaps.search import try_swaps
from evomeans.engines.cpu.threads import ThreadTeam
from evomeans.engines.frame import is_sparse
from evomeans.engines.protocol import Ability
from evomeans.engines.rules import MANY_ROWS
from evomeans.engines.scoring import FEWEST
from evomeans.kernels import matching, merging
from evomeans.kernels.vectors import smallest_size

_known: dict[Any, Kernels] = {}


def kernels_for(samples: Samples, centers: Centers, scratch: Scratch, n_clusters: int) -> Kernels:
    """Return the kernels for these types; they are looked up once in a process."""
    bundles = samples, centers, scratch
    # Not the types themselves: to ask Numba for them takes as long as refining a small solution.
    key = *map(layout_of, bundles), State.label_type(n_clusters)
    if key not in _known:
        kernel: Any = refine
        # What is remembered must not keep the samples of a fit alive.
        blanks = blank(samples), blank(centers), blank(scratch)
        if kernel.types_of(blanks) != kernel.types_of(bundles):
            return Kernels(*bundles, n_clusters)
        _known[key] = Kernels(*blanks, n_clusters)
    return _known[key]


def layout_of(field: Any) -> Any:
    """Return what the type of a bundle depends on, or more."""
    if isinstance(field, np.ndarray):
        return field.dtype, field.ndim, field.flags.num
    return (type(field), *map(layout_of, field)) if isinstance(field, tuple) else type(field)


def blank(fields: Any) -> Any:
    """Return a bundle of the same types, whose arrays are empty."""
    if isinstance(fields, np.ndarray):
        return np.zeros((0,) * fields.ndim, fields.dtype)
    return type(fields)(*map(blank, fields)) if isinstance(fields, tuple) else fields


class Kernels:
    """The kernels for some types of arguments. Each is compiled or loaded when it is asked for.

    * ``samples``, ``centers`` and ``scratch``: bundles of these types.
    * ``arguments``: for each kernel, arguments of the right types and next to no size.
    """

    def __init__(
        self, samples: Samples, centers: Centers, scratch: Scratch, n_clusters: int
    ) -> None:
        solution = Solution.allocate(0, n_clusters, 0)
        state = solution.state
        clusters = Clusters.allocate(0, 1, 1, isinstance(samples.rows, SparseRows))
        swapping = clusters, UndoLog.allocate(0, 1, 1)
        bundles = samples, state, centers, scratch
        parts, labelled = Parts.allocate(0), (state.labels, solution.centers)
        family, arrays = (solution,) * 3, OffspringArrays.allocate(0, 0, parts)
        momentum = MomentumState.allocate(0, 0)
        instructions = Instructions.allocate()
        shared = centers, scratch, *swapping, momentum
        self.arguments: dict[Any, tuple[Any, ...]] = {
            refine: (samples, solution, solution, *shared, instructions, 0, 1),
            reassign: (*bundles, -1, 0, 1),
            move_singles: (*bundles, 0, 1),
            lead: (*bundles, momentum, 0.0, 0, 0, 1),
            try_swaps: (samples, *swapping, state, centers, scratch, 1, 0.0),
            choose_parts: (samples, *labelled, *labelled, parts),
            make_offspring: (samples, *family, *shared, arrays, instructions),
        }

    @cached_property
    def refine(self) -> Callable[..., None]:
        """The kernel that calls the others."""
        return entry(refine, *self.arguments[refine])

    @cached_property
    def refine_address(self) -> int:
        """Its address."""
        return self._address(refine)

    @cached_property
    def swap(self) -> Callable[..., None]:
        """Swaps alone."""
        return entry(try_swaps, *self.arguments[try_swaps])

    @cached_property
    def reassign(self) -> int:
        """Address of the assignment."""
        return self._address(reassign)

    @cached_property
    def move_singles(self) -> int:
        """Address of the single moves."""
        return self._address(move_singles)

    @cached_property
    def lead(self) -> int:
        """Address of the momentum."""
        return self._address(lead)

    @cached_property
    def try_swaps(self) -> int:
        """Address of the swaps."""
        return self._address(try_swaps)

    @cached_property
    def offspring(self) -> Callable[..., None]:
        """The kernel that makes an offspring; its addresses are in the arrays of offspring."""
        return entry(make_offspring, *self.arguments[make_offspring])

    @cached_property
    def choose_parts(self) -> int:
        """Address of the partition crossover."""
        return self._address(choose_parts)

    def merge(self, n_clusters: int) -> int:
        """Address of the merging crossover of two solutions with so many clusters."""
        return address(*merging.kernel_calls(2 * n_clusters))

    def cross(self, n_clusters: int) -> int:
        """Address of the matching crossover."""
        return address(*matching.kernel_calls(n_clusters))

    def _address(self, kernel: Any) -> int:
        return int(kernel.address(*self.arguments[kernel]))


def address(call: Call) -> int:
    """Return where the machine code of a call is."""
    return int(call.kernel.address(*call.arguments))


# ---- before a fit --------------------------------------------------------------------------------


def calls(
    X: Any, n_clusters: int, abilities: frozenset[Ability], *, breeding: bool, momentum: bool
) -> list[Call]:
    """Return the calls of a fit, with arguments of the right types and next to no size.

    * ``X`` (n, d) or CSR matrix: the samples. Only their types and their number matter.
    * ``abilities``: what the search uses beyond K-means.
    * ``breeding``: whether there is a search that crosses solutions.
    * ``momentum``: whether K-means may have momentum.
    """
    samples, centers, scratch = blank_arrays(X)
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
            found += bucket_calls(samples.rows, samples.order)
    if X.shape[0] > FEWEST:
        # Fewer samples are labelled by NumPy, but for ties.
        found += kernel_calls_for(X)
    if Ability.SEEDING in abilities:
        memory = Candidates.allocate(1, 1, 1), grid, pairs[0]
        found.append(Call(seed, (samples, grid, scratch, *memory, 0, 1), 0.9))
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

    * ``X`` (n, d) or CSR matrix: the samples. Only their types matter.
    """
    (samples, centers, scratch), state = blank_arrays(X), State.allocate(1, 1)
    found = [
        Call(step, (samples, state, centers, scratch, False, -1, 0, 1), 4.0),
        Call(sum_distances, (samples, state, centers, scratch, 1, 0, 1), 0.7),
        Call(draw_at, (scratch.nearby, scratch.partial, samples.places, 0.0), 0.4),
        Call(all_distances, (samples, centers.exact, np.zeros((1, 1))), 0.5),
    ]
    return found if is_sparse(X) else [*found, *bucket_calls(samples.rows, samples.order)]


def blank_arrays(X: Any) -> tuple[Samples, Centers, Scratch]:
    """Return arrays of the types that a workspace for the samples ``X`` will have."""
    samples = with_room(blank_samples(X), 1, 1)
    centers = Centers.allocate(np.zeros((1, 1)), 1)
    barrier = ThreadTeam(1).barrier
    return samples, centers, Scratch.allocate(len(samples.order), 1, 1, 1, is_sparse(X), barrier)


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
