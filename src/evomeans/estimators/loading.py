"""Model files of every estimator."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from evomeans.estimators.persistence import restored_model

# Imported late: a model is loaded without the code of all others.
HOMES = {
    "HGMeans": "evomeans.estimators.hgmeans",
    "ConstrainedHGMeans": "evomeans.estimators.constrained",
    "SphericalHGMeans": "evomeans.estimators.spherical",
    "TrimmedHGMeans": "evomeans.estimators.trimmed",
    "KernelHGMeans": "evomeans.estimators.kernel",
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :meth:`HGMeans.save`, or that of another model, wrote.

    It predicts with the same bits, can be cloned and refitted, and with ``warm_start=True`` its
    next fit begins with the population it has. Nothing in the file is run: loading a file from a
    stranger can fail, but does no harm.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : HGMeans or another estimator of evomeans
        Of the class that was saved. Some parameters are not stored. ``checkpoint`` and
        ``observers`` are None, and so is ``random_state`` if it was not an int. ``strategy`` is
        "deep", the default, if the saved model had one of its own.

    Raises
    ------
    ModelFileError
        If the file is not a valid model file. It is a ValueError.
    OSError
        If there is no such file, or it cannot be read.
    """
    return restored_model({name: partial(_class, name) for name in HOMES}, path)


def _class(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(HOMES[name]), name)
    return found
