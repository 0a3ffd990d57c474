"""The best k-means clustering instead of a lucky one.

:class:`HGMeans` is a drop-in for :class:`sklearn.cluster.KMeans` that goes on to deeper minima.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from evomeans._version import __version__

if TYPE_CHECKING:
    from evomeans.estimators.constrained import ConstrainedHGMeans
    from evomeans.estimators.hgmeans import HGMeans
    from evomeans.estimators.kernel import KernelHGMeans
    from evomeans.estimators.loading import load
    from evomeans.estimators.spherical import SphericalHGMeans
    from evomeans.estimators.trimmed import TrimmedHGMeans
    from evomeans.search import History, Individual, OffspringRecord, StopReason
    from evomeans.storage.checkpoint import CheckpointError
    from evomeans.storage.model_file import ModelFileError

__all__ = [
    "CheckpointError",
    "ConstrainedHGMeans",
    "HGMeans",
    "History",
    "Individual",
    "KernelHGMeans",
    "ModelFileError",
    "OffspringRecord",
    "SphericalHGMeans",
    "StopReason",
    "TrimmedHGMeans",
    "__version__",
    "load",
]

# Where the public names live. They are loaded on first use (PEP 562): importing the package
# alone, as the command line does, loads neither scikit-learn nor SciPy nor Numba.
_HOMES = {
    "CheckpointError": "evomeans.storage.checkpoint",
    "ConstrainedHGMeans": "evomeans.estimators.constrained",
    "HGMeans": "evomeans.estimators.hgmeans",
    "History": "evomeans.search",
    "Individual": "evomeans.search",
    "KernelHGMeans": "evomeans.estimators.kernel",
    "ModelFileError": "evomeans.storage.model_file",
    "OffspringRecord": "evomeans.search",
    "SphericalHGMeans": "evomeans.estimators.spherical",
    "StopReason": "evomeans.search",
    "TrimmedHGMeans": "evomeans.estimators.trimmed",
    "load": "evomeans.estimators.loading",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
