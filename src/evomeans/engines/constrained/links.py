"""Constraints as the engine sees them: groups that stay together, pairs that are kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evomeans.engines.frame import Frame
from evomeans.typing import FloatArray, Integers

# Of all penalties together.
LARGEST_PENALTY = 1e300


class InfeasibleError(ValueError):
    """Constraints that no clustering can satisfy; the text says which."""


@dataclass(frozen=True)
class Links:
    """Pairs of samples, by their rows, and what it costs to violate them.

    * ``must`` (p, 2) and ``cannot`` (q, 2): pairs that belong into the same cluster, and into
      different ones.
    * ``must_penalties`` (p,) and ``cannot_penalties`` (q,): in units of the objective; infinite for
      hard constraints.
    """

    must: Integers
    must_penalties: FloatArray
    cannot: Integers
    cannot_penalties: FloatArray

    @property
    def hard_must(self) -> Integers:
        """Pairs that have to be together."""
        return self.must[np.isinf(self.must_penalties)]

    @property
    def hard_cannot(self) -> Integers:
        """Pairs that have to be apart."""
        return self.cannot[np.isinf(self.cannot_penalties)]

    def count_violations(self, labels: NDArray[Any]) -> tuple[int, float]:
        """Return how many pairs a clustering violates, and their penalties."""
        split = labels[self.must[:, 0]] != labels[self.must[:, 1]]
        joined = labels[self.cannot[:, 0]] == labels[self.cannot[:, 1]]
        price = self.must_penalties[split].sum() + self.cannot_penalties[joined].sum()
        return int(np.count_nonzero(split) + np.count_nonzero(joined)), float(price)


@dataclass(frozen=True)
class Groups:
    """Samples contracted to items: groups that must-links join, and single samples.

    * ``of_sample`` (n,): the item to which each sample belongs.
    * ``points`` (m, d): weighted means of the items. A single sample is its own, to the last bit.
    * ``weights`` and ``counts`` (m,): total weights, and how many samples they are.
    """

    of_sample: Integers
    points: NDArray[Any]
    weights: FloatArray
    counts: Integers


def graph_of(pairs: Integers, n_samples: int) -> csr_array:
    """Return the adjacency matrix of pairs."""
    return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (n_samples, n_samples))


def group_samples(n_samples: int, pairs: Integers) -> Integers:
    """Return the component of every sample, in the order of their first samples."""
    graph = graph_of(pairs, n_samples)
    return connected_components(graph, directed=False)[1].astype(np.int64)


def pairs_among(items: NDArray[Any], pairs: Integers, n_items: int) -> Integers:
    """Return the pairs of which both are among some items, by their places there."""
    place = np.full(n_items, -1)
    place[items] = np.arange(len(items))
    local = place[pairs]
    return local[(local >= 0).all(axis=1)]


def contract(X: NDArray[Any], sample_weight: FloatArray | None, of_sample: Integers) -> Groups:
    """Replace groups of samples by their means.

    The objective of the contracted problem is that of the samples less what groups cost around
    their own means, which no clustering changes.
    """
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    m = int(of_sample.max()) + 1
    counts = np.bincount(of_sample, minlength=m)
    totals = np.bincount(of_sample, weights, minlength=m).astype(np.float64)
    if np.array_equal(of_sample, np.arange(len(X))):
        return Groups(of_sample, X, weights, counts)
    # A group without weight has a plain mean.
    shares = np.where(totals[of_sample] > 0.0, weights, 1.0)
    first = np.unique(of_sample, return_index=True)[1]
    points = X[first].astype(np.float64)
    # From their first samples on, so that few digits cancel, and single ones are kept as they are.
    offsets = (X - points[of_sample]) * shares[:, None]
    member = csr_array((np.ones(len(X)), (of_sample, np.arange(len(X)))), (m, len(X)))
    sums: FloatArray = np.asarray(member @ offsets)
    points += sums / np.bincount(of_sample, shares, minlength=m)[:, None]
    return Groups(of_sample, points, totals, counts)


def neighbours(
    n_items: int, pairs: Integers, values: FloatArray | None = None
) -> tuple[Integers, Integers, FloatArray]:
    """List the partners of every item: where they begin, the partners, and values of the pairs.

    Pairs that come several times are listed once, with the sum of their values. Pairs of an item
    with itself are left out.
    """
    pairs = pairs[pairs[:, 0] != pairs[:, 1]] if values is None else pairs
    given = np.ones(len(pairs)) if values is None else values
    both = np.concatenate([pairs, pairs[:, ::-1]])
    graph = csr_array((np.concatenate([given, given]), (both[:, 0], both[:, 1])), (n_items,) * 2)
    graph.sum_duplicates()
    graph.sort_indices()
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data


def soft_pairs(links: Links, of_sample: Integers) -> tuple[Integers, FloatArray, float]:
    """Translate links with penalties to pairs of items that cost something together.

    A cannot-link costs its penalty together. A must-link costs its penalty anyway, and gives it
    back together.

    Returns pairs of different items, what each costs together, negative for must-links, and what is
    paid anyway: for must-links, and for cannot-links within groups.
    """
    is_must, is_cannot = np.isfinite(links.must_penalties), np.isfinite(links.cannot_penalties)
    pairs = of_sample[np.concatenate([links.must[is_must], links.cannot[is_cannot]])]
    values = np.concatenate([-links.must_penalties[is_must], links.cannot_penalties[is_cannot]])
    differ = pairs[:, 0] != pairs[:, 1]
    constant = links.must_penalties[is_must].sum() + values[~differ].sum()
    return pairs[differ], values[differ], float(constant)


def check_penalties(penalties: FloatArray, constant: float, frame: Frame) -> None:
    """Refuse penalties whose sum overflows, in the units of the data or in the frame."""
    with np.errstate(over="ignore"):
        total = np.abs(penalties).sum() + abs(constant)
        in_frame = np.ldexp(total, 2 * frame.exponent)
    if not max(total, in_frame) <= LARGEST_PENALTY:
        raise ValueError(
            f"The penalties sum to {total:.3g}, and to {in_frame:.3g} in units of the squared "
            f"extent of X; both must be at most {LARGEST_PENALTY:.0e}. Leave them out: links "
            "without a penalty are always satisfied."
        )
