"""The problems on which certainty is fitted, and others on which it is judged.

All data sets available take part: those of the paper, small ones of scikit-learn, patches of a
photograph, and rows drawn from the larger sets. For each of them numbers of clusters are drawn at
random between 2 and 100, at most a fifth of the samples. Half of those of each set, at random, are
for *development*: constants are fitted there. The other half is for the *report*, and nothing is
ever tuned on it.
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

# From this number all problems are drawn; another one would be another split.
SPLIT_SEED = 38
DEVELOPMENT, REPORT = "development", "report"
HALVES = (DEVELOPMENT, REPORT)
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
        return samples_named(self.dataset)


def rows_of(name: str, count: int = ROWS) -> Samples:
    """Return rows of a larger data set, drawn without replacement."""
    X = load(name)
    rng = np.random.default_rng(SPLIT_SEED)
    return X[np.sort(rng.choice(len(X), count, replace=False))]


def patches(side: int, count: int) -> Samples:
    """Return square patches of a photograph in shades of grey."""
    photo = toys.load_sample_image("china.jpg").mean(axis=2)
    drawn = extract_patches_2d(photo, (side, side), max_patches=count, random_state=SPLIT_SEED)
    return drawn.reshape(count, -1) / 255.0


WHOLE = (
    *("german_towns", "bavaria1", "bavaria2", "iris", "liver", "heart", "breast_cancer", "pima"),
    *("congressional_voting", "ionosphere", "tsplib1060", "tsplib3038", "image_segmentation"),
)
IN_PART = (
    *("page_blocks", "pendigit", "letters", "d15112", "pla85900", "eeg_eye_state", "shuttle"),
    *("skin", "partial_gas_sensor", "partial_kegg", "partial_online_news"),
)
SOURCES: dict[str, Callable[[], Samples]] = {
    **{name: partial(load, name) for name in WHOLE},
    **{f"{name}_rows": partial(rows_of, name) for name in IN_PART},
    "digits": lambda: toys.load_digits().data,
    "wine": lambda: toys.load_wine().data,
    "wine_scaled": lambda: scale(toys.load_wine().data),
    "diabetes": lambda: toys.load_diabetes().data,
    "cancer": lambda: toys.load_breast_cancer().data,
    "cancer_scaled": lambda: scale(toys.load_breast_cancer().data),
    "heart_scaled": lambda: scale(load("heart")),
    "pima_scaled": lambda: scale(load("pima")),
    "patches_4": partial(patches, 4, 800),
    "patches_8": partial(patches, 8, 500),
}
"""The data sets by name; each function returns the samples."""


@cache
def samples_named(name: str) -> Samples:
    """Load the samples of a data set."""
    return np.ascontiguousarray(SOURCES[name](), dtype=np.float64)


@cache
def all_problems() -> tuple[Problem, ...]:
    """Return the problems of both halves."""
    problems = []
    for place, name in enumerate(SOURCES):
        n, d = samples_named(name).shape
        most = min(MOST, n // SAMPLES_PER_CLUSTER, int(MOST_WORK / (n * d)))
        # Every data set draws from numbers of its own, so that another set changes no other.
        rng = np.random.default_rng((SPLIT_SEED, place))
        count = min(DRAWN, most - FEWEST + 1)
        drawn = rng.choice(np.arange(FEWEST, most + 1), count, replace=False)
        # Drawn in random order, so turns are as good as chance, and both halves have as many.
        problems += [Problem(name, int(k), HALVES[turn % 2]) for turn, k in enumerate(drawn)]
    return tuple(problems)


def problems_of(half: str) -> list[Problem]:
    """Return the problems of one half."""
    return [problem for problem in all_problems() if problem.half == half]
