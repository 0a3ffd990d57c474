"""What a refinement is to do, as kernels read it: one record of numbers.

The record has all numbers of an :class:`~evomeans.engines.protocol.Order` and of its local search,
by their names. So a new number is a field there, and a kernel that reads it.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.engines.rules import MAX_ITERATIONS

TYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_}
OF_ORDER = [(one.name, TYPES[str(one.type)]) for one in fields(Order) if one.type in TYPES]
OF_SEARCH = [(one.name, TYPES[str(one.type)]) for one in fields(LocalSearch) if one.type in TYPES]
RECORD = np.dtype(
    [
        ("inherit", np.bool_),
        ("gone", np.int64),
        ("placed", np.int64),
        ("uniform", np.float64),
        ("steps", np.int64),
        ("least", np.float64),
        ("assign", np.int64),
        ("lead", np.int64),
        ("move", np.int64),
        ("swap", np.int64),
        ("tries_parts", np.bool_),
        ("way", np.int64),
        *OF_ORDER,
        *OF_SEARCH,
    ],
    align=True,
)
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
    * ``leads``, ``moves`` and ``swaps``: whether there is momentum, and whether single moves and
      swaps follow.
    """

    inherit: bool = False
    gone: int = -1
    placed: int = -1
    uniform: float = 0.0
    steps: int = MAX_ITERATIONS
    least: float = 0.0
    leads: bool = False
    moves: bool = False
    swaps: bool = False


@bundle
class Instructions(NamedTuple):
    """``record`` (1,): the numbers of a :class:`Move` and of an order.

    In place of ``leads``, ``moves`` and ``swaps`` it has the addresses of kernels, 0 for none:
    ``lead`` (:func:`~evomeans.engines.cpu.acceleration.lead`), ``move``
    (:func:`~evomeans.engines.cpu.hartigan.move_singles`) and ``swap``
    (:func:`~evomeans.engines.cpu.swaps.search.try_swaps`). Many searches do not make single moves,
    and would compile them for nothing if they were a part of the kernel. ``assign`` is that of
    :func:`~evomeans.engines.cpu.assignment.reassign`: two kernels can be compiled at the same time.
    ``tries_parts`` and ``way`` say how parents are crossed.
    """

    record: NDArray[Any]

    @classmethod
    def allocate(cls) -> Instructions:
        """Allocate the record."""
        return cls(np.zeros(1, RECORD))
