"""Kernels are looked up by what their types depend on, which is far sooner at hand than these."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from evomeans.engines.cpu import CpuEngine, kernels
from evomeans.engines.cpu.refine import refine


def bundles(X, k: int = 3):
    workspace = CpuEngine(X)._workspace(k)
    return workspace.samples, workspace.centers, workspace.scratch


X = np.random.default_rng(0).normal(size=(20, 2))
SAMPLES = {"double": X, "single": X.astype(np.float32), "sparse": csr_array(X)}


@pytest.mark.parametrize("one", SAMPLES)
@pytest.mark.parametrize("other", SAMPLES)
def test_layouts_differ_wherever_types_do(one, other) -> None:
    first, second = bundles(SAMPLES[one]), bundles(SAMPLES[other])
    same_types = refine.types_of(first) == refine.types_of(second)
    assert same_types == (one == other)
    layouts = [[kernels.layout_of(bundle) for bundle in both] for both in (first, second)]
    assert (layouts[0] == layouts[1]) == same_types


def test_kernels_are_looked_up_once() -> None:
    first, again = (kernels.kernels_for(*bundles(rows), 3) for rows in (X, X[:10] + 1.0))
    assert first is again
    assert kernels.kernels_for(*bundles(X.astype(np.float32)), 3) is not first
