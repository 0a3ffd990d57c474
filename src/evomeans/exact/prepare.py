"""Which kernels proofs call, so that they can be compiled before the clock of a proof starts."""

from __future__ import annotations

import numpy as np

from evomeans.compiled.ready import Call, ready
from evomeans.exact.bound import fix_pairs
from evomeans.exact.cut_search import find_cuts, grow_stars
from evomeans.exact.line_program import prefix_sums, row_minima
from evomeans.exact.parts import exchange
from evomeans.exact.plane_boxes import Boxes, bound_boxes
from evomeans.exact.plane_case import PricedGroups, descend, join
from evomeans.exact.plane_master import normal_matrix, times_prices, times_shares
from evomeans.exact.plane_proof import sort_groups
from evomeans.exact.projection import capped_simplex, finish, point_to_project, relax, shift
from evomeans.exact.subproblem import MOST_MEMBERS, add_cuts, no_cuts, sweep_cuts


def kernel_calls() -> list[Call]:
    """Return the calls of all kinds of proofs."""
    one, grid, cube = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1, 1))
    index, small = np.zeros(1, np.int64), np.zeros(1, np.int32)
    marks, mask = np.zeros(1, np.bool_), np.zeros((1, 1), np.bool_)
    cuts, row = no_cuts(), np.zeros(MOST_MEMBERS + 1, np.int32)
    groups = PricedGroups(grid, one, one, index, index, index)
    boxes = Boxes(np.zeros((1, 1), np.int32), cube, index, one)
    pairs, scratch = np.zeros((1, 2), np.int64), np.zeros((4, 2), np.int64)
    parts = grid, grid, one, index, index, grid, one, cube, grid, pairs
    return [
        Call(point_to_project, (grid, grid, grid, 1.0, grid), 0.3),
        Call(shift, (grid, one, one), 0.2),
        Call(capped_simplex, (one, 1.0), 0.2),
        Call(relax, (grid, grid, grid, 1.0, grid, grid), 0.3),
        Call(finish, (grid, grid, mask, grid, grid, grid, grid), 0.4),
        Call(exchange, (*parts, 0.0), 0.6),
        Call(find_cuts, (grid, 0.0, 0, 0, cuts, one, index, one, row, one, index), 1.5),
        Call(grow_stars, (grid, 0.0, 0, 0, cuts, one, index, one, grid, one, row), 1.0),
        Call(fix_pairs, (grid, one, mask, 0.0, mask), 0.3),
        Call(bound_boxes, (groups, 0.0, 0.0, 0.0, boxes, grid, index, 1), 2.0),
        Call(descend, (groups, small, grid, one, 1), 0.7),
        Call(join, (groups, small, grid, mask), 0.4),
        Call(sort_groups, (groups, 0.0, 0.0, 0.0, boxes, index, marks, scratch, 1), 2.0),
        Call(normal_matrix, (index, small, one, one, grid), 0.3),
        Call(times_prices, (index, small, one, one, one), 0.2),
        Call(times_shares, (index, small, one, one, one), 0.2),
        Call(add_cuts, (grid, grid, one, cuts, one), 0.5),
        Call(sweep_cuts, (grid, mask, one, cuts, one, 1), 0.8),
    ]


def line_calls() -> list[Call]:
    """Return what the solver of one column calls."""
    one, sums, index = np.zeros(1), np.zeros((1, 6)), np.zeros(1, np.int32)
    rows = sums, index, one, one, index, 1, 1, 0, 0, 1.0
    return [Call(prefix_sums, (one, one, one, sums), 0.6), Call(row_minima, rows, 1.2)]


def prepare() -> None:
    """Compile what proofs call, unless that was done on this machine before."""
    ready(kernel_calls())
