"""The base of estimators that search for centres: limits, seeds, files, checkpoints, reports."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from evomeans.docstrings import described_like
from evomeans.engines import Engine, is_dask, prepare_calls, prepare_kernels
from evomeans.engines.frame import FARTHEST_CENTER, Frame
from evomeans.estimators.fitted import CentersMixin, FittedCenters
from evomeans.estimators.parameters import (
    DEFAULT_CERTAINTY,
    Parameters,
    check_parameters,
    generator_from,
)
from evomeans.estimators.persistence import write_model
from evomeans.estimators.solution import (
    EarlyAnswer,
    FinalSolution,
    Task,
    encode_centers,
    has_no_time,
    lowered,
    raised,
)
from evomeans.estimators.validation import (
    Features,
    check_cluster_count,
    check_init,
    check_sample_weight,
    check_samples,
    check_warm_start,
)
from evomeans.search import DEEP, PAPER, History, Individual, SearchResult, StopReason, Strategy
from evomeans.search.crossover import MATCHING, merging_crossover
from evomeans.search.genetic import solve
from evomeans.search.levels import level_sizes
from evomeans.search.plan import LONG_FOUNDER, MANY_IF_LONG, needed_abilities
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.checkpoint import Checkpoint, describe_problem
from evomeans.typing import FloatArray
from evomeans.wording import (
    advice_text,
    counted,
    levels_text,
    number_text,
    offspring_text,
    probability_text,
    stop_text,
)

PAPER_FAST = {
    "min_population": 5,
    "max_population": 10,
    "max_offspring": 500,
    "n_iter_no_change": 50,
}
"""The paper's fast setting, for its own strategy."""
# Offspring of a fast search at most, whatever the number of clusters, and for each of them.
FAST_OFFSPRING, FAST_PER_CLUSTER = 40, 5


