"""Big-means (Mussabayev et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from evomeans.engines.protocol import Ability, Engine, LocalSearch, Order, Refinement
from evomeans.engines.sampling import Drawing
from evomeans.estimators.parameters import check_int, check_optional_int
from evomeans.typing import FloatArray
from lab.baselines.base import AnytimeBaseline
from lab.baselines.engine import BaselineEngine

# Rows of a chunk if the user does not say: in all, and for each cluster.
LEAST_ROWS, ROWS_PER_CLUSTER = 1000, 50
# How often a chunk is drawn that is large enough.
MOST_DRAWS = 20


@dataclass(eq=False, repr=False, kw_only=True)
class BigMeans(AnytimeBaseline):
    """Big-means: K-means on one random chunk of the samples after another [1]_.

    K-means on a chunk starts from the best centres so far. They are replaced if the sum of squares
    of the new ones on their chunk is lower than that of the old ones on theirs. So every chunk
    shakes the solution a little. The time does not depend on the number of samples, apart from that
    of the last assignment.

    Parameters
    ----------
    chunk_size : int, default=None
        About how many samples a chunk has, at least one for each cluster. None means 1000, or 50
        for each cluster if these are more. The publication chooses it for each data set.
    n_chunks : int, default=10000
        Chunks, at most. Limit the time with ``max_time``.
    n_candidates : int, default=3
        Samples among which k-means++ chooses each centre of the first start.
    kmeans_iterations : int, default=300
        Iterations of K-means on a chunk, at most.

    See Also
    --------
    evomeans.HGMeans : Also begins on samples of large data.
    MultiStartKMeans : K-means on all samples.

    Notes
    -----
    Every sample is in a chunk with the same probability, or with one in proportion to its weight.
    So sizes vary a little, and sums of squares are scaled to all samples. A cluster that is empty
    in a chunk gets a sample drawn by D². The authors draw three candidates there too, and end
    K-means when an iteration gains less than 1e-4. A chunk that does not replace the solution
    repeats it in ``history_``. The best solution is refined on all samples at the end. If a chunk
    holds all of them, nothing would shake the solution, so that every chunk begins with k-means++.

    References
    ----------
    .. [1] R. Mussabayev, N. Mladenović, B. Jarboui and R. Mussabayev, "How to use k-means for big
       data clustering?", Pattern Recognition 137, 109269, 2023.
       `doi:10.1016/j.patcog.2022.109269 <https://doi.org/10.1016/j.patcog.2022.109269>`_

    Examples
    --------
    >>> from lab.baselines import BigMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = BigMeans(n_clusters=2, n_chunks=5, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 6, 'max_offspring')
    """

    chunk_size: int | None = None
    n_chunks: int = 10_000
    n_candidates: int = 3
    kmeans_iterations: int = 300

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if check_optional_int("chunk_size", self.chunk_size) is not None:
            check_int("chunk_size", self.chunk_size, at_least=1)
        check_int("n_chunks", self.n_chunks, at_least=1)
        check_int("n_candidates", self.n_candidates, at_least=1)
        check_int("kmeans_iterations", self.kmeans_iterations, at_least=1)

    def _abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.SEEDING})

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make one solution per chunk, and at last refine the best on all samples."""
        size = self.chunk_size or max(LEAST_ROWS, ROWS_PER_CLUSTER * self.n_clusters)
        size = max(size, self.n_clusters)
        is_all = size >= engine.n_samples
        best, lowest = None, np.inf
        for _ in range(self.n_chunks):
            chunk = engine if is_all else drawn_chunk(engine, size, self.n_clusters, rng)
            uniforms, quantile = rng.random((self.n_clusters, self.n_candidates)), rng.random()
            centers = chunk.seed(uniforms) if best is None or is_all else best.centers
            found = self._refined(chunk, centers, quantile)
            if best is None or found.inertia < lowest:
                lowest = found.inertia
                best = found if is_all else on_all(engine, found)
            yield replace(best, n_iter=found.n_iter)
        assert best is not None
        yield from engine.refine([Order(best.centers, alpha=1.0, power=2)])

    def _refined(self, chunk: Engine, centers: FloatArray, quantile: float) -> Refinement:
        steps = LocalSearch(max_iter=self.kmeans_iterations)
        start = Order(centers, alpha=1.0, quantile=quantile, power=2, local_search=steps)
        return chunk.refine([start])[0]


def drawn_chunk(
    engine: BaselineEngine, size: int, n_clusters: int, rng: np.random.Generator
) -> Engine:
    """Draw a chunk of about this size, with a sample for each cluster at least.

    If most samples weigh so little that this fails again and again, it is all of them.
    """
    for _ in range(MOST_DRAWS):
        chunk = engine.subsample(Drawing(int(rng.integers(2**63)), size))
        if chunk.n_samples >= n_clusters:
            return chunk
    return engine


def on_all(engine: BaselineEngine, found: Refinement) -> Refinement:
    """Return a solution of a chunk with its inertia on all samples."""
    labels, inertia = engine.assign(found.centers)
    weights = np.bincount(np.asarray(labels), engine.weights, len(found.centers))
    return Refinement(found.centers, inertia, weights.astype(np.float64), found.n_iter)
