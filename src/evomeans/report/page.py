"""From data to the page, and to a file."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from evomeans.files import write_atomically
from evomeans.report.data import FORMAT, PATH_FORMAT, PATH_VERSION, VERSION, report_data
from evomeans.report.figures import path_figures, report_figures, theme_css
from evomeans.wording import (
    advice_text,
    certain_percent,
    counted,
    duration_text,
    how_to_install,
    levels_text,
    number_text,
    percent_text,
    probability_text,
    stop_text,
)


def render_report(data: Mapping[str, Any]) -> str:
    """Make the page of a run: one HTML document that needs nothing else.

    Names and texts in ``data`` are shown as they are and can do nothing: all text is escaped, and
    the page forbids every script and style but its own.

    Parameters
    ----------
    data : mapping
        From :func:`~evomeans.report.report_data`, perhaps by way of a JSON file.

    Returns
    -------
    str
        To be written as UTF-8.
    """
    versions = {FORMAT: VERSION, PATH_FORMAT: PATH_VERSION}
    kind = data.get("format") if isinstance(data, Mapping) else None
    if kind not in versions:
        raise ValueError(f'This is not the data of a report: "format" should be {FORMAT!r}.')
    if data.get("version") != versions[kind]:
        raise ValueError(
            f"This report data has version {data.get('version')!r}; this evomeans reads version "
            f"{versions[kind]}. Run the fit again, or use the evomeans that wrote the data."
        )
    is_path = kind == PATH_FORMAT
    jinja2 = check_packages()
    broken = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    try:
        if is_path:
            return _rendered(jinja2, "path", data, path_figures(data))
        return _page(data, jinja2)
    except (*broken, jinja2.TemplateError) as error:
        raise ValueError(
            f"No report can be made from this data: {type(error).__name__}: {error}."
        ) from error


def check_packages() -> Any:
    """Return jinja2, or say what is not installed."""
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"Reports need {error.name}, which is not installed: {how_to_install('report')}."
        ) from error
    return jinja2


def _page(data: Mapping[str, Any], jinja2: Any) -> str:
    run = data["run"]
    since_improvement = run["n_offspring"] - run["last_improvement"]
    ended = (run["stop_reason"], run["n_offspring"], since_improvement, run["n_rediscoveries"])
    certainty = run.get("certainty")
    sure = "" if certainty is None else probability_text(certainty)
    stop = " ".join(filter(None, [stop_text(*ended), sure, levels_text(run["levels"])]))
    return _rendered(
        jinja2,
        "page",
        data,
        report_figures(data),
        run=run,
        stop=stop if ended[0] else "",
        advice=advice_text(*ended),
        csv=labels_csv(data["labels"]),
        run_id=run_id(data),
    )


def run_id(data: Mapping[str, Any]) -> str:
    """Return what tells a run from others, so that a page finds the names of its clusters again."""
    sizes = [each["size"] for each in data["clusters"]]
    run = f"{data['created']} {data['title']} {data['run']['inertia']} {sizes}"
    return hashlib.sha256(run.encode()).hexdigest()[:16]


def labels_csv(labels: Mapping[str, Any] | None) -> str | None:
    """Write the cluster of each sample as CSV, if the data has them."""
    if labels is None:
        return None
    clusters = labels["clusters"]
    names = labels["names"] or range(labels["first"], labels["first"] + len(clusters))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([labels["label"], "cluster"])
    writer.writerows(zip(names, clusters, strict=True))
    return text.getvalue()


def _rendered(
    jinja2: Any, name: str, data: Mapping[str, Any], figures: Mapping[str, Any], **more: Any
) -> str:
    """Render a template with its script and with figures, which are safe as they are."""
    markup = jinja2.utils.markupsafe.Markup
    style = theme_css() + "\n" + _part("page.css")
    script = _part("common.js") + _part(f"{name}.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_unbroken(number_text),
        percent=_unbroken(percent_text),
        duration=_unbroken(duration_text),
        plain=_plain_text,
        above=_unbroken(above_text),
    )

    def safe(figure: Any) -> Any:
        if isinstance(figure, Mapping):
            return {key: safe(value) for key, value in figure.items()}
        return markup(figure)

    page: str = (
        environment.get_template(f"{name}.html.j2")
        .render(
            data=data,
            kind="report" if name == "page" else "path report",
            style=markup(style),
            script=markup(script),
            policy=_policy(style, script),
            figures=safe(figures),
            counted=counted,
            certain_percent=certain_percent,
            **more,
        )
        .lstrip()
    )
    page.encode()  # raises on lone surrogates, which no file can hold
    return page


def above_text(inertia: float, best: float) -> str:
    """Write how far an inertia lies above another one, in percent."""
    gap = inertia / best - 1.0 if best > 0 else 0.0
    if gap < 1e-8:
        return "the same" if best > 0 or inertia == best else ""
    return f"{percent_text(gap)} above"


def _part(name: str) -> str:
    return files("evomeans.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Allow this very style and script, and nothing else at all."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; base-uri 'none'; form-action 'none'"
    )


def _unbroken(write: Callable[..., str]) -> Callable[..., str]:
    """Return a filter whose text never breaks at the end of a line."""
    return lambda *args, **options: write(*args, **options).replace(" ", "\N{NO-BREAK SPACE}")


def _plain_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


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
