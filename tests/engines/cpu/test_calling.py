"""Kernels are looked up by what their types depend on, which is far sooner at hand than these."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from evomeans.engines.cpu import CpuEngine, kernels
from evomeans.engines.cpu.refine import refine


def bundles(X, k: int = 3):
    return CpuEngine(X)._workspace(k).work


X = np.random.default_rng(0).normal(size=(20, 2))
SAMPLES = {"double": X, "single": X.astype(np.float32), "sparse": csr_array(X)}


@pytest.mark.parametrize("one", SAMPLES)
@pytest.mark.parametrize("other", SAMPLES)
def test_layouts_differ_wherever_types_do(one, other) -> None:
    works = bundles(SAMPLES[one]), bundles(SAMPLES[other])
    first, second = (refine.types_of([work]) for work in works)
    assert (first == second) == (one == other)
    layouts = [kernels.layout_of(work.samples) for work in works]
    assert (layouts[0] == layouts[1]) == (one == other)
    assert refine.types_of([kernels.blank(works[0])]) == first


def test_kernels_are_looked_up_once() -> None:
    first, again = (kernels.kernels_for(bundles(rows), 3) for rows in (X, X[:10] + 1.0))
    assert first is again
    assert kernels.kernels_for(bundles(X.astype(np.float32)), 3) is not first
