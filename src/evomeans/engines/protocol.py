"""The seam between the search and the engines.

The search sees sets of centres, never samples. An engine has no source of randomness: every draw
derives from uniform numbers that the search hands over. All centres that cross this seam live in
the engine's frame (:class:`~evomeans.engines.frame.Frame`); every inertia is in the units of the
data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import Frame
from evomeans.engines.rules import total_weights
from evomeans.typing import Flags, FloatArray, Indices, Integers, Labels

if TYPE_CHECKING:
    from evomeans.engines.sampling import Drawing

Handle = object
"""What an engine remembers of a refined solution. Opaque to everyone else."""


class Ability(StrEnum):
    """What some engines can do beyond K-means to its fixed point."""

    LIMITED_STEPS = "limited steps"
    SEEDING = "k-means++ seeding"
    SINGLE_MOVES = "single moves"
    SWAPS = "swaps"
    PARTS = "parts"
    MOMENTUM = "momentum"


class Abandoned(Exception):  # noqa: N818
    """Raised when the result of a refinement is no longer needed."""


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """How a solution is refined. The default is K-means to its fixed point.

    Parameters
    ----------
    max_iter : int, optional
        The most steps of K-means, each of which moves the centres to their means and assigns the
        samples anew. None continues to the fixed point. Empty clusters are refilled in any case,
        and as many steps follow. Needs ``Ability.LIMITED_STEPS``.
    single_moves : bool
        Whether Hartigan's moves follow K-means: samples change their cluster, one at a time, where
        that lowers the sum of squares although another centre is the closest. K-means and moves
        alternate until neither finds anything. Needs ``Ability.SINGLE_MOVES``.
    swaps : int
        How often, after all this, to try and put one centre elsewhere; what does not lower the sum
        of squares is undone. None are made if ``max_iter`` is given. Needs ``Ability.SWAPS``.
    momentum : bool
        Whether centres go beyond the means on their way to the fixed point, see
        :mod:`~evomeans.engines.course`. Not if ``max_iter`` is given. Needs
        ``Ability.MOMENTUM``.
    """

    max_iter: int | None = None
    single_moves: bool = False
    swaps: int = 0
    momentum: bool = False

    @property
    def needs(self) -> frozenset[Ability]:
        """The abilities that an engine must have for it."""
        wanted = {
            Ability.LIMITED_STEPS: self.max_iter is not None,
            Ability.SINGLE_MOVES: self.single_moves,
            Ability.SWAPS: self.swaps > 0,
            Ability.MOMENTUM: self.momentum,
        }
        return frozenset(ability for ability, is_wanted in wanted.items() if is_wanted)


KMEANS = LocalSearch()
"""K-means to its fixed point and nothing else; every engine can do it."""


NOWHERE = np.empty((0, 0))
"""The centres of an order that is not placed yet."""


# Of fields that checkpoints leave out. They store orders that are placed.
NOT_STORED = {"is_stored": False}


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A solution that is to be made: where it begins, and how it is refined.

    It begins with ``centers``; or, until it is placed, with what ``parents`` or a ``founding`` make
    of the ``numbers`` that were drawn for it. Engines refine orders that are placed.

    Parameters
    ----------
    centers : (k, d) array
        In the engine's frame. Never modified.
    alpha : float
        Weight of the distance part in the mixture (1−α)·wᵢ/Σw + α·wᵢδᵢ/Σwδ from which a sample is
        drawn whenever a centre needs a new place (the paper's eq. 5). δ is the distance of a
        sample to its closest centre, raised to ``power``.
    quantile : float
        The uniform number in [0, 1) that makes the draw. Draws for empty clusters
        (:func:`~evomeans.engines.rules.repair_draw`) and the random numbers of swaps derive from
        it.
    removed : int
        The centre to relocate: it is dropped, then put onto a drawn sample. −1 for none.
    power : {1, 2}
        Distances or squared distances in the mixture.
    parent : handle, optional
        Of a solution whose centres are mostly those of ``centers``, at the same positions. It may
        save work; it never changes the result.
    local_search : LocalSearch
        How it is refined.
    least_explained : float
        Σ Wⱼ‖cⱼ‖² that the refinement has to come to, Wⱼ being the weights of clusters: the larger
        it is, the lower is the inertia. A refinement with momentum and without swaps is given up
        where that is hopeless (:mod:`~evomeans.engines.course`). 0 for one that is not.
    made_by : str
        The operator that placed it.
    is_independent : bool
        Whether it owes nothing to any other solution, as founders do that are drawn.
    parents : pair of Individual, optional
        Two solutions to cross (:class:`~evomeans.search.Individual`).
    crossovers : sequence of Crossing
        Tried in this order, until one makes a child. No centre is relocated if that is complete.
    divides : bool
        Whether relocation divides a cluster (:mod:`~evomeans.search.crossover`).
    founding : Founding, optional
        Places a founder.
    numbers : array
        Uniform numbers: one for each cluster of a child, or what the founding has drawn.
    """

    centers: FloatArray = field(default_factory=lambda: NOWHERE)
    alpha: float = 1.0
    quantile: float = 0.5
    removed: int = -1
    power: int = 1
    parent: Handle | None = None
    local_search: LocalSearch = KMEANS
    least_explained: float = 0.0
    made_by: str = ""
    is_independent: bool = False
    parents: tuple[Any, Any] | None = None
    crossovers: Sequence[Any] = ()
    divides: bool = field(default=False, metadata=NOT_STORED)
    founding: Any = None
    numbers: FloatArray = field(default_factory=lambda: NOWHERE, metadata=NOT_STORED)

    def placed(self, centers: FloatArray, made_by: str, **changes: Any) -> Order:
        """Return the order with centres, and without what they were made of."""
        changes |= {"parents": None, "crossovers": (), "founding": None, "numbers": NOWHERE}
        return replace(self, centers=centers, made_by=made_by, **changes)


