"""Momentum on the device: sums with the same bits whatever else is summed up."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from optional import require_torch


@pytest.mark.parametrize("count", [1, 2, 7, 64, 1001])
def test_sums_depend_on_nothing_but_their_terms(count, gpu_device) -> None:
    torch = require_torch()
    from evomeans.engines.gpu.course import folded

    values = np.random.default_rng(count).normal(size=(2, 9, count))
    totals = folded(torch.from_numpy(values).to(gpu_device)).cpu().numpy()
    np.testing.assert_allclose(totals, values.sum(axis=-1), rtol=1e-12, atol=1e-12)
    alone = folded(torch.from_numpy(values[1, 4:5]).to(gpu_device)).cpu().numpy()
    assert_array_equal(alone, totals[1, 4:5])
