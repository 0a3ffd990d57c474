"""From a model to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from evomeans.files import write_atomically
from evomeans.report.data import report_data
from evomeans.report.page import check_packages, render_report


def write_report(model: Any, X: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write the report of a fitted model as one HTML file.

    Parameters
    ----------
    model : HGMeans, HGMeansPath or another estimator of evomeans
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples it was fitted to.
    path : path-like
        The file; one of this name is replaced.
    **options
        As in :func:`~evomeans.report.report_data`.

    Returns
    -------
    Path
        Where it is.
    """
    # Before the figures are gathered, which may take a while.
    check_packages()
    file = Path(path)
    page = render_report(report_data(model, X, **options))
    write_atomically(file, page.encode("utf-8"))
    return file