def require_abilities(starts: Sequence[Order], abilities: frozenset[Ability], engine: str) -> None:
    """Refuse starts that ask for more than an engine can do."""
    for start in starts:
        if missing := start.local_search.needs - abilities:
            raise NotImplementedError(
                f"The {engine} engine cannot do {', '.join(sorted(missing))}. It can do "
                f"{', '.join(['K-means', *sorted(abilities)])}."
            )


class Way(IntEnum):
    """How two solutions are crossed; :mod:`evomeans.search.crossover` describes each."""

    PARTS = 0
    MERGING = 1
    MATCHING = 2
    SQUARED_MATCHING = 3


@dataclass(frozen=True, slots=True)
class Refinement:
    """Where a local search ended: a fixed point, unless ``max_iter`` ended it before.

    Parameters
    ----------
    centers : (k, d) array
        In the engine's frame: means of their clusters. If ``max_iter`` ended K-means, they are the
        means of what their clusters were before the last assignment.
    inertia : float
        Weighted sum of squared distances of the samples to their closest centre; infinite if the
        refinement was given up. Then nothing else counts. If it is not complete: an upper bound.
    cluster_weights : (k,) array
        Total sample weight of each cluster; zero only if the data has fewer than k distinct points.
    n_iter : int
        Assignments of all samples that K-means made.
    handle : handle, optional
        Droppable memory of this solution, to be given as ``Order.parent``.
    labels : (n,) array, optional
        The cluster of each sample, −1 for none. Only models give it in which a sample need not be
        in the cluster of its closest centre.
    way : Way, optional
        How the engine has crossed the parents, if it has.
    is_complete : bool
        Whether it was allowed to end. If not, only the centres count, which are where it was
        stopped, and the bound of the inertia.
    """

    centers: FloatArray
    inertia: float
    cluster_weights: FloatArray
    n_iter: int
    handle: Handle | None = None
    labels: Labels | None = None
    way: Way | None = None
    is_complete: bool = True

    @classmethod
    def stopped(
        cls, order: Order, reached: FloatArray | None = None, most: float = math.inf
    ) -> Refinement:
        """Return the refinement of an order that was stopped; ``most`` bounds its inertia."""
        centers = order.centers if reached is None else reached
        return cls(centers, most, np.zeros(len(centers)), 0, is_complete=False)

    @property
    def is_given_up(self) -> bool:
        """Whether K-means was abandoned because it could not reach the required inertia."""
        return self.is_complete and math.isinf(self.inertia)


