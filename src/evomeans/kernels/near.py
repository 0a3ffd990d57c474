"""Ward's method for many clusters, by lists of near ones: the same mergers, unless costs tie.

Of each cluster, a few others are listed that it is cheap to merge with [1]_, and a lower bound of
the costs with all others is kept. A merger is made if it costs no more than all bounds. What a list
of a union does not have is bounded by the lists of its parts. With the costs δ of a and b, and
bounds A and B of what they cost with a cluster j that neither lists, Lance and Williams' formula
(:func:`~evomeans.kernels.ward.unite`) gives

    d(ab, j) ≥ ((wₐ + wⱼ) A + (wᵦ + wⱼ) B − wⱼ δ) / (wₐ + wᵦ + wⱼ)
             ≥ min((wₐ A + wᵦ B) / (wₐ + wᵦ), A + B − δ),

because the first term is a mean of the two below, by the weights wₐ + wᵦ and wⱼ. So a bound rarely
becomes the lowest of all, and lists that are too short are made anew many at a time.

Lists are made by matrix products, in single precision at first. Their scores are lowered by a bound
of their error, so that they are lower bounds as well. The costs of what is listed are computed
directly.

References
----------
.. [1] Fränti, P., Virmajoki, O. and Hautamäki, V. (2006). "Fast agglomerative clustering using a
   k-nearest neighbor graph". IEEE Transactions on Pattern Analysis and Machine Intelligence 28,
   1875-1881.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.kernels.blas import one_blas_thread
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Indices, Integers, SingleArray

# How many near clusters are listed of each.
N_NEAR = 12
# Lists are made anew if their bounds are at most this many times the lowest of them.
REACH = 1.1
# Scores that are computed together, few enough for the cache; and those looked at together.
ROWS, COLUMNS, TOGETHER = 256, 1024, 64
# Of more clusters than this, some tell the middle.
MOST_IN_THE_MIDDLE = 128
# Of all weights; what is less counts as much, so that nothing overflows.
LEAST_SHARE = 1e-30
# What a cluster costs that has been absorbed.
GONE = np.inf
NONE = -1


@bundle
class Lists(NamedTuple):
    """Clusters that are merged, n of them with d features.

    * ``means`` (n, d), and in single precision ``points``; a common factor and a common shift do
      not matter.
    * ``squares`` (n,): squared norms of the means, infinite for a cluster that has been absorbed.
    * ``shares`` (n,): weights.
    * ``near`` (n, N_NEAR): clusters to merge them with; NONE fills up. One that has been absorbed
      stands for the union.
    * ``scores`` (n, N_NEAR): lower bounds of the costs, ascending, while a list is made.
    * ``beyond`` (n,): lower bound of the costs with clusters that are not listed.
    * ``lowest`` (m,): the cost of the cheapest merger, or a lower bound of it. It is GONE for a
      cluster that has been absorbed, and what fills up to a power of two.
    * ``nearest`` (n,): the cluster to merge it with, NONE if only a bound is known; of one that has
      been absorbed, the one that did so.
    * ``cheapest`` (2m,): a tournament. The cluster with the lowest of ``lowest`` is in the first
      place, the winners of two halves are in the places 2 and 3, and so on.
    * ``changed``, ``looked`` (n,): the merge that changed a cluster last, counted from 1, and that
      after which it was looked at last.
    * ``found``, ``costs`` (2·N_NEAR,): what a union may be merged with.
    * ``stop`` (1,): merging ends soon after another thread sets it.
    """

    means: FloatArray
    points: SingleArray
    squares: FloatArray
    shares: FloatArray
    near: Indices
    scores: FloatArray
    beyond: FloatArray
    lowest: FloatArray
    nearest: Indices
    cheapest: Indices
    changed: Indices
    looked: Indices
    found: Indices
    costs: FloatArray
    stop: Integers

    @classmethod
    def of(cls, centers: FloatArray, weights: FloatArray, stop: Integers) -> Lists:
        """Begin with empty lists."""
        n = len(centers)
        size = 1 << (n - 1).bit_length()
        # Halves, so that no difference overflows.
        means, step = 0.5 * centers, -(-n // MOST_IN_THE_MIDDLE)
        means -= np.median(means[::step], axis=0)
        np.ldexp(means, -np.frexp(np.abs(means).max())[1], out=means)
        nearest, changed, looked = np.full(n, NONE), *np.zeros((2, n), np.intp)
        # Places of the tournament that no cluster reaches show one that never wins.
        cheapest = np.full(2 * size, size - 1)
        cheapest[size:] = np.arange(size)
        return cls(
            means=means,
            points=means.astype(np.float32),
            squares=np.einsum("ij,ij->i", means, means),
            shares=weights / weights.max(),
            near=np.full((n, N_NEAR), NONE),
            scores=np.full((n, N_NEAR), np.inf),
            beyond=np.full(n, np.inf),
            lowest=np.full(size, GONE),
            nearest=nearest,
            cheapest=cheapest,
            changed=changed,
            looked=looked,
            found=np.empty(2 * N_NEAR, np.intp),
            costs=np.empty(2 * N_NEAR),
            stop=stop,
        )


def absorbers(centers: FloatArray, weights: FloatArray, k: int, stop: Integers) -> Indices:
    """Merge the cheapest two clusters until ``k`` are left; see :func:`~.ward.pnn_merge`.

    Returns which cluster has absorbed each of them; itself, if it is left. It is undefined once
    another thread has set ``stop[0]``.
    """
    lists, n = Lists.of(centers, weights, stop), len(centers)
    n_merges, before, rows = 0, NONE, np.arange(n)
    with one_blas_thread:
        while True:
            # If nothing came of the last lists, they were not exact enough.
            is_exact = n_merges == before
            list_near(rows, lists.means if is_exact else lists.points, lists)
            set_costs(rows, n_merges, is_exact, lists)
            before, n_merges = n_merges, merge_known(n_merges, n - k, lists)
            if n_merges == n - k or stop[0] != 0:
                return np.where(np.isinf(lists.squares), lists.nearest, np.arange(n))
            bounds = np.where(lists.nearest == NONE, lists.lowest[:n], GONE)
            rows = np.flatnonzero(bounds <= REACH * bounds.min())


def list_near(rows: Indices, points: NDArray[Any], lists: Lists) -> None:
    """List the near ones of some clusters; ``points`` (n, d) are the means."""
    lists.near[rows], lists.scores[rows] = NONE, np.inf
    (n, d), precision = points.shape, points.dtype
    # Twice the error of a score is at most this share of the squared norms of both.
    roundoff = (d + 8) * float(np.finfo(precision).eps)
    levels = (lists.squares * (1.0 - roundoff)).astype(precision)
    inverse = (1.0 / np.maximum(lists.shares, LEAST_SHARE)).astype(precision)
    highest, memory = np.full(n, np.inf, precision), np.empty(ROWS * COLUMNS, precision)
    # Of all pairs, each is looked at once.
    is_whole = len(rows) == n
    for begin in range(0, len(rows), ROWS):
        some = rows[begin : begin + ROWS]
        turned = -2.0 * points[some]
        for at in range(begin if is_whole else 0, n, COLUMNS):
            if lists.stop[0] != 0:
                return
            others = points[at : at + COLUMNS]
            products = memory[: len(some) * len(others)].reshape(len(some), len(others))
            np.matmul(turned, others.T, out=products)
            list_block(products, some, at, is_whole, levels, inverse, highest, lists)


@jit
def list_block(
    products: NDArray[Any],
    some: Indices,
    at: int,
    is_whole: bool,
    levels: NDArray[Any],
    inverse: NDArray[Any],
    highest: NDArray[Any],
    lists: Lists,
) -> None:
    """List what is near among the clusters from ``at`` on.

    * ``products`` (m, p): −2 times the product of the means of ``some`` (m,) with theirs.
    * ``is_whole``: whether ``some`` are consecutive, and of two clusters in different blocks, only
      the first meets the second.
    * ``levels``, ``inverse`` (n,): lowered squared norms, and reciprocals of the shares.
    * ``highest`` (n,): the last score of every list.
    """
    count = products.shape[1]
    for r in range(some.shape[0]):
        i = some[r]
        for begin in range(0, count, TOGETHER):
            end = min(begin + TOGETHER, count)
            first, last = at + begin, at + end
            own, level = levels[first:last], levels[i]
            others, per_share = inverse[first:last], inverse[i]
            limits, limit = highest[first:last], highest[i]
            scores = products[r, begin:end]
            if not is_any_low(scores, own, level, others, per_share, limits, limit):
                continue
            for c in range(end - begin):
                score, divisor = level + own[c] + scores[c], per_share + others[c]
                j, highest_of_both = first + c, max(highest[i], limits[c])
                if score <= highest_of_both * divisor and j != i:
                    score = max(score / divisor, 0.0)
                    highest[i] = insert(i, j, score, lists)
                    if is_whole and j > some[some.shape[0] - 1]:
                        highest[j] = insert(j, i, score, lists)


@jit(fastmath=REORDER)
def is_any_low(
    scores: NDArray[Any],
    own: NDArray[Any],
    level: float,
    others: NDArray[Any],
    per_share: float,
    limits: NDArray[Any],
    limit: float,
) -> bool:
    """Whether a few scores may be low enough for a list of either cluster."""
    n_low = 0
    for c in range(scores.shape[0]):
        score, divisor = level + own[c] + scores[c], per_share + others[c]
        # Counted, because neither a minimum nor "or" would be vectorised.
        n_low += 1 if score <= limit * divisor or score <= limits[c] * divisor else 0
    return n_low > 0


@jit(inline=False)
def insert(i: int, j: int, score: float, lists: Lists) -> float:
    """Add ``j`` to the near clusters of ``i``, if it is near enough; return the last score."""
    near, scores, place = lists.near[i], lists.scores[i], N_NEAR - 1
    if score < scores[place]:
        while place > 0 and scores[place - 1] > score:
            near[place], scores[place] = near[place - 1], scores[place - 1]
            place -= 1
        near[place], scores[place] = j, score
    return scores[N_NEAR - 1]


@jit
def set_costs(rows: Indices, n_merges: int, is_sure: bool, lists: Lists) -> None:
    """Set the costs of clusters whose lists are new; believe them if scores are exact enough."""
    for r in range(rows.shape[0]):
        i = rows[r]
        lists.beyond[i] = lists.scores[i, N_NEAR - 1]
        if is_sure:
            lists.beyond[i] = GONE
            look(i, n_merges, lists)
            lists.beyond[i] = max(lists.scores[i, N_NEAR - 1], lists.lowest[i])
        else:
            look(i, n_merges, lists)


@jit
def merge_known(n_merges: int, wanted: int, lists: Lists) -> int:
    """Merge until there were enough mergers, or a bound is the lowest; return their number."""
    while n_merges < wanted and lists.stop[0] == 0:
        one = lists.cheapest[1]
        other = lists.nearest[one]
        if other == NONE:
            break
        if lists.lowest[other] < GONE and lists.looked[one] >= max(
            lists.changed[one], lists.changed[other]
        ):
            n_merges += 1
            join(min(one, other), max(one, other), n_merges, lists)
        else:
            look(one, n_merges, lists)
    return n_merges


@jit(inline=False)
def look(i: int, n_merges: int, lists: Lists) -> None:
    """Set the lowest cost of a cluster, and with which one it is that."""
    lowest, nearest = GONE, NONE
    for c in range(N_NEAR):
        j = left_of(lists.near[i, c], lists)
        lists.near[i, c] = j
        if j != NONE:
            value = cost(i, j, lists)
            if value < lowest:
                lowest, nearest = value, j
    lists.looked[i] = n_merges
    choose(i, lowest, nearest, lists)


@jit(inline=False)
def join(a: int, b: int, n_merges: int, lists: Lists) -> None:
    """Merge two clusters into the first one, and list the nearest ones of both."""
    means, shares, own = lists.means, lists.shares, cost(a, b, lists)
    first, second = lists.beyond[a], lists.beyond[b]
    total = shares[a] + shares[b]
    average = (shares[a] * first + shares[b] * second) / total
    beyond = max(min(average, first + second - own), own)
    square = 0.0
    for t in range(means.shape[1]):
        mean = means[a, t] + shares[b] / total * (means[b, t] - means[a, t])
        means[a, t] = lists.points[a, t] = mean
        square += mean * mean
    shares[a], lists.squares[a], lists.squares[b] = total, square, np.inf
    lists.nearest[b] = a
    set_lowest(b, GONE, lists)
    found, costs, count = lists.found, lists.costs, 0
    for c in range(2 * N_NEAR):
        j = left_of(lists.near[a, c] if c < N_NEAR else lists.near[b, c - N_NEAR], lists)
        if j in (NONE, a) or is_among(j, found, count):
            continue
        value, place = cost(a, j, lists), count
        while place > 0 and costs[place - 1] > value:
            found[place], costs[place] = found[place - 1], costs[place - 1]
            place -= 1
        found[place], costs[place] = j, value
        count += 1
    for c in range(N_NEAR):
        lists.near[a, c] = found[c] if c < count else NONE
    lists.beyond[a] = min(beyond, costs[N_NEAR]) if count > N_NEAR else beyond
    lists.changed[a] = lists.looked[a] = n_merges
    choose(a, costs[0] if count > 0 else GONE, lists.near[a, 0], lists)


@jit
def is_among(j: int, found: Indices, count: int) -> bool:
    """Whether a number is one of the first ones."""
    place = 0
    while place < count and found[place] != j:
        place += 1
    return place < count


@jit
def cost(i: int, j: int, lists: Lists) -> float:
    """Return wᵢwⱼ/(wᵢ+wⱼ)·‖cᵢ−cⱼ‖²."""
    square = squared_difference(lists.means, i, lists.means, j)
    return square / (1.0 / lists.shares[i] + 1.0 / lists.shares[j])


@jit
def left_of(j: int, lists: Lists) -> int:
    """Return the cluster that one has become a part of."""
    while j != NONE and lists.squares[j] == np.inf:
        j = lists.nearest[j]
    return j


@jit
def choose(i: int, lowest: float, nearest: int, lists: Lists) -> None:
    """Take the lowest cost among what is listed, or the bound of all others if that is lower."""
    is_known = nearest != NONE and lowest <= lists.beyond[i]
    lists.nearest[i] = nearest if is_known else NONE
    set_lowest(i, lowest if is_known else lists.beyond[i], lists)


@jit(inline=False)
def set_lowest(i: int, value: float, lists: Lists) -> None:
    """Set a number of the tournament, and play the games of this cluster again."""
    lowest, cheapest = lists.lowest, lists.cheapest
    lowest[i] = value
    place = (lowest.shape[0] + i) // 2
    while place > 0:
        one, other = cheapest[2 * place], cheapest[2 * place + 1]
        cheapest[place] = one if lowest[one] <= lowest[other] else other
        place //= 2


def kernel_calls() -> list[Call]:
    """Return what merging many clusters calls, see :func:`~evomeans.compiled.ready.ready`."""
    lists, rows = (
        Lists.of(np.zeros((1, 1)), np.ones(1), np.zeros(1, np.int64)),
        np.zeros(1, np.intp),
    )
    calls = [
        Call(set_costs, (rows, 0, True, lists), 0.5),
        Call(merge_known, (0, 0, lists), 0.5),
    ]
    for precision in (np.float32, np.float64):
        grid, one = np.zeros((1, 1), precision), np.zeros(1, precision)
        calls.append(Call(list_block, (grid, rows, 0, True, one, one, one, lists), 0.5))
    return calls
