"""HGMeansPath: the best clusterings for a whole range of k, and criteria to choose among them."""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from evomeans.criteria import DEFAULT_CRITERIA, DEFAULT_SELECT
from evomeans.docstrings import described_like
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.parameters import check_int, generator_from
from evomeans.estimators.path_solving import (
    PathSearch,
    check_k_range,
    check_path_parameters,
    choose_k,
    collect_evidence,
    judge_all,
)
from evomeans.estimators.searching import BaseSearch
from evomeans.estimators.validation import Features, check_most_clusters, features_of
from evomeans.path import PathState
from evomeans.search import StopReason
from evomeans.search.stopping import DeferredInterrupt
from evomeans.wording import certain_percent

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

SOLVED = (StopReason.PROVEN_OPTIMAL, StopReason.PRECISION)
"""Reasons of a path of one feature, which is computed and not searched."""


@dataclass(eq=False, repr=False)
class HGMeansPath(BaseSearch):
    """The best k-means clustering for every k of a range, and criteria that suggest one of them.

    It finds what an :class:`HGMeans` for each k would find, in a fraction of the time, because
    solutions for neighbouring k are reused. One sweep goes up and divides clusters. An independent
    one goes down and merges them. Where both find the same inertia, two independent populations
    agree. Each criterion then suggests a k independently. Criteria often disagree, so
    ``suggestions_`` shows all of them.

    Parameters
    ----------
    k_range : (int, int), int or collection of int, default=(2, 20)
        The numbers of clusters. A pair is a range that includes both ends; an int K means 2 to K;
        lists, ranges and arrays are taken as they are. Criteria that compare with a single cluster
        get it in any case.

    criteria : list of str or Criterion, default=those that cost next to nothing
        What to compute, by the names in :data:`evomeans.criteria.CRITERIA`, or criteria with
        settings of their own such as ``evomeans.criteria.Gap(n_references=50)``. "silhouette",
        "gap" and "prediction_strength" are computed only if asked for: the first needs all
        distances between up to 10,000 samples, the others search 20 paths more.

    select : str, Criterion, callable or None, default="simplified_silhouette"
        Which criterion chooses ``best_k_``; docs/laboratory/criteria.md has the measurement that
        speaks for the default. A callable gets ``results_`` and returns one of ``k_values_``. None
        disables the selection; :meth:`at` returns the model for any k.

    confirmations : int, default=0
        For each k at which the two sweeps disagree, begin up to this many populations anew, until
        one finds the best again. 0 leaves such a k with ``n_rediscoveries_`` of 0.

    max_offspring : int, default=5000
        Offspring of one population at most.

    n_iter_no_change : int, default=None
        Number of offspring without an improvement after which a population has converged. By
        default 12 and one more for every five clusters. Larger values search longer.

    max_time : float, default=None
        Seconds for the path and its criteria. Every k gets a solution and labels of the samples,
        however little time there is. Criteria that search other samples share the time with the
        path; those that look at all samples of a large data set may have to do with some of them,
        which a warning says. Results then depend on the speed of the machine.

    engine : {"auto", "cpu", "gpu", "dask", "reference"}, default="auto"
        What holds the samples, see :class:`HGMeans`. With "auto" and one feature, one dynamic
        program solves all k exactly.

    observers : callable or list of callables, default=None
        Each is called with the :class:`~evomeans.PathRecord` of every step. One that returns
        ``True`` ends the path. An object may have the verbs of
        :class:`~evomeans.search.SearchObserver` instead, except ``on_settled``; to ``on_best``, a
        step is the best that is the first for its k, or improves on those before it.

    Attributes
    ----------
    k_values_ : ndarray of shape (n_values,)
        The numbers of clusters, ascending.

    inertias_ : ndarray of shape (n_values,)
        The lowest inertia for each of them.

    labels_path_ : ndarray of shape (n_samples, n_values), dtype int32
        The cluster of each sample, a column for each k. A lazy Dask array if ``X`` is a Dask
        collection.

    n_rediscoveries_ : ndarray of shape (n_values,)
        How many further independent populations came to the best solution, within 0.001 % of its
        inertia.

    certainty_ : ndarray of shape (n_values,)
        The estimated probability, for each k, that no clustering within reach is better by more
        than 0.01 %. It is 1 for one cluster and for one feature, where solutions are proven to be
        optimal. It is not a number where a limit or Ctrl-C came before both sweeps, and with
        ``strategy="paper"``. docs/laboratory/certainty.md says how often it was right.

    results_ : dict of str to ndarray of shape (n_values,)
        "k", "inertia", "n_rediscoveries", "certainty", "n_solutions", and a column for each
        criterion, with its standard error where it has one. ``pandas.DataFrame(path.results_)``
        makes a table of it.

    suggestions_ : dict of str to int or None
        The k that each criterion suggests; None if its rule finds none in the range.

    best_k_ : int or None
        The choice of ``select``.

    best_estimator_ : HGMeans
        The model for ``best_k_``; :meth:`predict`, :meth:`transform` and :meth:`score` are its own.
        Defined only if ``best_k_`` is a number, as the next three are.

    cluster_centers_, labels_, inertia_ : ndarray, ndarray and float
        Those of ``best_estimator_``; :meth:`at` returns the model for any other k.

    stop_reason_ : StopReason
        Why the path ended: "agreement" when there was nothing left to do, "proven_optimal" with one
        feature ("precision" if float64 cannot prove it), else "max_time", "observer" or
        "interrupted".

    See Also
    --------
    HGMeans : For one number of clusters.

    Notes
    -----
    **Interruption.** Ctrl-C ends the path and keeps the numbers of clusters that have a solution.
    With a ``checkpoint``, the next fit continues.

    **Consistency.** Inertias fall strictly with k, as long as there are enough distinct samples; a
    merger of the best solution for k + 1 never beats that for k, nor does a division of the one for
    k − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import HGMeansPath
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0, 0], [9, 0], [0, 9], [9, 9]], 25, axis=0) + rng.normal(size=(100, 2))
    >>> path = HGMeansPath((2, 6), random_state=0).fit(X)
    >>> path.k_values_
    array([2, 3, 4, 5, 6])
    >>> path.best_k_, path.suggestions_["bic"]
    (4, 4)
    >>> path.predict([[0, 1], [8, 9]])
    array([1, 2], dtype=int32)
    >>> path.at(3).n_clusters
    3
    """

    k_range: Any = (2, 20)
    _: KW_ONLY
    criteria: Any = DEFAULT_CRITERIA
    select: Any = DEFAULT_SELECT
    confirmations: int = 0
    engine: str = "auto"

    # Fitting

    @described_like(BaseSearch.fit)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the best clusterings of ``X`` for all numbers of clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            The samples, as in :meth:`HGMeans.fit`.
        """
        parameters = check_path_parameters(self)
        X, sample_weight, features = self._check_data(X, sample_weight)
        check_most_clusters(parameters.ks, X.shape[0])
        ks = tuple(parameters.ks)
        rng = generator_from(parameters.random_source)
        state = PathState(sorted({1, *ks}), rng.integers(2**32, size=4, dtype=np.uint32).tolist())
        search = PathSearch(parameters, X, sample_weight, DeferredInterrupt())
        return self._follow(search, ks, features, state)

    def add_k(self, ks: Any, X: Any = None, sample_weight: Any = None) -> Self:
        """Extend a fitted path by further numbers of clusters.

        They begin with the solutions for neighbouring k, which they may improve in turn.

        Parameters
        ----------
        ks : int or collection of int
            The numbers of clusters to add; as in ``k_range``, a pair is an inclusive range. An int
            is a single number here.
        X : array-like or sparse matrix, default=None
            The samples of the fit. They are needed only if the estimator has been loaded from a
            file since, because a file does not contain them.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weights of the fit, together with ``X``.

        Returns
        -------
        self : HGMeansPath
        """
        check_is_fitted(self, "k_values_")
        parameters = check_path_parameters(self)
        wanted = check_k_range([ks] if isinstance(ks, Integral) else ks, "ks")
        features = features_of(self)
        if X is not None:
            X, sample_weight, features = self._check_data(X, sample_weight)
        elif getattr(self, "_samples", None) is None:
            raise ValueError("The samples of the fit are not there any more; pass X to add_k.")
        else:
            X, sample_weight = self._samples
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, and the path was fitted with {self.n_features_in_}."
            )
        check_most_clusters(wanted, X.shape[0])
        self._state.ks = sorted({*self._state.ks, *wanted})
        every = tuple(sorted({*self.k_values_.tolist(), *wanted}))
        search = PathSearch(parameters, X, sample_weight, DeferredInterrupt())
        # The file, if there is one, has the path without the new numbers.
        return self._follow(search, every, features, self._state, resume=False)

    def _follow(
        self,
        search: PathSearch,
        ks: tuple[int, ...],
        features: Features,
        state: PathState,
        resume: bool = True,
    ) -> Self:
        """Search the path, compute criteria and set all fitted attributes."""
        parameters = search.parameters
        search.prepare(ks)
        began = time.perf_counter()
        with search.interrupt, closing(search.task.open_engine()) as engine:
            keeper = search.keeper(engine, state.ks)
            state = state if keeper is None else keeper.read_or_write(state, resume=resume)
            deadline = parameters.deadline(began, state.seconds)
            reason = search.run(
                engine,
                state,
                observers=[*parameters.observers, *filter(None, [keeper])],
                spent=time.perf_counter() - began,
                weigh_for=partial(search.weigh_for, engine),
            )
            known = [k for k in ks if k in state.entries]
            if not known:
                raise KeyboardInterrupt
            solutions = search.settle(engine, state, known, reason)
            if search.is_exact and not all(solutions[k].is_confirmed for k in known):
                reason = StopReason.PRECISION
            found = {k: search.result_at(engine, state, k, reason, solutions[k]) for k in known}
            evidence = collect_evidence(search, engine, state, solutions, deadline)
            results, suggestions, left_out = judge_all(parameters, evidence, found)
            best_k = choose_k(parameters, results, suggestions, known)
            self._keep_features(features, engine.frame)
        results["certainty"] = np.array([one.certainty for one in found.values()])
        # What models for single k are made of.
        self._state, self._found, self._solutions = state, found, solutions
        self._samples = search.X, search.sample_weight
        self.stop_reason_ = reason
        self.results_, self.suggestions_, self.best_k_ = results, suggestions, best_k
        self._keep_answers(known)
        self._report(ks, known, left_out, evidence.budget.n_taken)
        return self

    def _keep_answers(self, known: list[int]) -> None:
        """Set the fitted attributes that follow from the solutions and the results."""
        self.k_values_ = np.array(known)
        self.inertias_ = self.results_["inertia"]
        # Of lazy labels, this is lazy too.
        self.labels_path_ = np.stack([self._solutions[k].labels for k in known], axis=1)
        self.n_rediscoveries_ = self.results_["n_rediscoveries"]
        self.certainty_ = self.results_["certainty"]
        for name in ("best_estimator_", "cluster_centers_", "labels_", "inertia_"):
            self.__dict__.pop(name, None)
        if self.best_k_ is not None:
            self.best_estimator_ = best = self.at(self.best_k_)
            self.cluster_centers_, self.labels_ = best.cluster_centers_, best.labels_
            self.inertia_ = best.inertia_

    def _report(
        self, ks: tuple[int, ...], known: list[int], left_out: list[str], n_taken: int | None
    ) -> None:
        """Say what the user should know about how the fit ended."""
        chosen = "none chosen" if self.best_k_ is None else f"k = {self.best_k_} chosen"
        self._say(f"k = {known[0]} to {known[-1]}, {chosen}; {self._certainty()}")
        if n_taken is not None:
            self._warn(
                f"max_time={self.max_time} left time to compute criteria from {n_taken:,} samples "
                "only, drawn at random. Their values are estimates; raise max_time for all.",
                RuntimeWarning,
            )
        if self.stop_reason_ is StopReason.INTERRUPTED:
            done = f"; {len(known)} of {len(ks)} numbers of clusters are kept."
            self._warn(self._interrupted(done), RuntimeWarning)
        if left_out:
            names = ", ".join(left_out)
            text = f"Criteria were interrupted, and their values are missing: {names}."
            self._warn(text, RuntimeWarning)
        if self.best_k_ is None and self.select is not None:
            self._warn(
                f"select={getattr(self.select, 'name', self.select)!r} suggests no k between "
                f"{known[0]} and {known[-1]}. Choose one with at(k), or extend the path with "
                "add_k.",
                UserWarning,
            )
        if short := [k for k in known if self._solutions[k].n_distinct < k]:
            k, n_distinct = short[0], self._solutions[short[0]].n_distinct
            text = (
                f"The solution for k={k} has only {n_distinct} clusters with samples: X has no "
                "more distinct samples, or the path was cut short. Leave out the k above, or give "
                "it more time."
            )
            self._warn(text, ConvergenceWarning)

    # Using

    def at(self, k: int) -> HGMeans:
        """Return the model for one number of clusters of the path.

        Parameters
        ----------
        k : int
            One of ``k_values_``.

        Returns
        -------
        model : HGMeans
            Fitted: it predicts, transforms, and can be saved. ``population_`` has the best
            solutions of the path, with which ``warm_start=True`` continues; ``history_`` is empty.
        """
        check_is_fitted(self, "k_values_")
        k = check_int("k", k)
        if k not in self.k_values_:
            raise ValueError(
                f"k={k} is not on the path, which has k from {self.k_values_[0]} to "
                f"{self.k_values_[-1]}. Extend it with add_k({k})."
            )
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else None
        model = HGMeans(
            k,
            strategy=self.strategy,
            max_offspring=self.max_offspring,
            engine=self.engine,
            n_jobs=self.n_jobs,
            random_state=seed,
        )
        model._keep(features_of(self), self._frame, self._found[k], self._solutions[k])
        return model

    @property
    def _is_confirmed(self) -> NDArray[np.bool_]:
        """The k whose solution does not depend on a single population."""
        # One cluster has one solution, and a single feature is solved without a population.
        is_alone = (self.k_values_ == 1) | (self.stop_reason_ in SOLVED)
        confirmed: NDArray[np.bool_] = is_alone | (self.n_rediscoveries_ > 0)
        return confirmed

    def _certainty(self) -> str:
        """Say in a few words how sure it is that the best solutions were found."""
        if self.stop_reason_ is StopReason.PROVEN_OPTIMAL:
            return "one column is solved exactly for every k"
        if self.stop_reason_ is StopReason.PRECISION:
            return "one column is solved for every k, as exactly as float64 allows"
        agreed = int(np.count_nonzero(self._is_confirmed))
        text = f"independent populations agree at {agreed} of {len(self.k_values_)} k"
        # Not a number, if it is not known for one of them.
        least = float(self.certainty_.min())
        return (
            text if math.isnan(least) else f"{text}, each {certain_percent(least)} certain or more"
        )

    def _best(self) -> HGMeans:
        check_is_fitted(self, "k_values_")
        if self.best_k_ is None:
            raise ValueError(
                "No number of clusters has been selected; at(k) returns the model for any k."
            )
        return self.best_estimator_

    def to_kmeans(self) -> KMeans:
        """Return a fitted :class:`sklearn.cluster.KMeans` with the centres for ``best_k_``.

        Returns
        -------
        kmeans : sklearn.cluster.KMeans
            As :meth:`HGMeans.to_kmeans` returns it.
        """
        return self._best().to_kmeans()

    @property
    def _centers(self) -> NDArray[Any]:
        return self._best().cluster_centers_

    @property
    def _labels(self) -> NDArray[np.int32]:
        return self._best().labels_

    def __getstate__(self) -> dict[str, Any]:
        # Samples belong into no file.
        state = dict(super().__getstate__())
        state.pop("_samples", None)
        return state
