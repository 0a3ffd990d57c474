"""The problems on which certainty is fitted, and others on which it is judged.

All data sets available take part: those of the paper, small ones of scikit-learn, patches of a
photograph, and rows drawn from the larger sets. For each of them numbers of clusters are drawn at
random between 2 and 100, at most a fifth of the samples. One half of the problems is for
*development*: constants are fitted there. The other half is for the *report*, and nothing is ever
tuned on it. Once a change has been made because of what the report says, its problems go over to
development, and others are drawn: other numbers of clusters, rows and patches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from sklearn import datasets as toys
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.preprocessing import scale

from lab.data import load
from lab.measure import Samples

DEVELOPMENT, REPORT = "development", "report"
# From these numbers the problems of a half are drawn.
HALVES = {DEVELOPMENT: 38, REPORT: 2026}
FEWEST, MOST, SAMPLES_PER_CLUSTER = 2, 100, 5
# Numbers of clusters that are drawn for each data set.
DRAWN = 4
# Products n·k·d of an assignment beyond which a problem is left out: a search takes too long.
MOST_WORK = 1.5e6
# Rows that are drawn of the larger data sets.
ROWS = 600


@dataclass(frozen=True)
class Problem:
    """Samples to be clustered into k clusters.

    Parameters
    ----------
    dataset : str
    k : int
    half : str
        The half that it belongs to.
    """

    dataset: str
    k: int
    half: str

    @property
    def name(self) -> str:
        """How commands and tables call it."""
        return f"{self.dataset}:{self.k}"

    def samples(self) -> Samples:
        """Load the samples."""
        return samples_named(self.dataset, self.half)


def whole(samples: Callable[[], Samples]) -> Callable[[int], Samples]:
    """Return the source of a data set that both halves have in common."""
    return lambda _: samples()


def rows_of(name: str, seed: int) -> Samples:
    """Return rows of a larger data set, drawn without replacement."""
    X = load(name)
    return X[np.sort(np.random.default_rng(seed).choice(len(X), ROWS, replace=False))]


def patches(side: int, count: int, seed: int) -> Samples:
    """Return square patches of a photograph in shades of grey."""
    photo = toys.load_sample_image("china.jpg").mean(axis=2)
    drawn = extract_patches_2d(photo, (side, side), max_patches=count, random_state=seed)
    return drawn.reshape(count, -1) / 255.0


WHOLE = (
    *("german_towns", "bavaria1", "bavaria2", "iris", "liver", "heart", "breast_cancer", "pima"),
    *("congressional_voting", "ionosphere", "tsplib1060", "tsplib3038", "image_segmentation"),
)
IN_PART = (
    *("page_blocks", "pendigit", "letters", "d15112", "pla85900", "eeg_eye_state", "shuttle"),
    *("skin", "partial_gas_sensor", "partial_kegg", "partial_online_news"),
)
SOURCES: dict[str, Callable[[int], Samples]] = {
    **{name: whole(partial(load, name)) for name in WHOLE},
    **{f"{name}_rows": partial(rows_of, name) for name in IN_PART},
    "digits": whole(lambda: toys.load_digits().data),
    "wine": whole(lambda: toys.load_wine().data),
    "wine_scaled": whole(lambda: scale(toys.load_wine().data)),
    "diabetes": whole(lambda: toys.load_diabetes().data),
    "cancer": whole(lambda: toys.load_breast_cancer().data),
    "cancer_scaled": whole(lambda: scale(toys.load_breast_cancer().data)),
    "heart_scaled": whole(lambda: scale(load("heart"))),
    "pima_scaled": whole(lambda: scale(load("pima"))),
    "patches_4": partial(patches, 4, 800),
    "patches_8": partial(patches, 8, 500),
}
"""The data sets by name; each function takes the number of a half and returns its samples."""


@cache
def samples_named(name: str, half: str) -> Samples:
    """Load the samples of a data set, as a half has them."""
    return np.ascontiguousarray(SOURCES[name](HALVES[half]), dtype=np.float64)


@cache
def problems_of(half: str) -> tuple[Problem, ...]:
    """Return the problems of one half."""
    problems: list[Problem] = []
    taken = set() if half == DEVELOPMENT else {one.name for one in problems_of(DEVELOPMENT)}
    for place, name in enumerate(SOURCES):
        n, d = samples_named(name, half).shape
        most = min(MOST, n // SAMPLES_PER_CLUSTER, int(MOST_WORK / (n * d)))
        free = [k for k in range(FEWEST, most + 1) if f"{name}:{k}" not in taken]
        # Every data set draws from numbers of its own, so that another set changes no other.
        rng = np.random.default_rng((HALVES[half], place))
        drawn = rng.choice(free, min(DRAWN, len(free)), replace=False)
        problems += [Problem(name, int(k), half) for k in drawn]
    return tuple(problems)
