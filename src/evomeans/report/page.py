"""From data to the page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from evomeans.report.data import FORMAT, VERSION
from evomeans.report.figures import report_figures
from evomeans.report.path_data import FORMAT as PATH_FORMAT
from evomeans.report.path_page import check_version, path_figures
from evomeans.report.theme import theme_css
from evomeans.wording import (
    advice_text,
    counted,
    duration_text,
    levels_text,
    number_text,
    percent_text,
    stop_text,
)


def render_report(data: Mapping[str, Any]) -> str:
    """Make the page of a run: one HTML document that needs nothing else.

    Names and texts in ``data`` are shown as they are and can do nothing: all text is escaped, and
    the page forbids every script and style but its own.

    Parameters
    ----------
    data : mapping
        From :func:`~evomeans.report.report_data` or :func:`~evomeans.report.path_report_data`,
        perhaps by way of a JSON file.

    Returns
    -------
    str
        To be written as UTF-8.
    """
    is_path = isinstance(data, Mapping) and data.get("format") == PATH_FORMAT
    if not isinstance(data, Mapping) or not (is_path or data.get("format") == FORMAT):
        raise ValueError(f'This is not the data of a report: "format" should be {FORMAT!r}.')
    if is_path:
        check_version(data)
    elif data.get("version") != VERSION:
        raise ValueError(
            f"This report data has version {data.get('version')!r}; this evomeans reads version "
            f"{VERSION}. Run the fit again, or use the evomeans that wrote the data."
        )
    jinja2 = _jinja2()
    broken = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    try:
        return _path_page(data, jinja2) if is_path else _page(data, jinja2)
    except (*broken, jinja2.TemplateError) as error:
        raise ValueError(
            f"No report can be made from this data: {type(error).__name__}: {error}."
        ) from error


def _jinja2() -> Any:
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'Reports need {error.name}; install it with: pip install "evomeans[report]"'
        ) from error
    return jinja2


def _page(data: Mapping[str, Any], jinja2: Any) -> str:
    run = data["run"]
    since_improvement = run["n_offspring"] - run["last_improvement"]
    ended = (run["stop_reason"], run["n_offspring"], since_improvement, run["n_rediscoveries"])
    return _rendered(
        jinja2,
        "page",
        data,
        report_figures(data),
        run=run,
        stop=f"{stop_text(*ended)} {levels_text(run.get('levels', ()))}".strip(),
        advice=advice_text(*ended),
    )


def _path_page(data: Mapping[str, Any], jinja2: Any) -> str:
    return _rendered(jinja2, "path", data, path_figures(data))


def _rendered(
    jinja2: Any, name: str, data: Mapping[str, Any], figures: Mapping[str, Any], **more: Any
) -> str:
    """Render a template with its script and with figures, which are safe as they are."""
    markup = jinja2.utils.markupsafe.Markup
    style = theme_css() + "\n" + _part("page.css")
    script = _part("common.js") + _part(f"{name}.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        number=_unbroken(number_text),
        percent=_unbroken(percent_text),
        duration=_unbroken(duration_text),
        plain=_plain_text,
    )

    def safe(figure: Any) -> Any:
        if isinstance(figure, Mapping):
            return {key: safe(value) for key, value in figure.items()}
        return markup(figure)

    page: str = environment.from_string(_part(f"{name}.html.j2")).render(
        data=data,
        style=markup(style),
        script=markup(script),
        policy=_policy(style, script),
        figures=safe(figures),
        counted=counted,
        **more,
    )
    page.encode()  # raises on lone surrogates, which no file can hold
    return page


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
