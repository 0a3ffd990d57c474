"""Engines hold the samples and run K-means on them; they know nothing of genetics."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from evomeans.engines.frame import Frame
from evomeans.engines.nearest import FEWEST, block_size
from evomeans.engines.protocol import Ability, Engine, Order, Refinement
from evomeans.engines.rules import MANY_ROWS
from evomeans.kernels import MOST_COSTS
from evomeans.typing import FloatArray

__all__ = [
    "ENGINE_NAMES",
    "Engine",
    "Order",
    "Refinement",
    "create_engine",
    "is_dask",
    "prepare_calls",
    "prepare_kernels",
]

ENGINE_NAMES = ("auto", "cpu", "gpu", "dask", "reference")
# What this process has prepared already; looking again takes milliseconds.
_prepared: set[tuple[object, ...]] = set()


def create_engine(
    name: str,
    X: Any,
    sample_weight: FloatArray | None,
    *,
    n_jobs: int = 1,
    frame: Frame | None = None,
    searching: bool = True,
) -> Engine:
    """Build the engine ``name`` over validated samples.

    Parameters
    ----------
    name : str
        One of :data:`ENGINE_NAMES`.
    X : (n, d) array or CSR matrix of float32 or float64
        Finite samples in data units. The reference engine takes dense arrays only. Dask arrays are
        held by the Dask engine, whatever the name; all their columns must be in one chunk.
    sample_weight : (n,) array of float64, optional
        None for equal weights. Of a Dask array ``X``, one of Dask in the same chunks.
    n_jobs : int
        Threads.
    frame : Frame, optional
        The coordinates to work in, by default made for ``X``.
    searching : bool
        Whether solutions will be refined, or only assigned: that is worth less preparation.
    """
    if name not in ENGINE_NAMES:
        raise ValueError(f"engine={name!r} must be one of {', '.join(ENGINE_NAMES)}.")
    # Imported here: Numba costs half a second to import, which is spent at the first fit.
    if name == "dask" or is_dask(X):
        return _dask_engine(X, sample_weight, frame, n_jobs)
    if name == "reference":
        from evomeans.engines.reference import ReferenceEngine

        return ReferenceEngine(X, sample_weight, frame=frame)
    if name == "gpu":
        from evomeans.engines.gpu import import_torch

        import_torch()
        from evomeans.engines.gpu.engine import GpuEngine

        return GpuEngine(X, sample_weight, frame=frame, n_jobs=n_jobs, searching=searching)
    from evomeans.engines.cpu import CpuEngine

    return CpuEngine(X, sample_weight, n_jobs=n_jobs, frame=frame, searching=searching)


def prepare_kernels(
    name: str,
    X: Any,
    n_clusters: int,
    abilities: frozenset[Ability],
    *,
    matching: bool = False,
    merging: bool = False,
    momentum: bool = False,
    hurries: bool = False,
) -> None:
    """Compile what a fit needs, unless that was done on this machine before.

    This belongs before the search and its clock. The engine of a Dask array is "auto" or "dask";
    "cpu" if samples of it are searched. The ``abilities`` are what the search uses beyond K-means;
    one that ``hurries`` may begin with a quick start.
    """
    is_cpu = name == "cpu" or (name == "auto" and not is_dask(X))
    # Of sparse samples, the type of the indices matters as well; of k, whether 16 bits hold labels.
    kind = (X.dtype, getattr(X, "indptr", X).dtype, n_clusters < 2**16) if is_cpu else None
    limits = [FEWEST, block_size(n_clusters, X.shape[1]), MANY_ROWS - 1] if is_cpu else []
    size = sum(X.shape[0] > limit for limit in limits)
    merges_many = merging and 2 * n_clusters > MOST_COSTS
    needed = name, kind, size, abilities, matching, merging, merges_many, momentum, hurries
    if needed in _prepared:
        return
    from evomeans.compiled.ready import ready

    calls = []
    if matching:
        from evomeans.kernels import matching as matching_centers

        calls += matching_centers.kernel_calls()
    if merging:
        from evomeans.kernels import ward

        calls += ward.kernel_calls(2 * n_clusters)
    if name != "reference":
        from evomeans.engines.cpu import kernels

        # Other engines leave k-means++ among some samples to that of the CPU.
        rows, used = (X, abilities) if is_cpu else (np.zeros((1, 1)), frozenset({Ability.SEEDING}))
        calls += kernels.calls(
            rows,
            n_clusters,
            used,
            breeding=is_cpu and (matching or merging),
            momentum=is_cpu and momentum,
            hurries=is_cpu and hurries,
        )
    ready(calls)
    _prepared.add(needed)


def prepare_calls(calls: Sequence[Any]) -> None:
    """Compile what an engine with kernels of its own needs, see :func:`prepare_kernels`."""
    from evomeans.compiled.ready import ready

    ready(calls)


def is_dask(X: Any) -> bool:
    """Whether ``X`` is a lazy collection of Dask; does not import Dask to find out."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def _dask_engine(X: Any, sample_weight: Any, frame: Frame | None, n_jobs: int) -> Engine:
    from evomeans.engines.dask import DaskEngine
    from evomeans.engines.dask.blocks import as_dask_array, in_chunks

    # Estimators pass Dask arrays already, which their validation made.
    if not is_dask(X):
        X = as_dask_array(X)
        sample_weight = None if sample_weight is None else in_chunks(X, sample_weight)
    return DaskEngine(X, sample_weight, frame=frame, n_jobs=n_jobs)
