"""Samples by name: the data sets of the registry, and mixtures that are drawn when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lab.data import load
from lab.mixtures import gaussian_mixture

MIXTURE = "mixture"


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples, and the truth about them where it is known.

    Parameters
    ----------
    X : (n, d) array
    labels : (n,) array, optional
        The component of the mixture that each sample was drawn from.
    means : (m, d) array, optional
        The means of the mixture.
    """

    X: NDArray[np.float64]
    labels: NDArray[np.int64] | None = None
    means: NDArray[np.float64] | None = None


def mixture_name(n: int, m: int, d: int, seed: int = 0) -> str:
    """Return the name under which :func:`problem` knows a mixture of section 4.5."""
    return f"{MIXTURE}-n{n}-m{m}-d{d}-s{seed}"


def is_mixture(name: str) -> bool:
    """Whether a name is that of a mixture."""
    return name.startswith(f"{MIXTURE}-")


@lru_cache(maxsize=1)
def problem(name: str) -> Problem:
    """Return the samples of that name; the last ones are kept, since tasks come in rows."""
    if not is_mixture(name):
        return Problem(load(name))
    n, m, d, seed = (int(part[1:]) for part in name.split("-")[1:])
    mixture = gaussian_mixture(n, m, d, seed)
    return Problem(mixture.X, mixture.labels, mixture.means)
