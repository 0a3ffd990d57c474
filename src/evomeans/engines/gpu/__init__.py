"""The GPU engine: batches of solutions refined together, in PyTorch and Triton.

This module names the device, or what is missing for it, without importing any package.
"""

import importlib.util
import os
from typing import Any

from evomeans.wording import how_to_install

VARIABLE = "EVOMEANS_GPU_DEVICE"
INSTALL = how_to_install("gpu")


class GpuNotAvailableError(RuntimeError):
    """What the GPU engine needs is not there; the text names it."""


def import_torch() -> Any:
    """Return the module torch, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        raise GpuNotAvailableError(
            f"engine='gpu' needs PyTorch, which is not installed: {INSTALL}."
        ) from error
    return torch


def chosen_device() -> Any:
    """Return the device to work on.

    It is the current CUDA device, or the one that the environment variable EVOMEANS_GPU_DEVICE
    names: "cuda:1", or "cpu" to run the engine, slowly, without a GPU. Nothing else falls back to
    the CPU.
    """
    torch = import_torch()
    name = os.environ.get(VARIABLE) or "cuda"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise GpuNotAvailableError(
            f"{VARIABLE}={name!r} is not a device that PyTorch knows; use cuda, cuda:1 or cpu."
        ) from error
    if device.type == "cpu":
        return device
    if device.type != "cuda":
        raise GpuNotAvailableError(f"{VARIABLE}={name!r}: the engine runs on cuda and cpu only.")
    if not torch.cuda.is_available():
        reason = (
            "this build of PyTorch has no CUDA; install one that has"
            if torch.version.cuda is None
            else "PyTorch sees no CUDA device; look at nvidia-smi and the driver"
        )
        raise GpuNotAvailableError(
            f"engine='gpu' needs an NVIDIA GPU: {reason} (PyTorch {torch.__version__}). "
            "Choose engine='cpu' otherwise."
        )
    if device.index is not None and device.index >= torch.cuda.device_count():
        raise GpuNotAvailableError(
            f"{VARIABLE}={name!r}, but there are only {torch.cuda.device_count()} CUDA devices."
        )
    if importlib.util.find_spec("triton") is None:
        raise GpuNotAvailableError(f"engine='gpu' needs Triton, which is not installed: {INSTALL}.")
    return torch.device(
        "cuda", torch.cuda.current_device() if device.index is None else device.index
    )


def described_device() -> str:
    """Say in a line whether the engine can run here, and on what."""
    try:
        device = chosen_device()
    except GpuNotAvailableError as error:
        return f"not available: {error}"
    if device.type == "cpu":
        return f"available: on the CPU, slow, since {VARIABLE}=cpu asks for it"
    properties = import_torch().cuda.get_device_properties(device)
    return f"available: {properties.name}, {properties.total_memory / 2**30:.0f} GiB"
