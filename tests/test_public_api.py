"""The names that `import evomeans` offers, and the time it takes."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

import evomeans


def test_public_names():
    """Everything announced exists, and nothing else is shown."""
    assert set(evomeans.__all__) == {
        "Certificate",
        "CertificateFileError",
        "CheckpointError",
        "ExactKMeans",
        "ConstrainedHGMeans",
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
    }
    assert dir(evomeans) == sorted(evomeans.__all__)
    for name in evomeans.__all__:
        assert getattr(evomeans, name) is not None
    with pytest.raises(AttributeError, match="module 'evomeans' has no attribute 'KMeans'"):
        _ = evomeans.KMeans


def test_star_import():
    """`from evomeans import *` brings the public names."""
    names: dict[str, object] = {}
    exec("from evomeans import *", names)
    assert names["HGMeans"] is evomeans.HGMeans


def test_version():
    """The version of the package is that of the distribution."""
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", evomeans.__version__)
    assert version("evomeans") == evomeans.__version__


def loaded_modules(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after ``code``."""
    code += "; import sys; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(result.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    """`import evomeans` loads neither scikit-learn, SciPy, NumPy nor Numba."""
    loaded = loaded_modules("import evomeans; evomeans.__version__; dir(evomeans)")
    assert "evomeans" in loaded
    assert not loaded & {"sklearn", "scipy", "numpy", "numba", "evomeans.estimators.hgmeans"}


def test_importing_the_estimator_does_not_load_numba():
    """Numba is loaded by the first fit: building an estimator, `clone` and `repr` do without."""
    loaded = loaded_modules("from evomeans import HGMeans; repr(HGMeans.fast(3))")
    assert "sklearn" in loaded
    assert not loaded & {"numba", "llvmlite", "polars", "matplotlib"}


@pytest.mark.parametrize(
    "module",
    [
        "evomeans.estimators.certifying",
        "evomeans.estimators.exact_kmeans",
        "evomeans.estimators.hgmeans",
        "evomeans.estimators.path",
        "evomeans.estimators.searching",
        "evomeans.estimators.constrained",
        "evomeans.estimators.models",
        "evomeans.exact.line",
        "evomeans.metrics",
    ],
)
def test_examples_in_docstrings(module):
    """They run, and print what they say."""
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0
