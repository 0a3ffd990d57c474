"""How the kernels of a refinement are called: the types of their arguments, and their addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from evomeans.compiled.entry import entry
from evomeans.compiled.ready import Call
from evomeans.engines.cpu.acceleration import MomentumState, lead
from evomeans.engines.cpu.assignment import reassign
from evomeans.engines.cpu.hartigan import move_singles
from evomeans.engines.cpu.layout import Centers, Samples, Scratch, Solution, SparseRows, State
from evomeans.engines.cpu.offspring import OffspringArrays, make_offspring
from evomeans.engines.cpu.partition import Parts, choose_parts
from evomeans.engines.cpu.refine import refine
from evomeans.engines.cpu.swaps.lists import (
    Clusters,
    UndoLog,
)
from evomeans.engines.cpu.swaps.search import try_swaps
from evomeans.kernels import matching, merging

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

    Parameters
    ----------
    samples, centers, scratch
        Bundles of these types.
    n_clusters : int

    Attributes
    ----------
    arguments : dict of tuples
        For each kernel, arguments of the right types and next to no size.
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
        choices = False, 0, -1, -1, 0.0, 1, 0, 0.0, 0, 0, 0, 0.0
        numbers = False, -1, -1, 0.0, 1, 1, 0, 0, 0.0, 0, 0, 0, 0.0, 0, 1
        self.arguments: dict[Any, tuple[Any, ...]] = {
            refine: (samples, solution, solution, centers, scratch, *swapping, momentum, *numbers),
            reassign: (*bundles, -1, 0, 1),
            move_singles: (*bundles, 0, 1),
            lead: (*bundles, momentum, 0.0, 0, 0, 1),
            try_swaps: (samples, *swapping, state, centers, scratch, 1, 0.0),
            choose_parts: (samples, *labelled, *labelled, parts),
            make_offspring: (
                samples,
                *family,
                centers,
                scratch,
                *swapping,
                momentum,
                arrays,
                *choices,
            ),
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
