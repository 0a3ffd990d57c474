"""How kernels are called: looked up by what their types depend on, and told what to do by name."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy.sparse import csr_array

from evomeans.engines.cpu import CpuEngine, kernels
from evomeans.engines.cpu.kernels import Move
from evomeans.engines.cpu.refine import refine
from evomeans.engines.protocol import LocalSearch, Order

X = np.random.default_rng(0).normal(size=(20, 2))
SAMPLES = {"double": X, "single": X.astype(np.float32), "sparse": csr_array(X)}


def work_of(samples):
    return CpuEngine(samples)._workspace(3).work


@pytest.mark.parametrize("one", SAMPLES)
@pytest.mark.parametrize("other", SAMPLES)
def test_layouts_differ_wherever_types_do(one, other) -> None:
    works = work_of(SAMPLES[one]), work_of(SAMPLES[other])
    first, second = (refine.types_of([work]) for work in works)
    assert (first == second) == (one == other)
    layouts = [kernels.layout_of(work.samples) for work in works]
    assert (layouts[0] == layouts[1]) == (one == other)
    assert refine.types_of([kernels.blank(works[0])]) == first


def test_kernels_are_looked_up_once() -> None:
    first, again = (kernels.kernels_for(work_of(rows), 3) for rows in (X, X[:10] + 1.0))
    assert first is again
    assert kernels.kernels_for(work_of(X.astype(np.float32)), 3) is not first


def test_every_number_of_an_order_and_its_local_search_is_in_the_record() -> None:
    """So a new one is a field there. Addresses of kernels are 0 where none is wanted."""
    local_search = LocalSearch(single_moves=True, swaps=3, momentum=True)
    order = Order(np.zeros((3, 2)), 0.25, 0.75, 2, 2, None, local_search, 7.0)
    workspace = CpuEngine(X)._workspace(3)
    workspace._instruct(Move(gone=1, placed=5, uniform=0.5, steps=9), order)
    (written,) = workspace.work.record
    for record in (order, local_search):
        for one in fields(record):
            if one.type in ("int", "float", "bool"):
                assert written[one.name] == getattr(record, one.name), one.name
    assert written[["gone", "placed", "uniform", "steps"]].item() == (1, 5, 0.5, 9)
    assert written[["lead", "move", "swap"]].item() == (0, 0, 0)
    workspace._instruct(Move(leads=True, moves=True, tries_swaps=True), Order())
    assert all(workspace.work.record[0][["assign", "lead", "move", "swap"]].item())
