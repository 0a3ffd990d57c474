"""Small problems on the device, and the two implementations of the engine's steps."""

from __future__ import annotations

import os
from types import ModuleType

import pytest

from optional import require_torch, require_triton


@pytest.fixture
def torch_ops() -> ModuleType:
    require_torch().set_num_threads(1)
    from evomeans.engines.gpu import torch_ops

    return torch_ops


@pytest.fixture
def triton_ops() -> ModuleType:
    """Compiled where there is a GPU, interpreted elsewhere."""
    if not require_torch().cuda.is_available():
        # Before the first import: Triton's own functions are interpreted or compiled as well.
        os.environ["TRITON_INTERPRET"] = "1"
    require_triton()
    from evomeans.engines.gpu import triton_ops

    return triton_ops
