"""Packages that not every machine has."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from evomeans.wording import how_to_install


def require_torch() -> Any:
    """Return PyTorch; without it, skip the test, or fail where the GPU engine must be tested."""
    return _require("torch")


def require_triton() -> Any:
    """Return Triton, likewise."""
    return _require("triton")


def _require(name: str) -> Any:
    if importlib.util.find_spec(name) is None:
        reason = f"{name} is not installed: {how_to_install('gpu')}"
        # Where the tests must not be left out, as in .ci/run.
        if os.environ.get("EVOMEANS_GPU_TESTS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return importlib.import_module(name)
