"""The clusters of one model: where they are, what they are, and which samples show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.metrics.sums import ClusterMoments
from evomeans.plotting.cluster_data import (
    Profiles,
    cluster_sizes,
    profile_data,
    projection_data,
    standardized,
)
from evomeans.plotting.palette import cluster_colors
from evomeans.report.plain import as_json, short
from evomeans.report.samples import Samples
from evomeans.report.separation import (
    BORDERLINE,
    Separation,
    borderline,
    gaps_between,
    separation,
    typical,
    values_of,
)
from evomeans.report.words import cluster_words

COLUMNS = 24
TELLING = 5
EXAMPLES, EXAMPLE_COLUMNS, MOST_EXAMPLES = 2, 6, 200
"""Samples of a kind that each cluster shows, their columns, and the most samples of all."""


def model_parts(
    model: Any, samples: Samples, moments: ClusterMoments, points: int
) -> dict[str, Any]:
    """Describe the clusters of a model."""
    X, labels, centers = samples.X, model.labels_, model.cluster_centers_
    found = separation(X, labels, centers, samples.weights)
    plane = projection_data(X, labels, centers, names=samples.columns, limit=points)
    profiles = profiles_part(model, samples, moments)
    return {
        "projection": as_json(plane, shortened=True),
        "profiles": as_json(profiles, shortened=True),
        "columns": columns_part(samples, moments, profiles),
        "clusters": clusters_part(model, samples, moments, found),
        "separation": {
            "silhouette": found.share(found.silhouettes) if len(centers) > 1 else None,
            "borderline": found.share(found.silhouettes < BORDERLINE),
            "rows": len(found.rows),
        },
        "examples": examples_part(model, samples, found, profiles.columns[:EXAMPLE_COLUMNS]),
    }


def profiles_part(model: Any, samples: Samples, moments: ClusterMoments) -> Profiles:
    """Return the centres in the units of the columns, and how far they are from the mean."""
    data = profile_data(
        model.cluster_centers_,
        moments.weights,
        samples.columns,
        shown=samples.in_units(model.cluster_centers_),
        mean=moments.mean,
        spread=moments.spread,
        limit=COLUMNS,
    )
    return replace(data, values=data.values.round(2))


def columns_part(samples: Samples, moments: ClusterMoments, shown: Profiles) -> dict[str, Any]:
    """Describe the columns of the profiles: units, means and deviations, within clusters too."""
    within = moments.deviations[shown.clusters] * samples.scale
    return {
        "units": [samples.units.get(name, "") for name in shown.names],
        "deviations": short(within[:, shown.columns]),
        "mean": short(samples.in_units(moments.mean)[shown.columns]),
        "deviation": short((moments.spread * samples.scale)[shown.columns]),
    }


def clusters_part(
    model: Any, samples: Samples, moments: ClusterMoments, found: Separation
) -> list[dict[str, Any]]:
    """Describe each cluster: how large, loose and separate it is, and where it stands out."""
    middles = np.asarray(model.cluster_centers_, dtype=np.float64)
    shown, names = samples.in_units(middles), samples.columns
    values = standardized(middles, moments.mean, moments.spread)
    sizes = cluster_sizes(model.labels_, len(middles))
    shares = moments.inertia / (moments.inertia.sum() or 1.0)
    spreads = np.sqrt(moments.inertia / np.where(moments.weights > 0, moments.weights, 1.0))
    colors = cluster_colors(middles)
    nearest, gaps = gaps_between(middles)
    silhouettes = found.by_cluster(found.silhouettes, len(middles))
    telling = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :TELLING]
    return [
        {
            "color": int(colors[cluster]),
            "size": int(sizes[cluster]),
            "weight": float(moments.weights[cluster]),
            "inertia_share": float(shares[cluster]),
            "spread": float(spreads[cluster]),
            "words": cluster_words(
                [(names[column], float(values[cluster, column])) for column in telling[cluster]]
            ),
            # A single cluster is not separated from anything.
            "silhouette": silhouettes[cluster] if nearest[cluster] >= 0 else None,
            "nearest": int(nearest[cluster]) if nearest[cluster] >= 0 else None,
            "gap": float(gaps[cluster]) if nearest[cluster] >= 0 else None,
            "telling": [
                {
                    "name": names[column],
                    "value": round(float(values[cluster, column]), 2),
                    "center": float(f"{shown[cluster, column]:.5g}"),
                }
                for column in telling[cluster]
                if abs(values[cluster, column]) >= 0.05
            ],
        }
        for cluster in range(len(middles))
    ]


def examples_part(
    model: Any, samples: Samples, found: Separation, columns: NDArray[np.intp]
) -> dict[str, Any]:
    """Return typical and borderline samples of each cluster, with their most telling values."""
    k = len(model.cluster_centers_)
    each = min(EXAMPLES, MOST_EXAMPLES // (2 * k))
    rows = []
    for cluster in range(k):
        for kind, choose in (("typical", typical), ("borderline", borderline)):
            for rank, place in enumerate(choose(found, cluster, each)):
                row = int(found.rows[place])
                values = samples.in_units(values_of(samples.X, row))[columns]
                rows.append(
                    {
                        "cluster": cluster,
                        "kind": kind,
                        "rank": rank,
                        "name": samples.name(row),
                        "distance": float(f"{found.near[place]:.5g}"),
                        "other": int(found.other[place]) if kind == "borderline" else None,
                        "values": short(values),
                    }
                )
    return {
        "label": samples.label,
        "columns": [samples.columns[column] for column in columns],
        "units": [samples.units.get(samples.columns[column], "") for column in columns],
        "rows": rows,
    }