class Engine(ABC):
    """What the search and the estimators ask of an engine, and how most engines answer.

    Engines without an ability inherit refusals of what belongs to it.

    Attributes
    ----------
    n_samples : int
        Number of rows held.
    weights : (n,) array, optional
        Their weights; None for equal ones. Engines that hold none answer :meth:`weigh` themselves.
    total_weight : float
        Sum of the sample weights.
    frame : Frame
        The shifted and scaled coordinates in which the engine works.
    abilities : frozenset of Ability
        What it can do beyond K-means to its fixed point.
    batch : int
        How many starts the engine refines together for best speed.
    n_jobs : int
        How many threads of this process it may use.
    most_sampled : int
        How many samples an engine over some of them may have; 0 if there is none.
    n_directions : sequence of int
        Numbers of leading directions that samples can be projected onto, the smallest first. None
        where K-means on the projected samples would save too little time to be worth it.
    is_prepared : bool
        Whether it has taken in its samples, as far as that helps seeding and refinements.
    is_abandoned : bool
        Whether it has been abandoned.
    on_sphere : bool
        Whether samples and centres have length one.
    stop : (1,) array
        Not zero while it is abandoned, for kernels that take long. Copies of an engine share it:
        workers are abandoned together.
    """

    n_samples: int
    weights: FloatArray | None
    total_weight: float
    frame: Frame
    abilities: frozenset[Ability] = frozenset()
    batch: int
    n_jobs: int = 1
    most_sampled: int = 0
    n_directions: Sequence[int] = ()
    is_prepared: bool = True
    is_abandoned: bool = False
    on_sphere: bool = False
    stop: Integers

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Make the flag before any other thread can see the engine."""
        self = super().__new__(cls)
        self.stop = np.zeros(1, np.int64)
        return self

    @abstractmethod
    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at the given quantiles of the cumulated sample weight, shape (q, d)."""

    @abstractmethod
    def refine(self, orders: Sequence[Order]) -> list[Refinement]:
        """Relocate where asked, then run the local search of every order."""

    @abstractmethod
    def assign(self, centers: FloatArray) -> tuple[Any, float]:
        """Label of the closest centre of every sample (lowest index on ties), and the inertia."""

    def labels(self, centers: FloatArray) -> Any:
        """Labels alone, which some engines have sooner."""
        return self.assign(centers)[0]

    @abstractmethod
    def distances(self, centers: FloatArray) -> Any:
        """Euclidean distances of every sample to every centre, shape (n, k), in data units."""

    def cluster_sizes(self, centers: FloatArray) -> NDArray[np.int64]:
        """How many samples are closest to each centre."""
        sizes: NDArray[np.int64] = np.bincount(self.labels(centers), minlength=len(centers))
        return sizes

    def weigh(self, centers: FloatArray) -> tuple[FloatArray, float]:
        """Total weight of the samples that are closest to each centre, and the inertia."""
        labels, inertia = self.assign(centers)
        return total_weights(labels, self.weights, len(centers)), inertia

    def labelling_seconds(self, n_clusters: int) -> float:
        """Estimate the seconds to label all samples; zero where that is unknown or negligible."""
        return 0.0

    def round_size(self, n_clusters: int) -> int:
        """Return how many solutions to make in a round: ``batch``, or fewer if they take long."""
        return self.batch

    def offspring(self, order: Order, ways: Sequence[Way]) -> Refinement | None:
        """Cross the parents by the first of ``ways`` that succeeds, and refine the child.

        The result is what the crossovers and :meth:`refine` would give, to the last bit, but is
        there sooner. None if that is not possible: then they have to be called one by one.
        """
        return None

    # ---- threads, and work that is not needed any more

    def workers(self, n_clusters: int, most: int) -> Sequence[Engine]:
        """Return engines over the same samples for up to ``most`` refinements at a time.

        Each may be used by one thread at a time. It is the engine itself, and no other, where more
        would not help.
        """
        return [self]

    def takes_long(self, n_clusters: int) -> bool:
        """Whether a refinement may take so long that it should be abandoned when time is up."""
        return False

    def abandon(self, is_abandoned: bool) -> None:
        """Stop what another thread does soon, and all that follows until it is called with False.

        A refinement returns where it is, and is not complete. Seeding ends with the centres drawn
        so far; the others are samples drawn by their weight. Everything else raises
        :class:`Abandoned`. Engines whose refinements do not take long need not stop.
        """
        self.is_abandoned = is_abandoned
        self.stop[0] = is_abandoned

    def check_abandoned(self) -> None:
        """End a refinement whose result is not needed any more."""
        if self.is_abandoned:
            raise Abandoned

    def close(self) -> None:  # noqa: B027
        """Release what the engine holds outside this process."""

    # ---- starts

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Draw k centres by k-means++, shape (k, d). Needs ``Ability.SEEDING``.

        The first is drawn by wᵢ, each later one by wᵢ·D²ᵢ, with D the distance of a sample to the
        closest centre drawn before. ``quantiles`` are the uniform numbers of the draws, of shape
        (k,), or (k, t) to draw t candidates for each centre but the first and to take the one that
        lowers Σ wD² most.
        """
        raise NotImplementedError

    def seeds_among(self, places: FloatArray, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Draw the centres of several founders by k-means++ among the samples at some quantiles.

        ``draws`` are the uniform numbers of each founder, of shape (k, t) as in :meth:`seed`.
        Engines without ``Ability.SEEDING`` can do it.
        """
        raise NotImplementedError

    def quick_looks(self, n_clusters: int, n_trials: int, n_directions: int = 0) -> float:
        """How many looks at all samples the seeding of :meth:`quick_seed` takes.

        Infinite if it saves no time.
        """
        return math.inf

    def quick_seed(self, quantiles: FloatArray, n_directions: int = 0) -> FloatArray:
        """Return centres sooner than :meth:`seed`, perhaps seeded in leading directions."""
        raise NotImplementedError

    def quick_steps(self, centers: FloatArray, labels: Labels | None = None) -> FloatArray:
        """Return centres after K-means that needs no preparation, and ends before a fixed point.

        The centres may be those of clusters with ``labels``. An abandoned engine returns what it
        has come to. By default, K-means runs as always.
        """
        return self.refine([Order(centers)])[0].centers

    def unite(self, starts: Sequence[FloatArray]) -> FloatArray:
        """Merge what a few iterations of K-means come to from each of some starts.

        Needs rounds that are smaller than ``batch``. An abandoned engine returns centres that it
        has come to.
        """
        raise NotImplementedError

    # ---- engines over some samples, or over projected ones

    def subsample(self, drawing: Drawing) -> Engine:
        """Return an engine over some of the samples, in the same frame.

        If they are drawn without centres, it has ``Ability.SEEDING``.
        """
        raise NotImplementedError

    def projected(self, n_directions: int) -> Engine:
        """Return an engine over all samples, projected onto one of ``n_directions``.

        Its frame is another one. It has ``Ability.SEEDING`` and can be sampled.
        """
        raise NotImplementedError

    def means(self, labels: Labels, others: FloatArray) -> FloatArray:
        """Return the means of clusters, ``others`` for those without weight; even if abandoned."""
        raise NotImplementedError

    # ---- crossovers

    def merge(
        self, centers: FloatArray, weights: FloatArray, k: int, stop: Integers | None = None
    ) -> tuple[FloatArray, FloatArray, Indices]:
        """Merge clusters until k are left; see :func:`~evomeans.kernels.ward.pnn_merge`."""
        # Imported late: importing the estimator loads no compiler.
        from evomeans.kernels.ward import pnn_merge

        return pnn_merge(centers, weights, k, stop)

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        """Combine the better versions of all parts in which two solutions differ.

        A part is a set of samples that fills some clusters of each solution. Both are fixed points
        of K-means, and their handles save work. Needs ``Ability.PARTS``.

        Returns
        -------
        gone, taken : (k,) arrays of bool, or None
            The centres of ``first`` that give way, and as many of ``second`` that replace them.
            None if the result would not be better than both.
        """
        raise NotImplementedError
