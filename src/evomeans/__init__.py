"""Near-optimal k-means clusterings by HG-means, a genetic search.

:class:`HGMeans` is a drop-in for :class:`sklearn.cluster.KMeans` that continues to better minima.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from evomeans._version import __version__

if TYPE_CHECKING:
    from evomeans.estimators.certifying import certify
    from evomeans.estimators.constrained import ConstrainedHGMeans
    from evomeans.estimators.exact_kmeans import ExactKMeans
    from evomeans.estimators.hgmeans import HGMeans
    from evomeans.estimators.models import SphericalHGMeans, TrimmedHGMeans
    from evomeans.estimators.path import HGMeansPath
    from evomeans.estimators.persistence import ModelFileError, load
    from evomeans.exact.certificate import Certificate
    from evomeans.path import PathRecord
    from evomeans.search import History, Individual, OffspringRecord, StopReason
    from evomeans.storage.certificate_file import (
        CertificateFileError,
        load_certificate,
        save_certificate,
    )
    from evomeans.storage.checkpoint import CheckpointError

__all__ = [
    "Certificate",
    "CertificateFileError",
    "CheckpointError",
    "ConstrainedHGMeans",
    "ExactKMeans",
    "HGMeans",
    "HGMeansPath",
    "History",
    "Individual",
    "ModelFileError",
    "OffspringRecord",
    "PathRecord",
    "SphericalHGMeans",
    "StopReason",
    "TrimmedHGMeans",
    "__version__",
    "certify",
    "load",
    "load_certificate",
    "save_certificate",
]

# Where the public names live. They are loaded on first use (PEP 562): importing the package
# alone, as the command line does, loads neither scikit-learn nor SciPy nor Numba.
_HOMES = {
    "evomeans.estimators.certifying": ("certify",),
    "evomeans.estimators.constrained": ("ConstrainedHGMeans",),
    "evomeans.estimators.exact_kmeans": ("ExactKMeans",),
    "evomeans.estimators.hgmeans": ("HGMeans",),
    "evomeans.estimators.models": ("SphericalHGMeans", "TrimmedHGMeans"),
    "evomeans.estimators.path": ("HGMeansPath",),
    "evomeans.estimators.persistence": ("ModelFileError", "load"),
    "evomeans.exact.certificate": ("Certificate",),
    "evomeans.path": ("PathRecord",),
    "evomeans.search": ("History", "Individual", "OffspringRecord", "StopReason"),
    "evomeans.storage.certificate_file": (
        "CertificateFileError",
        "load_certificate",
        "save_certificate",
    ),
    "evomeans.storage.checkpoint": ("CheckpointError",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
