"""Without a GPU, or what it needs, the engine says what is missing and falls back to nothing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from evomeans import HGMeans
from evomeans.engines import create_engine
from evomeans.engines.gpu import VARIABLE, GpuNotAvailableError, chosen_device, described_device
from optional import require_torch


def test_without_pytorch_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    hint = r"PyTorch.*pip install '.\[gpu\]'.*'evomeans\[gpu\]'"
    for ask in (chosen_device, lambda: create_engine("gpu", np.zeros((4, 2)), None)):
        with pytest.raises(GpuNotAvailableError, match=hint):
            ask()
    assert described_device().startswith("not available: engine='gpu' needs PyTorch")


@pytest.mark.parametrize(
    ("name", "n_devices", "cuda", "text"),
    [
        ("", 0, None, "NVIDIA GPU: .*has no CUDA.*engine='cpu'"),
        ("", 0, "13.0", "NVIDIA GPU: .*sees no CUDA device.*engine='cpu'"),
        ("abacus", 1, "13.0", "not a device that PyTorch knows"),
        ("meta", 1, "13.0", "on cuda and cpu only"),
        ("cuda:7", 2, "13.0", "only 2 CUDA devices"),
    ],
)
def test_without_a_device_the_reason_is_named(monkeypatch, name, n_devices, cuda, text) -> None:
    torch = require_torch()
    monkeypatch.setenv(VARIABLE, name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: n_devices > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_devices)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(GpuNotAvailableError, match=text):
        HGMeans(2, engine="gpu").fit(np.eye(4))


def test_the_cpu_is_used_if_asked_for(monkeypatch) -> None:
    require_torch()
    monkeypatch.setenv(VARIABLE, "cpu")
    assert chosen_device().type == "cpu"
    assert "EVOMEANS_GPU_DEVICE=cpu asks for it" in described_device()
