"""The base class of models other than plain k-means."""

from __future__ import annotations

import os
import re
from dataclasses import KW_ONLY, dataclass
from inspect import cleandoc
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import is_dask
from evomeans.engines.frame import is_sparse
from evomeans.estimators.callbacks import with_callbacks
from evomeans.estimators.parameters import DEFAULT_CERTAINTY, DEFAULT_MAX_OFFSPRING
from evomeans.estimators.searching import SearchingEstimator
from evomeans.search import Strategy

INHERITED = ("Parameters", "Attributes")


def completed(cls: type, root: type) -> str:
    """Return the docstring of ``cls`` with the entries of its base classes, up to ``root``.

    The entries of Parameters and Attributes appear in the order of inheritance, which for the
    fields of dataclasses is the order of the signature. Where a class documents a name again, its
    own text replaces the inherited one.
    """
    lineage = [base for base in reversed(cls.__mro__) if issubclass(base, root)]
    summary, own = _sections(cls.__doc__)
    sections = {}
    for title in INHERITED:
        bodies = [_sections(base.__doc__)[1].get(title, "") for base in lineage]
        # An entry begins with a line that is not indented: "name : type".
        entries = [entry for body in bodies for entry in re.split(r"\n+(?=\S)", body) if entry]
        last = {entry.partition(" :")[0]: entry for entry in entries}
        sections[title] = "\n\n".join(last.values())
    sections |= {title: own[title] for title in own if title not in INHERITED}
    texts = [f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items() if body]
    return "\n\n".join(filter(None, [summary, *texts]))


def _sections(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into its summary and its sections by title."""
    summary, *parts = re.split(r"^(\S.*)\n-{3,}\n", cleandoc(docstring or ""), flags=re.MULTILINE)
    bodies = [body.strip() for body in parts[1::2]]
    return summary.strip(), dict(zip(parts[::2], bodies, strict=True))


@dataclass(eq=False, repr=False)
class Model(SearchingEstimator):
    """A model of its own with the search of HGMeans; subclasses document only what they add.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    strategy : {"deep", "paper"} or Strategy, default="deep"
        How to search, see :class:`~evomeans.HGMeans`.

    min_population, max_population : int, default=10 and 20
        Solutions that survive when the population is cut down, and with which it begins.

    max_offspring : int, default=5000
        Stop after this many offspring.

    n_iter_no_change : int, default=None
        Offspring in a row without improvement after which a population has settled, see
        :class:`~evomeans.HGMeans`.

    max_time : float, default=None
        Stop after this many seconds from the call of ``fit``, compilation not counted; the labels
        of the samples are computed within them. Results then depend on the speed of the machine.

    target_inertia : float, default=None
        Stop as soon as the objective is at most this.

    certainty : float, default=0.95
        Stop as soon as ``certainty_`` is at least this. It was measured for
        :class:`~evomeans.HGMeans`; for this model it is an estimate.

    init : array-like of shape (n_clusters, n_features) or \
            (n_solutions, n_clusters, n_features), default=None
        Centres, or several sets of them, that join the first population.

    n_jobs : int, default=None
        Threads to use, as for :class:`~evomeans.HGMeans`. The result does not depend on it.

    random_state : int, RandomState, Generator or None, default=None
        An int makes the result reproducible.

    warm_start : bool, default=False
        Begin with ``population_`` of the previous fit.

    checkpoint : path-like, default=None
        A file in which the search keeps its state, and from which it continues, see
        :class:`~evomeans.HGMeans`.

    observers : callable or list of callables, default=None
        Each is called with the record of every solution made. One that returns ``True`` ends the
        search.

    verbose : int, default=0
        1 prints a line now and then, 2 one for each improvement as well, 3 one for each
        offspring. The last line says how the fit ended.
    """

    # Its objective is not the inertia that KMeans minimises, or not over all clusterings.
    _is_plain_kmeans: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = False
    _predicts_closest: ClassVar[bool] = False

    n_clusters: int = 8
    _: KW_ONLY
    strategy: str | Strategy = "deep"
    min_population: int = 10
    max_population: int = 20
    max_offspring: int = DEFAULT_MAX_OFFSPRING
    n_iter_no_change: int | None = None
    max_time: float | None = None
    target_inertia: float | None = None
    certainty: float = DEFAULT_CERTAINTY
    init: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    observers: Any = None
    verbose: int = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = completed(cls, root=SearchingEstimator)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples. Only SphericalHGMeans takes sparse ones; they become CSR and are never made
            dense. KernelHGMeans takes the kernel of all pairs of samples if that is precomputed.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample. None means equal weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _refuse(self, X: Any) -> None:
        """Refuse samples that only others can hold: those in Dask, and most often sparse ones."""
        name = type(self).__name__
        if is_dask(X):
            raise ValueError(
                f"{name} cannot hold a Dask collection, only HGMeans can. Pass X.compute() if it "
                "fits into memory."
            )
        if is_sparse(X) and not self._takes_sparse:
            raise ValueError(
                f"{name} takes dense X only, got a sparse matrix. Pass X.toarray() if it fits into "
                "memory."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


def renumbered(
    centers: NDArray[Any], labels: NDArray[Any], order: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return centres in another order, and the labels that belong to it."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return centers[order], place[labels]
