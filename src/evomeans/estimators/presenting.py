"""Fitted estimators for people: the report as a file, and a summary in notebooks."""

from __future__ import annotations

import math
import os
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.engines import is_dask
from evomeans.search.history import bars_svg, line_svg
from evomeans.wording import certainty_text, counted, number_text

CARD = (
    "border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:6px;"
    "padding:10px 14px;display:inline-block;max-width:100%;line-height:1.45"
)


class ReportMixin:
    """A mixin for estimators that present themselves once they are fitted."""

    def report(self, X: Any, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a report of the fit: one HTML file that needs nothing else.

        It needs the extra ``report``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of the fit, in memory.
        path : path-like
            The file, such as "report.html"; one of this name is replaced.
        **options
            What else is known: ``title``, ``sample_weight``, ``feature_names``, ``units``,
            ``sample_names``, ``standardization`` and others, see
            :func:`evomeans.report.report_data`.

        Returns
        -------
        Path
            Where the file is.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import load_iris
        >>> from evomeans import HGMeans
        >>> X = load_iris(as_frame=True).data
        >>> model = HGMeans(3, random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(X, f"{folder}/iris.html", title="Iris").name
        'iris.html'
        """
        from evomeans.report import write_report

        if is_dask(X):
            raise TypeError("report takes samples in memory; pass X.compute() if they fit into it.")
        return write_report(self, X, path, **options)

    def _repr_html_inner(self) -> str:
        """Show the fit, or the parameters if there is none."""
        parameters: str = super()._repr_html_inner()  # type: ignore[misc]
        return fitted_html(self, parameters)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show the fit in notebooks where scikit-learn would show its diagram."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = fitted_html(self, bundle["text/html"])
        return bundle


def fitted_html(model: Any, parameters: str) -> str:
    """Return a card about a fitted model with scikit-learn's view below; unfitted, that alone."""
    if not hasattr(model, "cluster_centers_"):
        return parameters
    rows, pictures = _path_card(model) if hasattr(model, "k_values_") else _card(model)
    cells = "".join(
        f'<tr><td style="text-align:left;opacity:.7;padding:1px 14px 1px 0">{escape(name)}</td>'
        f'<td style="text-align:left;padding:1px 0">{escape(value)}</td></tr>'
        for name, value in rows.items()
        if value
    )
    return (
        f'<div style="{CARD}"><div style="font-weight:600">{escape(type(model).__name__)}, fitted'
        f'</div><table style="border:0;margin:4px 0"><tbody>{cells}</tbody></table>'
        f'{pictures}<details><summary style="cursor:pointer;opacity:.7">Parameters</summary>'
        f"{parameters}</details></div>"
    )


def _card(model: Any) -> tuple[dict[str, str], str]:
    """Describe a clustering, and draw its sizes and how the search came to it."""
    labels = getattr(model, "labels_", None)
    # Labels in Dask have not been computed, and looking at a model must not do it.
    labels = None if labels is None or is_dask(labels) else np.asarray(labels)
    k, d = model.cluster_centers_.shape
    rows = {
        "clusters": counted(k, "cluster"),
        "samples": _samples_text(labels, d),
        "inertia": number_text(float(model.inertia_)),
        "certainty": _certainty(model),
    }
    pictures = ""
    if labels is not None:
        sizes = np.bincount(labels[labels >= 0], minlength=k)
        rows["sizes"] = f"{sizes.min():,} to {sizes.max():,} samples"
        pictures += bars_svg(sizes.tolist(), "Samples by cluster, in the order of their numbers")
    best = [record.best for record in getattr(model, "history_", ())]
    if len(best) > 1 and best[0] > best[-1]:
        pictures += line_svg(best)
    return rows, pictures


def _samples_text(labels: Any, n_features: int) -> str:
    features = counted(n_features, "feature")
    if labels is None:
        return features
    outliers = int(np.count_nonzero(labels < 0))
    left_out = f", {counted(outliers, 'outlier')} left out" if outliers else ""
    return f"{counted(len(labels), 'sample')} with {features}{left_out}"


def _certainty(model: Any) -> str:
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        return str(certificate)
    reason = str(getattr(model, "stop_reason_", ""))
    # A baseline does not look for its best solution again.
    known = hasattr(model, "n_rediscoveries_")
    certainty = getattr(model, "certainty_", math.nan)
    return certainty_text(reason, model.n_rediscoveries_, certainty) if known else ""


def _path_card(path: Any) -> tuple[dict[str, str], str]:
    """Describe a path, and draw its inertia over k."""
    ks = [int(k) for k in path.k_values_]
    select = getattr(path.select, "name", path.select)
    suggested = [f"{name} {k}" for name, k in path._suggested.items() if k is not None]
    rows = {
        "clusters": f"{ks[0]} to {ks[-1]}",
        "chosen": f"k = {path.best_k_} by {select}" if path.best_k_ is not None else "none",
        "suggested": ", ".join(suggested),
        "certainty": path._certainty(),
    }
    inertias = [float(value) for value in path.inertias_]
    return rows, bars_svg(inertias, "Inertia by the number of clusters")