@dataclass(eq=False, repr=False, kw_only=True)
class BaseSearch(CentersMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that searches for centres, for one number of clusters or for many.

    Parameters
    ----------
    strategy : {"deep", "paper"} or Strategy, default="deep"
        How to search, see :class:`~evomeans.HGMeans`.

    max_offspring : int, default=5000
        Stop after this many offspring (N₂). Each is one local search.

    n_iter_no_change : int, default=None
        Number of offspring without an improvement after which a population has converged (N₁).
        With "paper", 500 by default, and the search ends. With "deep", 150 by default, or three
        times ``n_clusters`` if that is more, and less if the last improvement came early. A new
        population is then started, until independent populations agree.

    max_time : float, default=None
        Stop after this many seconds, counted from the call of ``fit`` and including the labels of
        the samples, but not compilation. A fit takes at least as long as labelling every sample
        once. The result then depends on the speed of the machine.

    n_jobs : int, default=None
        Number of threads. None uses as many as KMeans, respecting ``OMP_NUM_THREADS``, cgroup
        limits and joblib workers; -1 uses all cores. The result does not depend on it, to the last
        bit.

    random_state : int, RandomState, Generator or None, default=None
        An int makes the result reproducible. None draws from NumPy's global random state; an
        instance is advanced by every fit.

    checkpoint : path-like, default=None
        A file in which the search keeps its state: every half minute, at its end, and when it is
        interrupted. If the file exists, :meth:`fit` continues from it, and ends with the same bits
        as if it had never stopped. A search that had already ended returns at once, unless its
        limits now allow more. A file of other samples or other parameters is refused with a
        :class:`~evomeans.CheckpointError`; docs/guide/checkpoints.md says what may change.

    observers : callable or list of callables, default=None
        Each is called with the :class:`~evomeans.OffspringRecord` of every solution made. One that
        returns ``True`` ends the search.

    verbose : int, default=0
        1 prints a line now and then, 2 one for each improvement as well, 3 one for each
        record. The last line says how the fit ended.
    """

    strategy: str | Strategy = "deep"
    max_offspring: int = 5000
    n_iter_no_change: int | None = None
    max_time: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    checkpoint: str | os.PathLike[str] | None = None
    observers: Any = None
    verbose: int = 0

    stop_reason_: StopReason = field(init=False)

    def _check_data(self, X: Any, sample_weight: Any) -> tuple[Any, Any, Features]:
        """Return the samples of a fit, their weights, and what their columns are called."""
        X, features = check_samples(self, X)
        return X, check_sample_weight(sample_weight, X.shape[0], X), features

    def _say(self, text: str) -> None:
        """Print a line if the user wants any."""
        if self.verbose:
            print(f"[{type(self).__name__}] {text}", flush=True)

    def _warn(self, text: str, category: type[Warning]) -> None:
        """Warn in the name of the caller of the public method, three calls before."""
        warnings.warn(text, category, stacklevel=5)

    def _interrupted(self, done: str) -> str:
        """Say what is kept of a fit that was interrupted, and how to continue it, if it can be."""
        text = f"fit was interrupted{done}"
        if self.checkpoint is not None:
            text += f" To go on, fit again with checkpoint={os.fspath(self.checkpoint)!r}."
        return text


@dataclass(eq=False, repr=False)
class SearchingEstimator(BaseSearch, FittedCenters):
    """An estimator that lacks only its model, which is what :meth:`_pose` makes of samples.

    Parameters
    ----------
    min_population : int, default=10
        Solutions that survive when the population is cut down (Π_min in the paper).

    max_population : int, default=20
        Solutions with which a population begins, and the size beyond which it is cut down (Π_max).
        Larger populations explore more but converge more slowly. With "deep", a population may
        begin with 5; docs/background/how-it-works.md explains when.

    target_inertia : float, default=None
        Stop as soon as a solution is at least this good.

    certainty : float, default=0.95
        Stop as soon as ``certainty_`` reaches this value. With 0, the search stops as soon as two
        independent starts agree; with 1, only at another limit, or when 50 starts agree. "paper"
        does not use it.

    init : array-like of shape (n_clusters, n_features) or \
            (n_solutions, n_clusters, n_features), default=None
        Centres, or several sets of centres, that join the first population. The rest of the
        population is random, and the result is never worse than ``init``.

    warm_start : bool, default=False
        Begin with ``population_`` of the previous fit, together with ``init`` if it is given.
        ``n_clusters`` and the number of features must be those of that fit; the samples may be
        others.

    Attributes
    ----------
    n_iter_ : int
        Number of offspring made. The initial members of populations do not count.

    n_rediscoveries_ : int
        Number of additional independent starts that reached the best inertia, to within 0.001 %.
        A start is a population, or a founder if several founders of one population reached it by
        themselves. At least 1 if ``stop_reason_`` is "agreement".

    certainty_ : float
        Estimated probability that no clustering within reach of the search is better by more than
        0.01 %. It is 1 if the clustering is proven to be optimal, also by :meth:`certify`, and not
        a number with strategy "paper". docs/guide/how-sure.md says how it is computed, and how
        often it was right for plain k-means.

    levels_ : tuple of int
        Number of rows, followed by the sizes of the subsamples with which populations began, if
        any.

    missing_operators_ : tuple of str
        Operators of the strategy that the engine does not have, such as "swaps". Empty if it has
        all of them.

    history_ : History
        One :class:`~evomeans.OffspringRecord` for each solution made; ``history_.to_csv(path)``
        saves them, and ``history_.to_pandas()`` returns a data frame. Empty if the answer was
        computed exactly.

    stop_reason_ : StopReason
        Why the search ended, a str: "agreement" (of independent starts), "no_improvement"
        (with "paper"), "max_offspring", "max_time", "target_inertia", "observer", "interrupted",
        "proven_optimal" (up to a millionth of the inertia), or "precision" if samples or weights
        span so many orders of magnitude that nothing better can be told from rounding.

    population_ : tuple of Individual
        The last population and the best solution, sorted by inertia: other good clusterings to
        look at. Their ``centers`` are float64, in units of the data and in no
        particular order.
    """

    n_clusters: int = 8
    _: KW_ONLY
    min_population: int = 10
    max_population: int = 20
    target_inertia: float | None = None
    certainty: float = DEFAULT_CERTAINTY
    init: Any = None
    warm_start: bool = False

    n_iter_: int = field(init=False)
    n_rediscoveries_: int = field(init=False)
    certainty_: float = field(init=False)
    levels_: tuple[int, ...] = field(init=False)
    missing_operators_: tuple[str, ...] = field(init=False)
    history_: History = field(init=False)
    population_: tuple[Individual, ...] = field(init=False)
    # Fitted numbers that model files hold besides these, without underscores.
    _fitted_numbers: ClassVar[tuple[str, ...]] = ()

    @described_like(FittedCenters.fit)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            The samples. float32 and float64 are kept as they are, all else becomes float64. Sparse
            matrices become CSR and are never made dense. Tensors of PyTorch, on any device, are
            read like arrays; what is returned are NumPy arrays. What Dask holds stays with Dask.
            Models other than HGMeans take arrays only. SphericalHGMeans takes sparse matrices as
            well.
        """
        return self._fit(X, sample_weight)

    @classmethod
    def fast(cls, n_clusters: int, **parameters: Any) -> Self:
        """Make an estimator for interactive use: shorter searches, nearly as good.

        Populations of 5 to 10, and at most 40 offspring, with 5 more for each cluster. It can miss
        what the default finds, above all with many clusters; docs/guide/how-sure.md says how often.
        With ``strategy="paper"`` it is the fast setting of the paper: populations of 5 to 10, at
        most 500 offspring, 50 without improvement.

        Parameters
        ----------
        n_clusters : int
            The number of clusters.
        **parameters
            Any other parameters; they take precedence over the fast setting.

        Returns
        -------
        self : object
            An estimator of this class.

        Examples
        --------
        >>> from evomeans import HGMeans
        >>> HGMeans.fast(20).max_offspring
        140
        """
        setting: dict[str, Any] = dict(PAPER_FAST)
        if parameters.get("strategy") not in (PAPER, PAPER.name):
            # What is not a number of clusters is left for fit to complain about.
            clusters = max(0, int(n_clusters)) if isinstance(n_clusters, Integral) else 0
            setting["max_offspring"] = FAST_OFFSPRING + FAST_PER_CLUSTER * clusters
            del setting["n_iter_no_change"]
        return cls(n_clusters, **setting | parameters)

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        """Say what to search for, given checked samples and parameters."""
        raise NotImplementedError

    def _fit(self, X: Any, sample_weight: Any, **constraints: Any) -> Self:
        """Check everything, search, and keep the answer."""
        began = time.perf_counter()
        parameters = check_parameters(self)
        k = parameters.n_clusters
        X, sample_weight, features = self._check_data(X, sample_weight)
        check_cluster_count(k, X.shape[0])
        task = self._pose(X, sample_weight, parameters, **constraints)
        if task.strategy is not None and parameters.settings.strategy == DEEP:
            settings = replace(parameters.settings, strategy=task.strategy)
            parameters = replace(parameters, settings=settings)
        given = init = check_init(self.init, k, X.shape[1])
        if self.warm_start and hasattr(self, "population_"):
            check_warm_start(self.population_, k, X.shape[1])
            given = [*(member.centers for member in self.population_), *init]
        settings = lowered(parameters.settings, task.constant)
        rng = generator_from(parameters.random_source)
        # All but the compilation of kernels counts as time of the search.
        began += self._prepare(parameters, task)

        # Ctrl-C ends the search, but neither loses what it found nor leaves half a fit.
        with DeferredInterrupt() as interrupt, closing(task.open_engine()) as engine:
            early = EarlyAnswer(engine, task.settle, task.weights)
            # Of rows that stand for groups of samples, there are fewer.
            is_in_memory = not is_dask(X) and task.rows.shape[0] == X.shape[0]
            if task.solve is not None:
                result = task.solve(engine)
            else:
                # First: others are to see the state from which the search continues.
                kept = self._checkpoints(engine, task, parameters, init)
                starts = [encode_centers(engine.frame, centers) for centers in given]
                result = solve(
                    engine,
                    k,
                    settings,
                    rng,
                    # Those that are too far away begin at the rim of the frame.
                    initial=list(np.clip(starts, -FARTHEST_CENTER, FARTHEST_CENTER)),
                    observers=(*kept, *parameters.observers),
                    interrupt=interrupt,
                    spent=time.perf_counter() - began,
                    weigh=early.weigh if is_in_memory else None,
                )
            result = raised(result, task.constant)
            solution = early.solution_for(result.best)
            if solution is None:
                is_final = has_no_time(result.stop_reason, engine, k)
                solution = task.settle(engine, result.best, is_final)
            if result.stop_reason is StopReason.PROVEN_OPTIMAL and not solution.is_confirmed:
                result = replace(result, stop_reason=StopReason.PRECISION)
            self._keep(features, engine.frame, result, solution)
        self._report(result, solution)
        return self

    def _prepare(self, parameters: Parameters, task: Task) -> float:
        """Compile what the fit needs; return how many seconds that took."""
        began = time.perf_counter()
        k, settings, n_rows = parameters.n_clusters, parameters.settings, task.rows.shape[0]
        is_search = task.solve is None
        levels = level_sizes(settings, n_rows, k) if is_search else ()
        # Samples are searched on the CPU.
        engine = "cpu" if levels else task.engine
        strategy, is_timed = settings.strategy if is_search else None, settings.max_time is not None
        prepare_strategy(strategy, engine, task.rows, (k,), is_timed=is_timed)
        if task.kernel_calls is not None:
            prepare_calls(task.kernel_calls())
        if levels:
            self._say(levels_text((n_rows, *levels)))
        return time.perf_counter() - began

    def _checkpoints(
        self, engine: Engine, task: Task, parameters: Parameters, init: Sequence[FloatArray]
    ) -> list[Checkpoint]:
        """Return the observer that keeps the state of the search in a file, if one is to."""
        if parameters.checkpoint is None:
            return []
        k, settings = parameters.n_clusters, parameters.settings
        problem = describe_problem(engine, task.rows, task.weights, k, settings, init)
        problem = {**problem, **task.identity}
        path, check_labels = parameters.checkpoint, task.check_labels
        return [Checkpoint(path, problem, seed=parameters.seed, check_labels=check_labels)]

    def _keep(
        self, features: Features, frame: Frame, result: SearchResult, solution: FinalSolution
    ) -> None:
        """Set all fitted attributes; nothing in here can fail."""
        self._keep_solution(features, frame, solution)
        self.n_iter_ = result.n_offspring
        self.n_rediscoveries_ = result.n_rediscoveries
        is_proven = result.stop_reason is StopReason.PROVEN_OPTIMAL
        self.certainty_ = 1.0 if is_proven else result.certainty
        self.missing_operators_ = tuple(sorted(map(str, result.missing_abilities)))
        self.levels_ = result.levels
        self.history_ = result.history
        self.stop_reason_ = result.stop_reason
        # Free of the engine: in data units, without handles and labels of its rows.
        self.population_ = tuple(
            replace(member, centers=frame.decode(member.centers), handle=None, labels=None)
            for member in result.population
        )

    def _report(self, result: SearchResult, solution: FinalSolution) -> None:
        """Say what the user should know about how the fit ended."""
        self._say(_how_it_ended(result, solution.inertia))
        if result.is_unfinished:
            is_late = result.stop_reason is StopReason.MAX_TIME
            cause = f"max_time={self.max_time} was up" if is_late else "fit was interrupted"
            self._warn(
                f"{cause} before the first run of K-means on all samples had ended. The centres "
                "are where it had come to, and not the means of their clusters. Give it more time.",
                ConvergenceWarning,
            )
        elif result.stop_reason is StopReason.MAX_TIME and not (
            result.n_offspring or result.n_on_samples
        ):
            self._warn(
                f"max_time={self.max_time} was up before the first offspring. The answer is the "
                f"best of {counted(len(result.history), 'run')} of K-means, with swaps where these "
                "were made; the genetic search has not begun. Give it more time for a better one.",
                ConvergenceWarning,
            )
        if result.stop_reason is StopReason.INTERRUPTED:
            done = f" after {result.n_offspring} offspring; the best solution so far is kept."
            self._warn(self._interrupted(done), RuntimeWarning)
        if solution.n_distinct < self.n_clusters:
            self._warn(
                f"Number of distinct clusters ({solution.n_distinct}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that :func:`evomeans.load` reads.

        The file is a ZIP of NumPy arrays and a JSON text, without pickle, and described in
        docs/guide/model-file.md. It is written atomically: an older file of this name is replaced
        by a complete one or not at all.

        Parameters
        ----------
        path : path-like
            The file. ``checkpoint``, ``observers`` and a ``random_state`` that is not an int are
            not stored, nor are labels of samples in Dask. A ``strategy`` of your own is not stored
            either, and a UserWarning says so. All other parameters and all fitted attributes are
            stored.

        Examples
        --------
        >>> import evomeans, tempfile
        >>> from pathlib import Path
        >>> model = evomeans.HGMeans(2).fit([[0.0], [1.0], [5.0], [6.0], [7.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model.evomeans")
        ...     evomeans.load(Path(folder) / "model.evomeans").predict([[2.0], [4.0]])
        array([0, 1], dtype=int32)
        """
        write_model(path, self)


def prepare_strategy(
    strategy: Strategy | None,
    engine: str,
    rows: Any,
    ks: Sequence[int],
    *,
    is_timed: bool,
    merging: bool = False,
) -> None:
    """Compile what searches for these numbers of clusters need; None stands for no search."""
    crossovers = () if strategy is None else [one.crossover for one in strategy.crossovers]
    n_samples, n_features = rows.shape
    is_large = n_samples * n_features * max(ks) >= LONG_FOUNDER
    prepare_kernels(
        engine,
        rows,
        max(ks),
        frozenset() if strategy is None else needed_abilities(strategy),
        matching=any(one in MATCHING for one in crossovers),
        merging=merging or merging_crossover in crossovers,
        momentum=strategy is not None
        and n_samples >= min(ks) * (MANY_IF_LONG if is_large else strategy.momentum_from),
        hurries=strategy is not None and (is_timed or is_large),
    )


def _how_it_ended(result: SearchResult, inertia: float) -> str:
    """Say what a search found, after how much work, why it ended, and whether to go on."""
    made, history = result.n_offspring, result.history
    since = made - history.when_best_was_found().number if history else 0
    ended = (str(result.stop_reason), made, since, result.n_rediscoveries)
    work = offspring_text(made, result.n_given_up, result.n_on_samples)
    found = f"Inertia {number_text(inertia, 8)} after {work}."
    sure = probability_text(result.certainty)
    return " ".join(filter(None, [found, stop_text(*ended), sure, advice_text(*ended)]))
