"""From data to the page, and to a file."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from evomeans import wording
from evomeans.files import write_atomically
from evomeans.plotting import cluster_plots, path_plots, search_plots
from evomeans.plotting.axes import DIFFERENCES, FAINT, INK, MUTED, OKABE_ITO, PAPER, calm, diverging
from evomeans.report.data import FIT, PATH, VERSIONS, from_json, report_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe and Ito's colours, made lighter where they would drown in a dark page.
CLUSTERS_DARK = (
    "#2F92DB",
    "#E69F00",
    "#14B386",
    "#EE7429",
    "#9CD6F7",
    "#DB8EB9",
    "#A9AFB7",
    "#F0E442",
)
DIFFERENCES_DARK = diverging("#4fb0ec", "#272c33", "#f58a3c")

COLORS = {
    "page": (PAPER, "#14171b"),
    "card": ("#f6f7f9", "#1c2026"),
    "line": (FAINT, "#323840"),
    "ink": (INK, "#e8eaed"),
    "muted": (MUTED, "#a3abb5"),
    **{f"c{i}": pair for i, pair in enumerate(zip(OKABE_ITO, CLUSTERS_DARK, strict=True))},
    **{f"l{i}": pair for i, pair in enumerate(zip(DIFFERENCES, DIFFERENCES_DARK, strict=True))},
}
"""Name of a CSS variable, and its value in light and in dark."""

VARIABLES = {light.lower(): f"var(--{name})" for name, (light, _) in COLORS.items()}
"""CSS variables that replace the colours of plots, which then follow the page."""


def theme_css() -> str:
    """Return the colours as CSS: those of the system, of the reader's choice, light on paper."""
    values = "".join(f"--{name}:light-dark({a},{b});" for name, (a, b) in COLORS.items())
    return (
        f":root{{color-scheme:light dark;{values}}}\n"
        ":root[data-theme=light]{color-scheme:light}\n"
        ":root[data-theme=dark]{color-scheme:dark}\n"
        "@media print{:root,:root[data-theme]{color-scheme:light}}\n"
        + "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(len(OKABE_ITO)))
    )


# Inches; small enough for a phone, where texts must stay readable.
WIDE, SQUARE, PAGE_WIDE, GRID_ROW = (5.2, 3.5), (5.2, 4.5), (10.6, 4.2), 2.2
LONG_NUMBER = re.compile(r"\d+\.\d{3,}")


@contextmanager
def own_style() -> Iterator[None]:
    """Draw in the style of the page, whatever the user's matplotlib is set to."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "figure.constrained_layout.use": True,
                "figure.facecolor": "none",
                "axes.facecolor": "none",
                "svg.fonttype": "none",
            }
        )
        # The browser has fonts for letters that those of matplotlib lack.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def report_figures(data: Mapping[str, Any]) -> dict[str, str]:
    """Draw the plots of a fit as ``svg`` elements; no convergence if all solutions are equal."""
    figures = {}
    for x, given in data["convergence"].items():
        course = from_json(search_plots.Convergence, given)
        if course.gap.any():
            ax = search_plots.draw_convergence(new_axes(WIDE), course, x)
            figures[x] = as_svg(ax, f"Best inertia so far by {x}, in {course.unit}")
    return figures | cluster_figures(data)


def path_figures(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the curves, the clustergram, and for every k its map, sizes and centres."""
    from matplotlib.figure import Figure

    curves = from_json(path_plots.PathCurves, data["curves"])
    size = PAGE_WIDE[0], GRID_ROW * path_plots.grid_rows(curves)
    grid = path_plots.draw_path(Figure(size), curves)
    label = "Inertia and criteria over the number of clusters"
    figures: dict[str, Any] = {"curves": as_svg(grid.axes[0], label)}
    if data["clustergram"] is not None:
        flows = from_json(path_plots.Clustergram, data["clustergram"])
        ax = path_plots.draw_clustergram(new_axes(PAGE_WIDE), flows, curves.best_k)
        figures["clustergram"] = as_svg(ax, "How clusters divide as their number grows")
    models = data["models"].items()
    return figures | {"models": {k: cluster_figures(one, f", k = {k}") for k, one in models}}


def cluster_figures(data: Mapping[str, Any], which: str = "") -> dict[str, str]:
    """Draw the clusters; ``which`` tells figures of several models apart."""
    plane = from_json(cluster_plots.Projection, data["projection"])
    centers = from_json(cluster_plots.Profiles, data["profiles"])
    colors = np.array([each["color"] for each in data["clusters"]], np.intp)
    x_name, y_name = plane.axis_names
    return {
        "plane": as_svg(
            cluster_plots.draw_clusters(new_axes(SQUARE), plane, colors),
            f"Samples by cluster{which}, on {x_name} and {y_name}",
        ),
        "sizes": as_svg(
            cluster_plots.draw_sizes(new_axes(SQUARE), plane.sizes, colors),
            f"Number of samples by cluster{which}",
        ),
        "profiles": as_svg(
            cluster_plots.draw_profiles(new_axes(cluster_plots.profiles_size(centers)), centers),
            f"Difference of each centre from the mean{which}: a row for each cluster",
            own_width=True,
        ),
    }


def new_axes(size: tuple[float, float]) -> Axes:
    """Return axes in a figure of their own."""
    from matplotlib.figure import Figure

    return calm(Figure(size).subplots())


