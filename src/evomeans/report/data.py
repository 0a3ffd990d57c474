"""Everything that a report shows, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from numpy.typing import ArrayLike

from evomeans._version import __version__
from evomeans.plotting.samples import check_fitted
from evomeans.report.fit_data import fit_parts
from evomeans.report.path_data import path_parts
from evomeans.report.plain import as_plain, as_text, parameters_of
from evomeans.report.rival import MOST_RUNS
from evomeans.report.samples import samples_of
from evomeans.report.snippet import SampleCode, python_snippet, unknown_samples


def report_data(
    model: Any,
    X: Any,
    *,
    title: str | None = None,
    feature_names: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    sample_weight: Any = None,
    standardization: tuple[ArrayLike, ArrayLike] | None = None,
    sample_names: Sequence[Any] | None = None,
    sample_label: str | None = None,
    notes: Sequence[str] = (),
    code: SampleCode | None = None,
    kmeans_runs: int = MOST_RUNS,
) -> dict[str, Any]:
    """Gather what the report of a fit, or of a path over k, shows.

    Parameters
    ----------
    model : HGMeans, HGMeansPath or another estimator of evomeans
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples it was fitted to.
    title : str, optional
        What was clustered, e.g. the name of a file; by default the name of the estimator.
    feature_names : sequence of str, optional
        Names of the columns; by default those of ``X`` or of the fit, or x0, x1 and so on.
    units : mapping of str to str, optional
        Units of columns, such as ``{"height": "cm"}``.
    settings : mapping, optional
        How it was run, shown as it is; by default the parameters of the model.
    command : str, optional
        The command line that repeats the run.
    sample_weight : float or array-like of shape (n_samples,), optional
        The weights it was fitted with.
    standardization : (mean, scale), optional
        What was subtracted from the columns, and what they were divided by, before the fit. The
        report then shows centres and samples in the original units.
    sample_names : sequence, optional
        What the samples are called; by default the index of a data frame, else their numbers.
    sample_label : str, optional
        What these names are, such as "customer".
    notes : sequence of str, optional
        What the reader should know about the samples.
    code : SampleCode, optional
        How Python gets at the samples, for the code that repeats the fit.
    kmeans_runs : int, default=10
        How many runs of scikit-learn's KMeans the inertia is compared with. Large problems get
        fewer, or none, so that this takes a few seconds at most.

    Returns
    -------
    dict
        Plain JSON of a few hundred kilobytes at most, for :func:`~evomeans.report.render_report`.
    """
    check_fitted(model)
    if not getattr(model, "_is_euclidean", True):
        raise TypeError(
            f"A report shows distances to centres in the units of the samples, which "
            f"{type(model).__name__} does not have."
        )
    samples = samples_of(
        model,
        X,
        feature_names=feature_names,
        units=units,
        sample_weight=sample_weight,
        standardization=standardization,
        sample_names=sample_names,
        sample_label=sample_label,
    )
    is_path = hasattr(model, "k_values_")
    parts = path_parts(model, samples) if is_path else fit_parts(model, samples, kmeans_runs)
    if code is None:
        code = unknown_samples(
            samples.X.shape,
            weighted=sample_weight is not None,
            scaled=standardization is not None,
        )
    settings = parameters_of(model) if settings is None else settings
    return {
        "evomeans": __version__,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "title": as_text(type(model).__name__ if title is None else title),
        "command": as_text(command),
        "python": as_text(python_snippet(model, code)),
        "settings": {as_text(name): as_plain(value) for name, value in settings.items()},
        "notes": [as_text(note) for note in notes],
        **parts,
    }
