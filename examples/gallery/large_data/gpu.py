"""
The GPU engine
==============

``engine="gpu"`` refines 32 offspring at a time with PyTorch, and on an NVIDIA GPU with Triton
kernels. Labels are exact: half precision proposes, double precision decides.

This example needs PyTorch (``pip install ".[gpu]"``). Without a GPU it runs the same engine in
plain PyTorch on the CPU, which is slow and meant for looking around; the output says which one it
was. Without PyTorch it stops after the first step.
"""

import os
from importlib.util import find_spec

import numpy as np
from matplotlib import pyplot as plt

from evomeans import HGMeans

rng = np.random.default_rng(1)
places = rng.uniform(0, 10, (12, 2))
X = places[rng.integers(12, size=1000)] + 0.4 * rng.normal(size=(1000, 2))

has_torch = find_spec("torch") is not None
if not has_torch:
    print("PyTorch is not installed, so there is no engine 'gpu' to show here.")

# %%
# The engine never falls back to the CPU by itself. ``EVOMEANS_GPU_DEVICE`` has to ask for it.

if has_torch:
    import torch

    if not torch.cuda.is_available():
        os.environ["EVOMEANS_GPU_DEVICE"] = "cpu"
        print("There is no GPU here: the engine runs on PyTorch's CPU.")
    else:
        print(f"The engine runs on {torch.cuda.get_device_name()}.")

# %%
# What an engine cannot do is left out and named. Swaps and single moves are abilities of the CPU
# engine.

if has_torch:
    model = HGMeans(12, engine="gpu", max_offspring=96, random_state=0).fit(X)
    reference = HGMeans(12, engine="cpu", random_state=0).fit(X)
    print("left out:", ", ".join(model.missing_abilities_))
    print(f"inertia on engine gpu {model.inertia_:.6f}, on engine cpu {reference.inertia_:.6f}")

# %%
# Offspring arrive in rounds of 32. Each dot is a solution; columns of dots are the rounds.

if has_torch:
    number = model.history_.column("number")
    gap = 100 * (model.history_.column("inertia") / model.inertia_ - 1)
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    left.scatter(number, gap, c=(number - 1) // 32, cmap="viridis", s=14)
    left.set(xlabel="offspring", ylabel="percent above the best", title="Rounds of 32")
    right.scatter(*X.T, c=plt.cm.tab20(model.labels_), s=6)
    right.scatter(*model.cluster_centers_.T, color="k", marker="x")
    right.set(title="Clusters", xticks=[], yticks=[], aspect="equal")
    plt.show()
