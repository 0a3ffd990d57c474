"""The figures of the page, in its light and dark colours."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from evomeans.plotting.axes import DIFFERENCES, FAINT, INK, MUTED, OKABE_ITO, PAPER, calm, diverging
from evomeans.plotting.cluster_data import Profiles, Projection
from evomeans.plotting.cluster_plots import (
    CLUSTER_ID,
    draw_clusters,
    draw_profiles,
    draw_sizes,
    profiles_size,
)
from evomeans.plotting.path_data import Clustergram, PathCurves
from evomeans.plotting.path_plots import draw_clustergram, draw_path, grid_rows
from evomeans.plotting.search_plots import Convergence, draw_convergence
from evomeans.report.samples import from_json

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
"""What stands for a colour of the plots, so that they follow the page."""


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
        # The browser has fonts for letters that those of matplotlib lack.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def report_figures(data: Mapping[str, Any]) -> dict[str, str]:
    """Draw the plots of a fit as ``svg`` elements; no convergence if all solutions are equal."""
    figures = {}
    with own_style():
        for x, given in data["convergence"].items():
            course = from_json(Convergence, given)
            if course.gap.any():
                label = f"Best inertia so far by {x}, in {course.unit}"
                figures[x] = as_svg(draw_convergence(new_axes(WIDE), course, x), label)
        return figures | cluster_figures(data)


def path_figures(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the curves, the clustergram, and for every k its map, sizes and centres."""
    from matplotlib.figure import Figure

    curves = from_json(PathCurves, data["curves"])
    with own_style():
        size = PAGE_WIDE[0], GRID_ROW * grid_rows(curves)
        grid = draw_path(Figure(size, facecolor="none", layout="constrained"), curves)
        for ax in grid.axes:
            ax.set_facecolor("none")
        label = "Inertia and criteria over the number of clusters"
        figures: dict[str, Any] = {"curves": as_svg(grid.axes[0], label)}
        if data["clustergram"] is not None:
            flows = from_json(Clustergram, data["clustergram"])
            ax = draw_clustergram(new_axes(PAGE_WIDE), flows, curves.best_k)
            figures["clustergram"] = as_svg(ax, "How clusters divide as their number grows")
        figures["models"] = {
            k: cluster_figures(model, f", k = {k}") for k, model in data["models"].items()
        }
        return figures


def cluster_figures(data: Mapping[str, Any], which: str = "") -> dict[str, str]:
    """Draw the clusters; ``which`` tells figures of several models apart."""
    plane = from_json(Projection, data["projection"])
    centers = from_json(Profiles, data["profiles"])
    colors = np.array([each["color"] for each in data["clusters"]], np.intp)
    x_name, y_name = plane.axis_names
    return {
        "plane": as_svg(
            draw_clusters(new_axes(SQUARE), plane, colors),
            f"Samples by cluster{which}, on {x_name} and {y_name}",
        ),
        "sizes": as_svg(
            draw_sizes(new_axes(SQUARE), plane.sizes, colors),
            f"Number of samples by cluster{which}",
        ),
        "profiles": as_svg(
            draw_profiles(new_axes(profiles_size(centers)), centers),
            f"Difference of each centre from the mean{which}: a row for each cluster",
            own_width=True,
        ),
    }


def new_axes(size: tuple[float, float]) -> Axes:
    """Return axes in a figure of their own, without a background."""
    from matplotlib.figure import Figure

    figure = Figure(size, facecolor="none", layout="constrained")
    return calm(figure.subplots(subplot_kw={"facecolor": "none"}))


def as_svg(ax: Axes, label: str, own_width: bool = False) -> str:
    """Write a figure as an element of the page, which allows no styles but its own.

    It is as wide as its place in the page, unless it has a width of its own.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = ax.get_figure(root=True)
    assert figure is not None
    for artist in figure.findobj():
        artist.set_rasterized(False)
    file = BytesIO()
    # The salt makes ids the same every time, and different in every figure.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
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
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: ElementTree.Element) -> None:
    """Turn styles into attributes, colours into those of the page, ids into cluster numbers."""
    element.tag = element.tag.rpartition("}")[2]
    given, element.attrib = element.attrib, {}
    for name, value in given.items():
        if name == "style":
            element.attrib |= _attributes(value)
        elif element.tag != "g" or name != "id":
            element.set(name.rpartition("}")[2], LONG_NUMBER.sub(_shortened, value))
        elif value.startswith(CLUSTER_ID):
            element.attrib |= {"class": "c", "data-cluster": value.removeprefix(CLUSTER_ID)}


def _attributes(style: str) -> dict[str, str]:
    styles = dict(part.split(": ", 1) for part in style.split("; "))
    styles.pop("font-family", None)  # the page has its own
    return {name: VARIABLES.get(value, value) for name, value in styles.items()}


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
