"""Threads that each do a part of something that releases the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Result = TypeVar("Result")

# Values that a thread looks at together: they stay in its cache while it does.
AT_ONCE = 2**17


def side_by_side(do: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    """Let threads do something for every item, and return the results in the same order.

    It gains nothing unless what is done releases the interpreter.
    """
    if n_jobs == 1:
        return [do(item) for item in items]
    with ThreadPoolExecutor(n_jobs, "evomeans") as pool:
        return list(pool.map(do, items))


def extremes(values: NDArray[Any], n_jobs: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the lowest and the highest value along the first axis; NaN if one is among them.

    Memory is read once.
    """
    at_once = max(1, AT_ONCE * len(values) // max(1, values.size))
    begins = range(0, len(values), at_once)
    ends = np.empty((2, len(begins), *values.shape[1:]), values.dtype)

    def look(nth: int) -> None:
        part = values[begins[nth] : begins[nth] + at_once]
        with np.errstate(invalid="ignore"):
            ends[:, nth] = part.min(axis=0), part.max(axis=0)

    side_by_side(look, range(len(begins)), n_jobs)
    with np.errstate(invalid="ignore"):
        return ends[0].min(axis=0), ends[1].max(axis=0)