def as_svg(ax: Axes, label: str, own_width: bool = False) -> str:
    """Write a figure as an element of the page, as wide as its place unless it has a width."""
    from markupsafe import Markup
    from matplotlib import rcParams
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = ax.get_figure(root=True)
    assert figure is not None
    for artist in figure.findobj():
        artist.set_rasterized(False)
    file = BytesIO()
    # The salt makes ids the same every time, and different in every figure.
    rcParams["svg.hashsalt"] = label
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(file, metadata=nothing)  # type: ignore[no-untyped-call]
    root = ElementTree.fromstring(file.getvalue())
    root.remove(root[0])  # its style sheet
    for element in root.iter():
        _adapt(element)
    shapes = {f"#{shape.get('id')}": shape.get("d", "") for shape in root.iter("path")}
    for group in list(root.iter("g")):
        _join_dots(group, shapes)
    for name in ("width", "height", "version"):
        del root.attrib[name]
    root.attrib |= {"class": "chart", "role": "img", "aria-label": label}
    root.set("stroke-linejoin", "round")
    if own_width:
        root.set("width", f"{100 * figure.get_figwidth():.0f}")
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _adapt(element: ElementTree.Element) -> None:
    """Turn styles into attributes, colours into those of the page, ids into cluster numbers."""
    element.tag = element.tag.rpartition("}")[2]
    given, element.attrib = element.attrib, {}
    for name, value in given.items():
        if name == "style":
            styles = dict(part.split(": ", 1) for part in value.split("; "))
            styles.pop("font-family", None)  # the page has its own
            element.attrib |= {key: VARIABLES.get(one, one) for key, one in styles.items()}
        elif element.tag != "g" or name != "id":
            element.set(name.rpartition("}")[2], LONG_NUMBER.sub(_shortened, value))
        elif value.startswith(cluster_plots.CLUSTER_ID):
            cluster = value.removeprefix(cluster_plots.CLUSTER_ID)
            element.attrib |= {"class": "c", "data-cluster": cluster}


def _shortened(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _join_dots(group: ElementTree.Element, shapes: Mapping[str, str]) -> None:
    """Make one path of the dots without an outline: 5,000 elements become one."""
    dots = [use for use in group.iterfind("use") if "stroke" not in use.attrib]
    if not dots:
        return
    radius = float(shapes[dots[0].attrib["href"]].split()[2])
    path = {
        "d": "".join(f"M{dot.get('x')} {dot.get('y')}h0" for dot in dots),
        "stroke": dots[0].attrib["fill"],
        "stroke-opacity": dots[0].get("fill-opacity", "1"),
        "stroke-width": f"{2 * radius:.3g}",
        "stroke-linecap": "round",
    }
    joined = set(dots)
    group[:] = [child for child in group if child not in joined]
    ElementTree.SubElement(group, "path", path)


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
    kind = data.get("format") if isinstance(data, Mapping) else None
    if kind not in VERSIONS:
        raise ValueError(f'This is not the data of a report: "format" should be {FIT!r}.')
    if data.get("version") != VERSIONS[kind]:
        raise ValueError(
            f"This report data has version {data.get('version')!r}; this evomeans reads version "
            f"{VERSIONS[kind]}. Run the fit again, or use the evomeans that wrote the data."
        )
    check_packages()
    from jinja2 import TemplateError

    broken = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, TemplateError)
    try:
        with own_style():
            is_path = kind == PATH
            figures = path_figures(data) if is_path else report_figures(data)
        if is_path:
            return _rendered("path", data, kind="path report", figures=figures)
        return _rendered("page", data, kind="report", figures=figures, **fit_texts(data))
    except broken as error:
        raise ValueError(
            f"No report can be made from this data: {type(error).__name__}: {error}."
        ) from error


def check_packages() -> None:
    """Say what is not installed."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        how = wording.how_to_install("report")
        raise ImportError(f"Reports need {error.name}, which is not installed: {how}.") from error


def fit_texts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of a fit says beyond its data."""
    run = data["run"]
    since_improvement = run["n_offspring"] - run["last_improvement"]
    ended = (run["stop_reason"], run["n_offspring"], since_improvement, run["n_rediscoveries"])
    certainty = run.get("certainty")
    sure = None if certainty is None else wording.probability_text(certainty)
    parts = wording.stop_text(*ended), sure, wording.levels_text(run["levels"])
    stop = " ".join(filter(None, parts)).replace(" %", "\N{NO-BREAK SPACE}%")
    return {
        "run": run,
        "stop": stop if run["stop_reason"] else "",
        "advice": wording.advice_text(*ended),
        "csv": labels_csv(data["labels"]),
        "run_id": run_id(data),
    }


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


def _rendered(name: str, data: Mapping[str, Any], **more: Any) -> str:
    """Render a template with its script; figures are safe as they are."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    style = theme_css() + "\n" + _part("page.css")
    script = _part("common.js") + _part(f"{name}.js")
    environment = Environment(
        loader=FunctionLoader(_part),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_unbroken(wording.number_text),
        percent=_unbroken(wording.percent_text),
        duration=_unbroken(wording.duration_text),
        plain=_plain_text,
        above=_unbroken(above_text),
    )
    page = environment.get_template(f"{name}.html.j2").render(
        data=data,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        counted=wording.counted,
        certain_percent=wording.certain_percent,
        **more,
    )
    page.encode()  # raises on lone surrogates, which no file can hold
    return page.lstrip()


def above_text(inertia: float, best: float) -> str:
    """Write how far an inertia lies above another one, in percent."""
    gap = inertia / best - 1.0 if best > 0 else 0.0
    if gap < 1e-8:
        return "the same" if best > 0 or inertia == best else ""
    return f"{wording.percent_text(gap)} above"


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
