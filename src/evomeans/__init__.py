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
    from evomeans.estimators.path import HGMeansPath
    from evomeans.estimators.persistence import ModelFileError, load
    from evomeans.estimators.spherical import SphericalHGMeans
    from evomeans.estimators.trimmed import TrimmedHGMeans
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
    "Certificate": "evomeans.exact.certificate",
    "CertificateFileError": "evomeans.storage.certificate_file",
    "CheckpointError": "evomeans.storage.checkpoint",
    "ExactKMeans": "evomeans.estimators.exact_kmeans",
    "ConstrainedHGMeans": "evomeans.estimators.constrained",
    "HGMeans": "evomeans.estimators.hgmeans",
    "HGMeansPath": "evomeans.estimators.path",
    "History": "evomeans.search",
    "Individual": "evomeans.search",
    "ModelFileError": "evomeans.estimators.persistence",
    "OffspringRecord": "evomeans.search",
    "PathRecord": "evomeans.path",
    "StopReason": "evomeans.search",
    "certify": "evomeans.estimators.certifying",
    "load_certificate": "evomeans.storage.certificate_file",
    "save_certificate": "evomeans.storage.certificate_file",
    "SphericalHGMeans": "evomeans.estimators.spherical",
    "TrimmedHGMeans": "evomeans.estimators.trimmed",
    "load": "evomeans.estimators.persistence",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
