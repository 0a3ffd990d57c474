"""Bound items placed exactly, by an assignment problem or a small integer program."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import coo_array, vstack

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]
# HiGHS reports these for a program that was solved, and for one that has no solution.
SOLVED, IMPOSSIBLE = 0, 2


class Verdict(StrEnum):
    """What is known of an integer program in the end."""

    FOUND = "found"
    IMPOSSIBLE = "impossible"
    OPEN = "open"


def assign_clique(costs: FloatArray) -> Integers:
    """Place items that all exclude each other at the least cost; there are at most k of them."""
    return np.asarray(linear_sum_assignment(costs)[1], dtype=np.int64)


def place_exactly(
    costs: FloatArray,
    pairs: Integers,
    counts: Integers,
    n_free: int,
    low: Integers,
    high: Integers,
    *,
    max_nodes: int | None = None,
) -> tuple[Verdict, Integers]:
    """Place items at the least total cost, such that pairs are apart and sizes within limits.

    Parameters
    ----------
    costs : (b, k) array
        What each item costs in each cluster.
    pairs : (p, 2) array
        Items that must be apart.
    counts : (b,) array
        How many samples the items are.
    n_free : int
        Samples that can be put anywhere; they cost nothing here.
    low, high : (k,) arrays
        How many samples clusters must and may have.
    max_nodes : int, optional
        Of the search tree. None leaves nothing open.

    Returns
    -------
    verdict : Verdict
    labels : (b,) array
        Empty unless one was found.
    """
    b, k = costs.shape
    n_variables = b * k + k
    placed = np.arange(b * k)
    item, cluster = placed // k, placed % k
    once = _rows(item, placed, np.ones(b * k), (b, n_variables))
    size_values = np.concatenate([counts[item], np.ones(k)])
    size_columns = np.arange(n_variables)
    sizes = _rows(
        np.concatenate([cluster, np.arange(k)]), size_columns, size_values, (k, n_variables)
    )
    free = _rows(np.zeros(k, int), b * k + np.arange(k), np.ones(k), (1, n_variables))
    apart = np.repeat(np.arange(len(pairs) * k), 2)
    columns = (np.repeat(pairs, k, axis=0) * k + np.tile(np.arange(k), len(pairs))[:, None]).ravel()
    kept_apart = _rows(apart, columns, np.ones(len(apart)), (len(pairs) * k, n_variables))
    lower = np.concatenate([np.ones(b), low, [n_free], np.zeros(len(pairs) * k)])
    upper = np.concatenate([np.ones(b), high, [n_free], np.ones(len(pairs) * k)])
    result = milp(
        np.concatenate([costs.ravel(), np.zeros(k)]),
        integrality=np.repeat([1, 0], [b * k, k]),
        bounds=Bounds(0, np.repeat([1.0, float(max(n_free, 1))], [b * k, k])),
        constraints=LinearConstraint(vstack([once, sizes, free, kept_apart]).tocsc(), lower, upper),
        options={} if max_nodes is None else {"node_limit": max_nodes},
    )
    if result.x is not None:
        chosen = result.x[: b * k].reshape(b, k).argmax(axis=1)
        return Verdict.FOUND, chosen.astype(np.int64)
    verdict = Verdict.IMPOSSIBLE if result.status == IMPOSSIBLE else Verdict.OPEN
    return verdict, np.empty(0, np.int64)


def _rows(rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> Any:
    return coo_array((values, (rows, columns)), shape)
