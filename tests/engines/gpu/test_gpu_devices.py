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


@pytest.mark.parametrize(("cuda", "text"), [(None, "has no CUDA"), ("13.0", "sees no CUDA device")])
def test_without_a_device_the_reason_is_named(monkeypatch, cuda, text) -> None:
    torch = require_torch()
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(GpuNotAvailableError, match=f"NVIDIA GPU: .*{text}.*engine='cpu'"):
        HGMeans(2, engine="gpu").fit(np.eye(4))


@pytest.mark.parametrize(
    ("name", "text"),
    [("abacus", "not a device that PyTorch knows"), ("meta", "on cuda and cpu only")],
)
def test_an_unknown_device_is_refused(monkeypatch, name, text) -> None:
    require_torch()
    monkeypatch.setenv(VARIABLE, name)
    with pytest.raises(GpuNotAvailableError, match=text):
        chosen_device()


def test_a_device_that_is_not_there_is_refused(monkeypatch) -> None:
    torch = require_torch()
    monkeypatch.setenv(VARIABLE, "cuda:7")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(GpuNotAvailableError, match="only 2 CUDA devices"):
        chosen_device()


def test_the_cpu_is_used_if_asked_for(monkeypatch) -> None:
    require_torch()
    monkeypatch.setenv(VARIABLE, "cpu")
    assert chosen_device().type == "cpu"
    assert "EVOMEANS_GPU_DEVICE=cpu asks for it" in described_device()
