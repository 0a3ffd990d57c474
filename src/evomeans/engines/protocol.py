"""The seam between the search and the engines.

The search sees sets of centres, never samples. An engine holds the samples, draws no random number
itself and answers a handful of verbs. All centres that cross this seam live in the engine's frame
(:class:`~evomeans.engines.frame.Frame`); every inertia is in the units of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import Frame

FloatArray = NDArray[np.float64]
Flags = NDArray[np.bool_]
Handle = object
"""What an engine remembers of a refined solution. Opaque to everyone else."""


@dataclass(frozen=True, slots=True)
class Start:
    """A set of centres from which K-means is to be run.

    Parameters
    ----------
    centers : (k, d) array
        In the engine's frame. Never modified.
    alpha : float
        Weight of the distance part in the mixture (1−α)·wᵢ/Σw + α·wᵢδᵢ/Σwδ from which a sample is
        drawn whenever a centre needs a new place (the paper's eq. 5). δ is the distance of a
        sample to its closest centre, raised to ``power``.
    quantile : float
        The uniform number in [0, 1) that makes the draw; repairs of empty clusters derive theirs
        from it (:func:`~evomeans.engines.rules.repair_draw`).
    removed : int
        The centre to relocate: it is dropped, then put onto a drawn sample. −1 for none.
    power : {1, 2}
        Distances or squared distances in the mixture.
    parent : handle, optional
        Of a solution whose centres are mostly those of ``centers``, at the same positions. It may
        save work; it never changes the result.
    max_iter : int, optional
        Steps of K-means at most, each of which moves the centres to their means and assigns the
        samples anew. None goes on to the fixed point. Empty clusters are repaired in any case, and
        as many steps follow. Only a :class:`GuidingEngine` knows about it; others refuse.
    single_moves : bool
        Whether Hartigan's moves follow K-means: samples change their cluster, one at a time, where
        that lowers the sum of squares although another centre is the closest. K-means and moves
        take turns until neither finds anything. None are made before K-means is at its fixed
        point; likewise for a :class:`GuidingEngine` only.
    swaps : int
        How often, after all this, to try and put one centre elsewhere; what does not lower the sum
        of squares is undone. The draws derive from ``quantile``. None without the fixed point, that
        is with ``max_iter``. For a :class:`GuidingEngine` only, and one that has no cheap way to do
        so makes none.
    """

    centers: FloatArray
    alpha: float = 1.0
    quantile: float = 0.5
    removed: int = -1
    power: int = 1
    parent: Handle | None = None
    max_iter: int | None = None
    single_moves: bool = False
    swaps: int = 0


def require_plain_kmeans(starts: Sequence[Start], engine: str) -> None:
    """Refuse what an engine does not do that runs K-means to its fixed point and nothing else."""
    if any(s.max_iter is not None or s.single_moves or s.swaps for s in starts):
        raise NotImplementedError(f"The {engine} engine runs K-means to its fixed point only.")


@dataclass(frozen=True, slots=True)
class Refinement:
    """A fixed point of K-means, and of single moves if wanted, or where ``max_iter`` ended it.

    Parameters
    ----------
    centers : (k, d) array
        In the engine's frame: means of their clusters, or where ``max_iter`` ended K-means, of
        what their clusters were before the last assignment.
    inertia : float
        Weighted sum of squared distances of the samples to their closest centre.
    cluster_weights : (k,) array
        Total sample weight of each cluster; zero only if the data has fewer than k distinct points.
    n_iter : int
        Assignments of all samples that K-means made.
    handle : handle, optional
        Droppable memory of this solution, to be given as ``Start.parent``.
    """

    centers: FloatArray
    inertia: float
    cluster_weights: FloatArray
    n_iter: int
    handle: Handle | None = None


class Engine(Protocol):
    """What the search and the estimator ask of an engine."""

    @property
    def n_samples(self) -> int:
        """Number of rows held."""
        ...

    @property
    def batch(self) -> int:
        """How many starts the engine likes to refine together."""
        ...

    @property
    def is_plain(self) -> bool:
        """Whether it runs K-means to its fixed point, and is no :class:`GuidingEngine`."""
        ...

    @property
    def frame(self) -> Frame:
        """The shifted and scaled coordinates in which the engine works."""
        ...

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at the given quantiles of the cumulated sample weight, shape (q, d)."""
        ...

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """Relocate where asked, then run K-means from every start, as far as it says."""
        ...

    def assign(self, centers: FloatArray) -> tuple[Any, float]:
        """Label of the closest centre of every sample (lowest index on ties), and the inertia."""
        ...

    def distances(self, centers: FloatArray) -> Any:
        """Euclidean distances of every sample to every centre, shape (n, k), in data units."""
        ...


class GuidingEngine(Engine, Protocol):
    """An engine that does more than K-means to its fixed point.

    It heeds ``Start.max_iter``, ``Start.single_moves`` and ``Start.swaps``, and tells where centres
    are wanted. The deep strategy asks for some of it where there is such an engine, the rivals for
    the rest.
    """

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Draw k centres by k-means++, shape (k, d).

        The first is drawn by wᵢ, each later one by wᵢ·D²ᵢ, with D the distance of a sample to the
        closest centre drawn before. ``quantiles`` are the uniform numbers of the draws, of shape
        (k,), or (k, t) to draw t candidates for each centre but the first and to take the one that
        lowers Σ wD² most.
        """
        ...

    def errors_and_utilities(
        self, centers: FloatArray, power: int = 2
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the samples of each centre cost, and what more they would cost without it.

        That is Σ wδ₁ and Σ w(δ₂ − δ₁) over the samples that are closest to it, in data units.
        δ₁ and δ₂ are the distances of a sample to the closest and the second closest centre, raised
        to ``power``, 1 or 2. The utility of a single centre is infinite.
        """
        ...

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        """Put the better versions of all parts together in which two solutions differ.

        A part is a set of samples that fills some clusters of one solution, and some of the other.

        Parameters
        ----------
        first, second : (k, d) arrays
            Fixed points of K-means.
        first_handle, second_handle : handle, optional
            Theirs; they save work.

        Returns
        -------
        gone, taken : (k,) arrays of bool, or None
            As many centres of ``first`` that give way, and of ``second`` that replace them. None if
            the result would not be better than both.
        """
        ...
