"""Small fitted models and the data of their reports."""

from __future__ import annotations

import numpy as np

from evomeans import HGMeans
from evomeans.report import report_data

HOSTILE = [
    "</script><script>window.pwned = 1; alert(1)</script>",
    '"><img src=x onerror="window.pwned = 2">',
    "'-->]]></title></style><svg onload=window.pwned=3>",
    "{{ 7 * 7 }} {% raw %} &amp; \u2028 \u202e",
]
CENTERS = np.array([[0, 0, 0, 0], [9, 1, 0, 3], [0, 8, 1, -3], [9, 9, 4, 0], [-9, 3, -7, 1.5]])


def fitted(n_clusters=5, X=None, **parameters):
    """Fit quickly."""
    settings = {"min_population": 3, "max_population": 5, "max_offspring": 25, "random_state": 0}
    return HGMeans(n_clusters, **{**settings, **parameters}).fit(samples() if X is None else X)


def samples():
    """Five clouds of unequal size in four columns, close enough for several local optima."""
    labels = np.repeat(np.arange(5), [70, 20, 40, 60, 10])
    return CENTERS[labels] + np.random.default_rng(0).normal(scale=4, size=(200, 4))


def data_of(model, X, names=None, title="clouds.csv", **more):
    """Gather the data of a report with everything in it."""
    settings = {"seed": 0, "standardize": False, "max time": None, "ratio": 0.5}
    command = f"evomeans fit '{title}' -k {model.n_clusters}"
    more = {"settings": settings, "command": command, **more}
    return report_data(model, X, feature_names=names, title=title, **more)
