"""How many offspring the Dask engine refines together."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines import create_engine


def test_rounds_of_large_data_are_small(monkeypatch) -> None:
    """By the number of values alone, so that a search does not depend on the cluster."""
    pytest.importorskip("dask")
    from evomeans.engines.dask import engine as module

    X = np.random.default_rng(0).normal(size=(100, 3))
    for most, batch in ((300, module.BATCH), (299, module.SMALL_BATCH)):
        monkeypatch.setattr(module, "MANY_VALUES", most)
        assert create_engine("dask", X, None).batch == batch
