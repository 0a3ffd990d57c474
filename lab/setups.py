"""The problems that measurements of time have in common."""

from __future__ import annotations

from sklearn.datasets import load_digits

from lab.data import load
from lab.measure import Samples, mixture, parse_setup

SEARCHES = (
    "liver:20",
    "ionosphere:20",
    "tsplib1060:10",
    "tsplib1060:50",
    "image_segmentation:50",
    "tsplib3038:10",
    "tsplib3038:50",
    "pendigit:10",
    "pendigit:50",
    "d15112:10",
    "letters:10",
    "letters:50",
    "shuttle:15",
    "skin:10",
)
"""Whole searches."""

KMEANS_RUNS = (
    "letters:50",
    "pla85900:25",
    "partial_gas_sensor:25",
    "partial_isolet:25",
    "mixture:50000:100:100",
)
"""Single runs of K-means; some are too large for whole searches."""

SEPARATION = 10.0


def samples_of(setup: str, separation: float = SEPARATION) -> tuple[Samples, int]:
    """Return the samples and the number of clusters of a problem.

    Parameters
    ----------
    setup : str
        ``dataset:clusters``, where the data set may also be scikit-learn's ``digits``, or
        ``mixture:n:d:clusters`` for a mixture of Gaussians.
    separation : float
        Of typical centres of a mixture, in deviations.
    """
    if not setup.startswith("mixture:"):
        name, m = parse_setup(setup)
        return load_digits().data if name == "digits" else load(name), m
    try:
        n, d, m = map(int, setup.split(":")[1:])
    except ValueError:
        raise SystemExit(f"{setup!r} is not a problem: expected mixture:n:d:clusters.") from None
    return mixture(n, d, m, separation), m
