"""Engines by name."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines import ENGINE_NAMES, create_engine


def test_every_name_makes_an_engine_over_the_samples(engine_name) -> None:
    engine = create_engine(engine_name, np.zeros((4, 2)), None)
    assert engine.n_samples == 4
    assert engine.batch >= 1


def test_auto_is_the_cpu_engine_and_never_a_gpu() -> None:
    engine = create_engine("auto", np.zeros((4, 2)), None)
    assert type(engine) is type(create_engine("cpu", np.zeros((4, 2)), None))
    assert set(ENGINE_NAMES) == {"auto", "cpu", "gpu", "dask", "reference"}


def test_another_name_is_refused_with_the_list_of_names() -> None:
    with pytest.raises(ValueError, match=r"engine='gpux' must be one of auto, cpu, gpu, dask, ref"):
        create_engine("gpux", np.zeros((4, 2)), None)
