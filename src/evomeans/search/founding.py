"""Where the members of a new population begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from evomeans.engines.protocol import Abandoned, Ability, Engine, Order
from evomeans.engines.sampling import Drawing
from evomeans.engines.workers import watched
from evomeans.typing import FloatArray

# Samples that an engine hands out if it cannot seed among all: at least, and for each centre.
FEW_SAMPLES, SAMPLES_PER_CENTER = 2000, 20
MEAN_OF = 4  # samples of a random mean
# What a quick start takes, in looks at its samples: K-means, K-means after k-means++, and each
# candidate of greedy k-means++.
LOOKS, LOOKS_SEEDED, LOOKS_OF_A_CANDIDATE = 4, 7, 0.9
# How many samples it has for each centre: at least, at least for greedy k-means++, and at most.
FEWEST_PER_CENTER, FEWEST_IF_GREEDY, MOST_PER_CENTER = 4, 8, 40
# Products that take as long as to order a sample for K-means, for each feature, or each leading
# direction if there are many. With few features other things take longer, and quick steps gain
# nothing.
TO_ORDER, MANY_FEATURES, LEADING, FEW_FEATURES = 5_000, 128, 32, 32


class Founding(Protocol):
    """A way to begin solutions; the founders of a round are placed together."""

    @property
    def name(self) -> str:
        """Name of the founding in the records."""

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw the random numbers of one founder."""

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Turn the numbers of several founders into their centres."""


@dataclass(frozen=True)
class RandomSamples:
    """k distinct samples, drawn by their weight (section 3.1 of the paper)."""

    name: ClassVar[str] = "random samples"

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw distinct slots of equal weight: distinct samples, unless one fills two slots."""
        # Samples that must stay together can be fewer than the clusters.
        n_slots = max(n_samples, n_clusters)
        return (rng.choice(n_slots, n_clusters, replace=False) + 0.5) / n_slots

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Look the samples up."""
        drawn = engine.samples_at(np.concatenate(draws))
        return list(drawn.reshape(len(draws), -1, drawn.shape[1]))


@dataclass(frozen=True)
class RandomMeans:
    """Each centre is the mean of a few samples, drawn by their weight.

    Models with outliers, links or limits can have optima to which no centres on samples lead. And
    where there are few different samples, this is how founders can differ at all.
    """

    name: ClassVar[str] = "random means"

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw samples, not necessarily different ones."""
        return rng.random((n_clusters, MEAN_OF))

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Average the samples."""
        numbers = np.concatenate(draws)
        # One after the other: samples that are sparse take no more memory than centres.
        total = engine.samples_at(numbers[:, 0]).copy()
        for place in range(1, MEAN_OF):
            total += engine.samples_at(numbers[:, place])
        return list((total / MEAN_OF).reshape(len(draws), -1, total.shape[1]))


@dataclass(frozen=True)
class KMeansPlusPlus:
    """k samples far from each other, drawn by k-means++; if ``greedy``, each the best of a few.

    An engine that cannot draw like this among all samples draws among some, drawn by their weight.
    """

    greedy: bool = False
    name: ClassVar[str] = "k-means++"

    def n_trials(self, n_clusters: int) -> int:
        """Return how many candidates each centre has: as many as in scikit-learn."""
        return 2 + int(math.log(n_clusters)) if self.greedy else 1

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw a number for each candidate."""
        return rng.random((n_clusters, self.n_trials(n_clusters)))

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Draw samples by their distances."""
        if Ability.SEEDING in engine.abilities:
            return [engine.seed(quantiles) for quantiles in draws]
        # All founders of a round draw among the same samples: these may come from far away.
        size = max(FEW_SAMPLES, SAMPLES_PER_CENTER * len(draws[0]))
        if size < engine.n_samples:
            quantiles = np.random.default_rng(int(draws[0][0, 0] * 2.0**53)).random(size)
        else:
            quantiles = (np.arange(engine.n_samples) + 0.5) / engine.n_samples
        return engine.seeds_among(quantiles, draws)


@dataclass(frozen=True)
class MergedStarts:
    """A few iterations of K-means from each of two draws of random samples, merged into one.

    K-means ends lower from there than from either draw. Only engines with small rounds can do it.
    """

    name: ClassVar[str] = "merged starts"

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw two sets of distinct samples."""
        return np.stack([RandomSamples().draw(n_samples, n_clusters, rng) for _ in range(2)])

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Look the samples up, and let the engine unite them."""
        return [engine.unite(RandomSamples().place(engine, list(numbers))) for numbers in draws]


@dataclass(frozen=True)
class QuickSeeding(KMeansPlusPlus):
    """The engine's own start for large samples (:meth:`Engine.quick_seed`)."""

    greedy: bool = True
    n_directions: int = 0  # leading directions in which it seeds; 0 for all features
    name: ClassVar[str] = "quick start"

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Let the engine seed."""
        return [engine.quick_seed(quantiles, self.n_directions) for quantiles in draws]


@dataclass(frozen=True)
class ProjectedStart(RandomSamples):
    """Random samples, with which all are compared once in leading directions, and quick steps.

    If the engine is abandoned before, the samples are compared in all features.
    """

    n_directions: int = LEADING
    name: ClassVar[str] = "quick start"

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Compare all samples with some of them."""
        return [self._place(engine, numbers) for numbers in draws]

    def _place(self, engine: Engine, numbers: FloatArray) -> FloatArray:
        centers = engine.samples_at(numbers)
        try:
            space = engine.projected(self.n_directions)
            labels = space.labels(space.samples_at(numbers))
        except Abandoned:
            return engine.quick_steps(centers)
        return engine.quick_steps(engine.means(labels, centers), labels)


