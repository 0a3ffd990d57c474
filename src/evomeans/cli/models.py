"""From options to models other than plain k-means."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.cli.failures import UsageError
from evomeans.cli.options import ModelOptions
from evomeans.cli.tables.pairs import read_pairs
from evomeans.cli.tables.table import Table

NO_DISTANCES = (
    "report.html is left out, because it shows distances to centres in the units of the table, "
    "which this model does not have."
)
ROWS_FROM_ZERO = " (Rows are counted from 0 here.)"

CONSTRAINTS = ("size_min", "size_max", "must_link", "cannot_link", "penalty")


def chosen_model(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    """Return the class that the options ask for, and the parameters that only it has."""
    wanted = {
        "constrained": [name for name in CONSTRAINTS if getattr(options, name) is not None],
        "trimmed": ["outliers"] if options.outliers is not None else [],
        "spherical": ["metric"] if options.metric == "cosine" else [],
        "kernel": [name for name in ("kernel", "gamma") if getattr(options, name) is not None],
    }
    asked = {model: [f"--{name.replace('_', '-')}" for name in wanted[model]] for model in wanted}
    asked = {model: names for model, names in asked.items() if names}
    if len(asked) > 1:
        first, second = [names[0] for names in asked.values()][:2]
        raise UsageError(
            f"{first} and {second} cannot be given together, because each makes another model."
        )
    if not asked:
        from evomeans.estimators.hgmeans import HGMeans

        return HGMeans, {}
    return _MAKERS[next(iter(asked))](options)


def _constrained(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.constrained import ConstrainedHGMeans

    if options.penalty is not None and options.must_link is None and options.cannot_link is None:
        raise UsageError("--penalty is for pairs; give --must-link or --cannot-link too.")
    own = {name: getattr(options, name) for name in ("size_min", "size_max", "penalty")}
    return ConstrainedHGMeans, own


def _trimmed(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.trimmed import TrimmedHGMeans

    return TrimmedHGMeans, {"n_outliers": options.outliers}


def _spherical(_: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.spherical import SphericalHGMeans

    return SphericalHGMeans, {}


def _kernel(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.kernel import KernelHGMeans

    if options.kernel is None:
        raise UsageError("--gamma is for --kernel; give both, or none.")
    return KernelHGMeans, {"kernel": options.kernel, "gamma": options.gamma}


_MAKERS = {
    "constrained": _constrained,
    "trimmed": _trimmed,
    "spherical": _spherical,
    "kernel": _kernel,
}


def read_links(options: ModelOptions, table: Table) -> dict[str, np.ndarray[Any, Any]]:
    """Read the pairs of rows that the options name, as arguments of a fit."""
    files = {"must_link": options.must_link, "cannot_link": options.cannot_link}
    return {name: read_pairs(path, table) for name, path in files.items() if path is not None}
