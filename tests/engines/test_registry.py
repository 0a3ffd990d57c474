"""Engines by name."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines import ENGINE_NAMES, create_engine


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_every_name_makes_an_engine_over_the_samples(name) -> None:
    engine = create_engine(name, np.zeros((4, 2)), None)
    assert engine.n_samples == 4
    assert engine.batch >= 1


def test_another_name_is_refused_with_the_list_of_names() -> None:
    with pytest.raises(ValueError, match="engine='gpux' must be one of auto, cpu, dask, ref"):
        create_engine("gpux", np.zeros((4, 2)), None)
