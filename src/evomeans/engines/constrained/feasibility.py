"""Whether constraints can be satisfied, and placements that satisfy them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, coo_array, eye_array, kron
from scipy.sparse.csgraph import breadth_first_order

from evomeans.engines.constrained.links import (
    Groups,
    InfeasibleError,
    Links,
    graph_of,
    group_samples,
    pairs_among,
)
from evomeans.typing import FloatArray, Integers


def place_exactly(
    costs: FloatArray,
    pairs: Integers,
    counts: Integers,
    n_free: int,
    low: Integers,
    high: Integers,
    *,
    max_nodes: int | None = None,
) -> Integers | None:
    """Place items at the least total cost, such that pairs are apart and sizes within limits.

    * ``costs`` (b, k) and ``counts`` (b,): what each item costs in each cluster, and how many
      samples it is.
    * ``n_free``: samples that can be put anywhere; they cost nothing here.
    * ``max_nodes``: of the search tree.

    Returns labels (b,), or None if there are none, or none were found within ``max_nodes``.
    """
    b, k = costs.shape
    one, each, n_pairs = eye_array(k), np.ones((1, k)), len(pairs)
    both = np.repeat(np.arange(n_pairs), 2), pairs.ravel()
    apart = coo_array((np.ones(2 * n_pairs), both), (n_pairs, b))
    # Items are placed once, sizes are within limits, all free samples are somewhere, and no cluster
    # has both of a pair.
    rows: list[Any] = [
        [kron(eye_array(b), each), None],
        [kron(counts[None], one), one],
        [None, each],
        [kron(apart, one), None],
    ]
    conditions = block_array(rows, format="csc")
    conditions.eliminate_zeros()
    lower = np.concatenate([np.ones(b), low, [n_free], np.zeros(n_pairs * k)])
    upper = np.concatenate([np.ones(b), high, [n_free], np.ones(n_pairs * k)])
    result = milp(
        np.concatenate([costs.ravel(), np.zeros(k)]),
        integrality=np.repeat([1, 0], [b * k, k]),
        bounds=Bounds(0, np.repeat([1.0, float(max(n_free, 1))], [b * k, k])),
        constraints=LinearConstraint(conditions, lower, upper),
        options={} if max_nodes is None else {"node_limit": max_nodes},
    )
    if result.x is None:
        return None
    return result.x[: b * k].reshape(b, k).argmax(axis=1).astype(np.int64)


# The most steps to look for cliques, and the most samples that an error names.
CLIQUE_STEPS, NAMED = 50_000, 12


def check_sizes(low: Integers, high: Integers, n_samples: int) -> None:
    """Refuse size limits that contradict each other or the number of samples."""
    if (low > high).any():
        j = int(np.argmax(low > high))
        raise InfeasibleError(
            f"size_min={low[j]} is larger than size_max={high[j]} for cluster {j}."
        )
    if low.sum() > n_samples:
        raise InfeasibleError(
            f"{len(low)} clusters of size_min need {low.sum()} samples, and X has {n_samples}. "
            "Lower size_min, or n_clusters."
        )
    if high.sum() < n_samples:
        raise InfeasibleError(
            f"{len(high)} clusters of size_max hold {high.sum()} samples, and X has {n_samples}. "
            "Raise size_max, or n_clusters."
        )


def check_links(links: Links, of_sample: Integers, counts: Integers, high: Integers) -> None:
    """Refuse pairs that must and cannot be together, and groups that fit into no cluster."""
    for one, other in links.hard_cannot.tolist():
        if of_sample[one] == of_sample[other]:
            path = shortest_path(len(of_sample), links.hard_must, one, other)
            through = " - ".join(map(str, path))
            reason = f"must_link joins them: {through}" if len(path) > 1 else "they are the same"
            raise InfeasibleError(
                f"cannot_link keeps samples {one} and {other} apart, but {reason}."
            )
    largest = int(counts.argmax())
    if counts[largest] > high.max():
        members = np.flatnonzero(of_sample == largest)
        raise InfeasibleError(
            f"must_link joins {counts[largest]} samples ({_named(members)}), and no cluster may "
            f"have more than size_max={high.max()}."
        )


def shortest_path(n_samples: int, pairs: Integers, begin: int, end: int) -> list[int]:
    """Return the samples on a shortest chain of links between two that are connected."""
    _, before = breadth_first_order(graph_of(pairs, n_samples), begin, directed=False)
    path = [end]
    while path[-1] != begin:
        path.append(int(before[path[-1]]))
    return path[::-1]


def find_clustering(
    groups: Groups, bound: Integers, pairs: Integers, low: Integers, high: Integers
) -> Integers:
    """Place bound items somewhere within all constraints, or prove that it cannot be done.

    ``bound`` (b,) are the items whose places matter; all others are single samples that can go
    anywhere. Returns labels (b,), or raises an InfeasibleError with the samples that are to blame.
    """
    local = pairs_among(bound, pairs, len(groups.counts))
    k, counts = len(low), groups.counts[bound]
    n_free = int(groups.counts.sum() - counts.sum())
    clique = largest_clique(len(bound), local, more_than=k)
    if len(clique) > k:
        raise InfeasibleError(
            f"cannot_link keeps {len(clique)} samples apart from each other "
            f"({_named(_first_samples(groups, bound[clique]))}), and there are only {k} clusters. "
            "Raise n_clusters, or leave out some of their pairs."
        )
    costs = np.zeros((len(bound), k))
    if np.ptp(low) == np.ptp(high) == 0:
        # Clusters can be exchanged, and a proof should not try all orders of them.
        costs[clique] = 1.0
        costs[clique, range(len(clique))] = 0.0
    labels = place_exactly(costs, local, counts, n_free, low, high)
    if labels is None:
        raise _error_for(groups, bound, local, low, high)
    return labels


def _error_for(
    groups: Groups, bound: Integers, pairs: Integers, low: Integers, high: Integers
) -> InfeasibleError:
    k, counts = len(low), groups.counts[bound]
    parts, any_size = group_samples(len(bound), pairs), np.full(k, len(groups.of_sample))
    for part in range(int(parts.max(initial=-1)) + 1):
        items = np.flatnonzero(parts == part)
        costs, own = np.zeros((len(items), k)), pairs_among(items, pairs, len(bound))
        if place_exactly(costs, own, counts[items], 0, 0 * low, any_size) is None:
            return InfeasibleError(
                f"{k} clusters are too few for the cannot_link pairs among {len(items)} samples "
                f"({_named(_first_samples(groups, bound[items]))}). Raise n_clusters, or leave "
                "out some of these pairs."
            )
    together = sorted(counts[counts > 1].tolist(), reverse=True)
    joined = f"must_link joins groups of {_named(together)} samples, and " if together else ""
    return InfeasibleError(
        f"{joined}no assignment satisfies all links with clusters of {low.min()} to {high.max()} "
        "samples, which was proven. Widen size_min and size_max, or leave out some links."
    )


def largest_clique(n_items: int, pairs: Integers, more_than: int) -> list[int]:
    """Return a large clique; the search ends early with one larger than asked for."""
    partners = [0] * n_items
    for one, other in pairs.tolist():
        partners[one] |= 1 << other
        partners[other] |= 1 << one
    best: list[int] = []
    steps = 0

    def extend(clique: list[int], candidates: int) -> bool:
        nonlocal best, steps
        steps += 1
        if len(clique) > len(best):
            best = clique
        if len(best) > more_than or steps > CLIQUE_STEPS:
            return True
        while candidates and len(clique) + candidates.bit_count() > len(best):
            item = candidates.bit_length() - 1
            candidates ^= 1 << item
            if extend([*clique, item], candidates & partners[item]):
                return True
        return False

    extend([], (1 << n_items) - 1)
    return sorted(best)


def _first_samples(groups: Groups, items: NDArray[Any]) -> NDArray[Any]:
    """Return one sample of each item, to name it by."""
    first = np.unique(groups.of_sample, return_index=True)[1]
    return np.sort(first[items])


def _named(numbers: Iterable[Any]) -> str:
    listed = [str(number) for number in numbers]
    return ", ".join(listed[:NAMED]) + (", ..." if len(listed) > NAMED else "")
