"""From data to the page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from evomeans.report import charts
from evomeans.report.schema import check_report_data
from evomeans.report.theme import theme_css
from evomeans.wording import (
    advice_text,
    counted,
    duration_text,
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
        From :func:`~evomeans.report.report_data`, perhaps by way of a JSON file.

    Returns
    -------
    str
        To be written as UTF-8.
    """
    check_report_data(data)
    jinja2 = _jinja2()
    style, script = theme_css() + "\n" + _part("page.css"), _part("page.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        number=_unbroken(number_text),
        percent=_unbroken(percent_text),
        duration=_unbroken(duration_text),
        plain=_plain_text,
    )
    run = data["run"]
    ended = (
        run["stop_reason"],
        run["n_offspring"],
        run["n_offspring"] - run["last_improvement"],
        run.get("n_rediscoveries", 0),
    )
    markup = jinja2.utils.markupsafe.Markup
    page: str = environment.from_string(_part("page.html.j2")).render(
        data=data,
        run=run,
        style=markup(style),
        script=markup(script),
        policy=_policy(style, script),
        stop=stop_text(*ended),
        advice=advice_text(*ended),
        charts={name: markup(chart) for name, chart in _charts(data).items()},
        rows=_rows(data, markup),
        cells=markup(script_json(_cells(data["profiles"]))),
        counted=counted,
    )
    return page


def _jinja2() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            'Reports need jinja2; install it with: pip install "evomeans[report]"'
        ) from error
    return jinja2


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


def script_json(value: Any) -> str:
    """Write JSON that can stand in a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _unbroken(write: Callable[..., str]) -> Callable[..., str]:
    """Return a filter whose text never breaks at the end of a line."""
    return lambda *args, **options: write(*args, **options).replace(" ", "\N{NO-BREAK SPACE}")


def _plain_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _charts(data: Mapping[str, Any]) -> dict[str, str]:
    made = {
        "offspring": "",
        "seconds": "",
        "scatter": charts.scatter_chart(data["projection"], data["clusters"]),
        "sizes": charts.size_chart(data["clusters"]),
        "heat": charts.heat_map(data["profiles"]),
        "legend": charts.heat_legend(charts.heat_reach(data["profiles"])),
    }
    courses = data["convergence"]
    if courses["offspring"]["x"] and courses["seconds"]["x"]:
        made["offspring"] = charts.convergence_chart(courses["offspring"], "offspring made")
        made["seconds"] = charts.convergence_chart(courses["seconds"], "time (seconds)")
    return made


def _rows(data: Mapping[str, Any], markup: Any) -> list[dict[str, Any]]:
    """Make the rows of the table of clusters."""
    clusters = data["clusters"]
    total = sum(cluster["size"] for cluster in clusters) or 1
    largest = max(cluster["size"] for cluster in clusters) / total
    loosest = max(cluster["inertia_share"] for cluster in clusters)
    return [
        {
            **cluster,
            "number": i,
            "share": cluster["size"] / total,
            "share_bar": markup(
                charts.share_bar(cluster["size"] / total, largest, cluster["color"])
            ),
            "inertia_bar": markup(
                charts.share_bar(cluster["inertia_share"], loosest, cluster["color"])
            ),
        }
        for i, cluster in enumerate(clusters)
    ]


def _cells(profiles: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what the page tells about the cell of the heat map under the pointer."""
    return {name: profiles[name] for name in ("columns", "clusters", "values", "centers")}
