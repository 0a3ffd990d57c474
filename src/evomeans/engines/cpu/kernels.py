"""How kernels are called: instructions, types, addresses, and what is compiled before a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from evomeans.compiled.ready import Call
from evomeans.engines.course import least_of
from evomeans.engines.cpu import steps
from evomeans.engines.cpu.assignment import reassign
from evomeans.engines.cpu.hartigan import move_singles
from evomeans.engines.cpu.layout import (
    Centers,
    Samples,
    Scratch,
    Solution,
    SparseRows,
    State,
    WorkArrays,
)
from evomeans.engines.cpu.offspring import OffspringArrays, Parts, choose_parts, make_offspring
from evomeans.engines.cpu.order import halve, route, split
from evomeans.engines.cpu.predict import kernel_calls_for
from evomeans.engines.cpu.refine import MomentumState, lead, refine, step, sum_distances
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
from evomeans.engines.frame import is_sparse
from evomeans.engines.nearest import FEWEST, block_size
from evomeans.engines.protocol import Ability, LocalSearch, Order
from evomeans.engines.rules import MANY_ROWS, MAX_ITERATIONS
from evomeans.kernels import matching, ward
from evomeans.kernels.vectors import smallest_size
from evomeans.typing import Integers

# ---- what a refinement is to do, as kernels read it ----------------------------------------------

# One record with all numbers of a move, an order and its local search, by their names.
TYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_}
OF_ORDER = [(one.name, TYPES[str(one.type)]) for one in fields(Order) if one.type in TYPES]
OF_SEARCH = [(one.name, TYPES[str(one.type)]) for one in fields(LocalSearch) if one.type in TYPES]
numbers_of = attrgetter(
    *(name for name, _ in OF_ORDER), *(f"local_search.{name}" for name, _ in OF_SEARCH)
)
"""The numbers of an order in the order of the record."""

PLAIN = Order()
"""An order of K-means from centres that are given elsewhere."""


class Move(NamedTuple):
    """What a call of the kernel is about, besides the order.

    * ``inherit``: whether to begin from the parent.
    * ``gone``: the centre that is moved to a sample; −1 for none.
    * ``placed``: the place of that sample; −1 for one that is drawn by its distance.
    * ``uniform``: uniform number for this draw.
    * ``steps``: maximum number of Lloyd's iterations, each a move of the centres to their means and
      an assignment. With 0, samples are assigned to the target and nothing else. With −1 not even
      the inertia is computed.
    * ``least``: what the centres have to explain in the end. Where that is hopeless, the refinement
      is given up, and the inertia is infinite. 0 for anything. Only with momentum.
    * ``leads``, ``moves`` and ``tries_swaps``: whether there is momentum, and whether single moves
      and swaps follow.
    * ``tries_parts`` and ``way``: how parents are crossed.
    """

    inherit: bool = False
    gone: int = -1
    placed: int = -1
    uniform: float = 0.0
    steps: int = MAX_ITERATIONS
    least: float = 0.0
    leads: bool = False
    moves: bool = False
    tries_swaps: bool = False
    tries_parts: bool = False
    way: int = 0

    @classmethod
    def of(cls, order: Order, n_clusters: int, **details: Any) -> Move:
        """Return what an order asks for in a single call of the kernel."""
        search = order.local_search
        is_free = search.max_iter is None
        steps = MAX_ITERATIONS if search.max_iter is None else search.max_iter
        return cls(
            steps=steps,
            least=least_of(search, order.least_explained),
            leads=is_free and search.momentum,
            moves=search.single_moves and steps > 0,
            tries_swaps=is_free and search.swaps > 0 and n_clusters > 1,
            **details,
        )


# Kernels that others call by their addresses, 0 where one is not wanted: many searches do not make
# single moves, and need not compile them.
CALLED: dict[str, Any] = {
    "refine": refine,
    "choose": choose_parts,
    "merge": ward.merge,
    "cross": matching.cross,
    "assign": reassign,
    "lead": lead,
    "move": move_singles,
    "swap": try_swaps,
}
OF_MOVE = [(name, TYPES[type(one).__name__]) for name, one in Move._field_defaults.items()]
RECORD = np.dtype(
    [*OF_MOVE, *((name, np.int64) for name in CALLED), *OF_ORDER, *OF_SEARCH], align=True
)
"""The numbers of a :class:`Move` and of an order, and addresses of kernels."""


def work_arrays(
    samples: Samples, k: int, n_features: int, n_threads: int = 1, barrier: Integers | None = None
) -> WorkArrays:
    """Allocate what refinements with one number of clusters work with."""
    samples, n = with_room(samples, k, n_features), len(samples.order)
    barrier = np.zeros(16, np.int64) if barrier is None else barrier
    return WorkArrays(
        samples,
        Centers.allocate(np.empty((k, n_features)), n_threads),
        Scratch.allocate(samples, k, n_features, n_threads, barrier),
        Clusters.allocate(n, k, n_features, isinstance(samples.rows, SparseRows)),
        UndoLog.allocate(n, k, n_features, barrier),
        MomentumState.allocate(k, n_features),
        np.zeros(1, RECORD),
    )


_known: dict[Any, Kernels] = {}


def kernels_for(work: WorkArrays, n_clusters: int) -> Kernels:
    """Return the kernels for these types; they are looked up once in a process."""
    # Not the types themselves: to ask Numba for them takes as long as refining a small solution.
    key = layout_of(work.samples), State.label_type(n_clusters)
    if key not in _known:
        # What is remembered must not keep the samples of a fit alive.
        kernel: Any = refine
        blanks = blank(work)
        if kernel.types_of([blanks]) != kernel.types_of([work]):
            return Kernels(work, n_clusters)
        _known[key] = Kernels(blanks, n_clusters)
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

    ``arguments`` are, for each kernel, of the right types and next to no size.
    """

    def __init__(self, work: WorkArrays, n_clusters: int) -> None:
        solution = Solution.allocate(0, n_clusters, 0)
        state = solution.state
        parts, labelled = Parts.allocate(0), (state.labels, solution.centers)
        arrays = OffspringArrays.allocate(0, 0, parts)
        self._entries: dict[Any, Callable[..., None]] = {}
        self._addresses: dict[str, int] = {}
        self.arguments: dict[Any, tuple[Any, ...]] = {
            refine: (work, solution, solution, 0, 1),
            reassign: (work, state, -1, 0, 1),
            move_singles: (work, state, 0, 1),
            lead: (work, state, 0, 1),
            step: (work, state, False, -1, 0, 1),
            sum_distances: (work, state, 1, 0, 1),
            try_swaps: (work, state, 1, 0.0),
            choose_parts: (work.samples, *labelled, *labelled, parts),
            make_offspring: (work, solution, solution, solution, arrays, 0, 1),
        }
        for call in (*ward.kernel_calls(), *matching.kernel_calls()):
            self.arguments[call.kernel] = call.arguments

    def entry(self, kernel: Any) -> Callable[..., None]:
        """Return what Python calls to run a kernel."""
        if kernel not in self._entries:
            self._entries[kernel] = kernel.entry(*self.arguments[kernel])
        return self._entries[kernel]

    def address(self, name: str) -> int:
        """Return where one of the kernels CALLED by others is."""
        if name not in self._addresses:
            kernel = CALLED[name]
            self._addresses[name] = int(kernel.address(*self.arguments[kernel]))
        return self._addresses[name]


