"""Kernels read the numbers of an order from one record, by their names."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.kernels import Move
from evomeans.engines.protocol import LocalSearch, Order

NUMBERS = ("int", "float", "bool")


def test_every_number_of_an_order_and_its_local_search_is_in_the_record() -> None:
    """So a new one is a field there, and a kernel that reads it."""
    local_search = LocalSearch(single_moves=True, swaps=3, momentum=True)
    order = Order(np.zeros((4, 2)), 0.25, 0.75, 2, 2, None, local_search, 7.0)
    workspace = CpuEngine(np.random.default_rng(0).normal(size=(50, 2)))._workspace(4)
    workspace._instruct(Move(gone=1, placed=5, uniform=0.5, steps=9), order)
    (written,) = workspace.work.record
    for record in (order, local_search):
        for one in fields(record):
            if one.type in NUMBERS:
                assert written[one.name] == getattr(record, one.name), one.name
    assert [written[name].item() for name in ("gone", "placed", "uniform", "steps")] == [
        1,
        5,
        0.5,
        9,
    ]


def test_kernels_are_named_only_where_they_are_wanted() -> None:
    """Their addresses; 0 for none."""
    workspace = CpuEngine(np.random.default_rng(0).normal(size=(50, 2)))._workspace(4)
    workspace._instruct(Move(), Order())
    (plain,) = workspace.work.record.copy()
    workspace._instruct(Move(leads=True, moves=True, tries_swaps=True), Order())
    (full,) = workspace.work.record
    assert [plain[name] for name in ("lead", "move", "swap")] == [0, 0, 0]
    assert all(full[name] for name in ("assign", "lead", "move", "swap"))