@dataclass(frozen=True)
class QuickStart:
    """K-means on some of the samples, drawn by their weight: for a first answer in little time.

    As soon as the engine is abandoned, the centres are those that K-means has come to.
    """

    size: int  # samples to expect; 0 for none, and centres on random samples
    seeded: bool  # whether there is time for k-means++ among these
    greedy: bool = False
    with_steps: bool = False  # whether quick steps on all samples follow
    name: ClassVar[str] = "quick start"

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw distinct slots of equal weight, and a number for each candidate of k-means++."""
        slots = RandomSamples().draw(n_samples, n_clusters, rng)
        candidates = KMeansPlusPlus(self.greedy).draw(n_samples, n_clusters, rng)
        return np.column_stack([slots, candidates])

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Run K-means on some samples."""
        return [self._place(engine, numbers) for numbers in draws]

    def _place(self, engine: Engine, numbers: FloatArray) -> FloatArray:
        slots, candidates = numbers[:, 0], numbers[:, 1:]
        centers = engine.samples_at(slots)
        try:
            if self.size:
                centers = self._improved(engine, centers, candidates, int(slots[0] * 2.0**53))
        except Abandoned:
            # With many features, samples are far worse centres than the means of their clusters.
            return engine.quick_steps(centers) if has_many_features(engine) else centers
        return engine.quick_steps(centers) if self.with_steps else centers

    def _improved(
        self, engine: Engine, centers: FloatArray, candidates: FloatArray, seed: int
    ) -> FloatArray:
        """Return what K-means on some samples comes to; the centres if these are too few."""
        # In order, many samples of few features are compared with few centres each.
        drawing = Drawing(seed, self.size, in_order=not self.with_steps)
        sample, k = engine.subsample(drawing), len(centers)
        if sample.n_samples < k:
            return centers

        def improve() -> FloatArray:
            if not self.seeded:
                return sample.quick_steps(sample.samples_at((np.arange(k) + 0.5) / k))
            return sample.refine([Order(sample.seed(candidates))])[0].centers

        return watched(sample, improve, lambda: engine.is_abandoned)


def found(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Place the founders among some orders; those of a kind are placed together."""
    placed = list(orders)
    for founding in {one.founding for one in orders if one.founding is not None}:
        places = [i for i, one in enumerate(orders) if one.founding == founding]
        centers = founding.place(engine, [orders[i].numbers for i in places])
        for i, own in zip(places, centers, strict=True):
            placed[i] = orders[i].placed(own, founding.name, is_independent=True)
    return placed


def quick_start(engine: Engine, n_clusters: int, looks: float) -> Founding:
    """Return a start that takes no longer than so many looks at all samples.

    Quick steps follow it if samples have many features and are not in order yet.
    """
    n_trials = KMeansPlusPlus(greedy=True).n_trials(n_clusters)
    for n_directions in (*reversed(engine.n_directions), *([] if engine.n_directions else [0])):
        if engine.quick_looks(n_clusters, n_trials, n_directions) <= looks:
            return QuickSeeding(n_directions=n_directions)
    start = _start_on_some(engine, n_clusters, looks)
    if start.greedy or not engine.n_directions:
        return start
    return ProjectedStart(engine.n_directions[0])


def has_many_features(engine: Engine) -> bool:
    """Whether quick steps gain more than K-means, which has to put samples into order first."""
    return not engine.is_prepared and len(engine.frame.shift) >= FEW_FEATURES


def looks_to_begin(engine: Engine, n_clusters: int) -> float:
    """Return how long K-means on all samples takes to begin, in looks at them."""
    if not has_many_features(engine):
        return 0.0
    n_features = len(engine.frame.shift)
    n_ordered = LEADING if n_features >= MANY_FEATURES else n_features
    return TO_ORDER * n_ordered / (n_clusters * n_features)


def _start_on_some(engine: Engine, n_clusters: int, looks: float) -> QuickStart:
    n_looks = engine.n_samples * looks
    n_trials = KMeansPlusPlus(greedy=True).n_trials(n_clusters)
    size = n_looks / (LOOKS + LOOKS_OF_A_CANDIDATE * n_trials)
    greedy = size >= FEWEST_IF_GREEDY * n_clusters
    if not greedy:
        size = n_looks / LOOKS_SEEDED
    fewest = FEWEST_PER_CENTER * n_clusters
    seeded = greedy or size >= fewest
    if not seeded:
        size = n_looks / LOOKS
    # Half of the samples tell nearly as much as all, and too few tell nothing.
    most = min(MOST_PER_CENTER * n_clusters, engine.n_samples // 2, engine.most_sampled)
    size = min(max(size, fewest), most)
    # If there is no time for k-means++, there is none to compare all samples.
    with_steps = seeded and has_many_features(engine)
    return QuickStart(int(size) if size >= fewest else 0, seeded, greedy, with_steps)
