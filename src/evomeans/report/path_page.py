"""From the data of a path to its page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from evomeans.plotting.path_data import Clustergram, Curve, PathCurves
from evomeans.plotting.path_plots import draw_clustergram, draw_path
from evomeans.report.figures import as_floats, as_svg, cluster_figures, new_axes

# Inches.
GRID_WIDTH, GRID_ROW, WIDE = 10.6, 2.2, (10.6, 4.2)


def path_figures(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the curves, the clustergram, and for every k its map, sizes and centres."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        # The browser has fonts for letters that those of matplotlib lack.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figures: dict[str, Any] = {"curves": _curves(data)}
        if data["clustergram"] is not None:
            figures["clustergram"] = _clustergram(data)
        figures["models"] = {
            k: cluster_figures(model, f", k = {k}") for k, model in data["models"].items()
        }
        return figures


def _curves(data: Mapping[str, Any]) -> str:
    given = data["curves"]
    optional = {
        name: None if given[name] is None else as_floats(given[name])
        for name in ("reference", "reference_errors")
    }
    curves = PathCurves(
        k_values=np.array(given["k"], np.int64),
        inertia=Curve("inertia", "Inertia", as_floats(given["inertia"])),
        reference=optional["reference"],
        reference_errors=optional["reference_errors"],
        is_confirmed=np.array(given["is_confirmed"], bool),
        criteria=[
            Curve(
                one["name"],
                one["title"],
                as_floats(one["values"]),
                None if one["errors"] is None else as_floats(one["errors"]),
                one["choice"],
            )
            for one in given["criteria"]
        ],
        best_k=data["best_k"],
    )
    first = new_axes((GRID_WIDTH, GRID_ROW * -(-(1 + len(curves.criteria)) // 3)))
    figure = first.get_figure(root=True)
    assert figure is not None
    figure.clear()
    draw_path(figure, curves)
    for ax in figure.axes:
        ax.set_facecolor("none")
    return as_svg(figure.axes[0], "Inertia and criteria over the number of clusters")


def _clustergram(data: Mapping[str, Any]) -> str:
    given = data["clustergram"]
    flows = Clustergram(
        np.array(data["curves"]["k"], np.int64),
        [as_floats(one) for one in given["places"]],
        [np.array(one, np.intp) for one in given["sizes"]],
        [np.array(one, np.intp) for one in given["flows"]],
    )
    ax = draw_clustergram(new_axes(WIDE), flows, data["best_k"])
    return as_svg(ax, "How clusters divide as their number grows")