def calls(
    X: Any,
    n_clusters: int,
    abilities: frozenset[Ability],
    *,
    breeding: bool,
    momentum: bool,
    hurries: bool = False,
) -> list[Call]:
    """Return the calls of a fit, with small arguments of the right types, to be compiled before.

    One that ``hurries`` may need quick steps.
    """
    work = work_arrays(blank_samples(X), 1, 1)
    samples, kernels = work.samples, Kernels(work, n_clusters)
    single, double, grid = samples.radii, np.zeros(1), np.zeros((1, 1))
    points = np.zeros((1, 1)) if is_sparse(X) else samples.rows
    pairs = np.zeros((1, 2), np.int64)
    own = [
        (reassign, 1.4, True),
        (refine, 2.0, True),
        (move_singles, 2.3, Ability.SINGLE_MOVES in abilities and can_move_singles(X)),
        (try_swaps, 4.0, Ability.SWAPS in abilities),
        (choose_parts, 0.8, Ability.PARTS in abilities),
        (lead, 1.0, momentum and not is_sparse(X)),
        (make_offspring, 0.6, breeding),
    ]
    found = [
        *(Call(one, kernels.arguments[one], seconds) for one, seconds, is_used in own if is_used),
        Call(halve, (points, samples.order, WIDTH, 1, double, grid, pairs), 0.5),
        Call(smallest_size, (np.zeros(1, X.dtype),), 0.1),
    ]
    if not is_sparse(X):
        tiles = samples.tiles, samples.middles, samples.squares, single
        found.append(Call(fill_tiles, (samples.rows, *tiles), 0.3))
        if X.shape[0] >= MANY_ROWS:
            found += bucket_calls(samples.rows, samples.order)
        if hurries:
            found += steps.kernel_calls_for(X)
    if X.shape[0] > FEWEST:
        # What fits into a block is labelled by NumPy, but for ties.
        is_many = X.shape[0] > block_size(n_clusters, X.shape[1])
        found += kernel_calls_for(X, only_ties=not is_many)
    if Ability.SEEDING in abilities:
        memory = Candidates.allocate(1, 1, 1), grid, pairs[0]
        found.append(Call(seed, (samples, grid, work.scratch, *memory, 0, 1), 0.9))
    return found


def bucket_calls(rows: Any, order: Any) -> list[Call]:
    """Return the calls that put many samples into buckets."""
    tree = np.zeros((1, 1)), np.zeros(1)
    return [
        Call(split, (rows, order, *tree, np.zeros(1), np.zeros((1, 1))), 0.8),
        Call(route, (rows, *tree, 1, np.zeros(1, np.uint16)), 0.3),
    ]


def other_calls(X: Any) -> list[Call]:
    """Return what large data and the Dask engine call, beyond the calls of a fit."""
    work = work_arrays(blank_samples(X), 1, 1)
    samples, scratch, arguments = work.samples, work.scratch, Kernels(work, 1).arguments
    found = [
        Call(step, arguments[step], 4.0),
        Call(sum_distances, arguments[sum_distances], 0.7),
        Call(draw_at, (scratch.nearby, scratch.partial, samples.places, 0.0), 0.4),
        Call(all_distances, (samples, work.centers.exact, np.zeros((1, 1))), 0.5),
    ]
    if is_sparse(X):
        return found
    return [*found, *bucket_calls(samples.rows, samples.order), *steps.kernel_calls_for(X)]


def blank_samples(X: Any) -> Samples:
    """Return samples of the types that those of ``X`` will have."""
    if is_sparse(X):
        return encode_samples(X[:1], None, frame_for(X[:1], None), in_order=False)
    rows, index = np.zeros((1, 1), X.dtype), np.zeros(1, np.uint32)
    tile, radii = np.zeros((1, WIDTH), np.float32), np.zeros(1, np.float32)
    tiles = tile, np.zeros((1, 1)), tile, radii
    no_weights, scales, roundoff = np.zeros(0), np.zeros(2), np.float32(0.0)
    return Samples(rows, index, index, no_weights, *tiles, 1.0, roundoff, scales, 1.0, 0.0)
