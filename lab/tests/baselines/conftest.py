"""Fixtures of the tests of the baselines."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["reference", "cpu"])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Every engine on which the baselines run."""
    if request.param == "cpu":
        request.getfixturevalue("_compiled_kernels")
    return request.param
