"""The bridge to scikit-learn's callbacks, which it has since version 1.9.

Only this module knows whether the installed version has them. Without callbacks set, nothing here
touches the search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from evomeans.engines import Engine, Start
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Flags, FloatArray, GuidingEngine, Handle, Refinement
from evomeans.estimators.solution import ordered_centers
from evomeans.estimators.validation import Features
from evomeans.search import OffspringRecord
from evomeans.search.observers import Observer

__all__ = ["EXTRA_FRAMES", "CallbackSupport", "FitTask", "fit_task", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:
    CallbackSupport = type("CallbackSupport", (), {"__doc__": "Nothing to support."})
    _with_callbacks = None

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
# How many calls the decorator puts between a fit and whoever calls it.
EXTRA_FRAMES = 0 if _with_callbacks is None else 1
# scikit-learn keeps every sub-task of a fit, and its progress bar adds them all up at each.
MOST_SUBTASKS = 2000


def with_callbacks(fit: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let callbacks tidy up after a fit, however it ends."""
    if _with_callbacks is None:
        return fit
    decorated: Callable[Arguments, Result] = _with_callbacks(fit)
    return decorated


class FitTask:
    """A fit that nobody watches."""

    observers: tuple[Observer, ...] = ()

    def watched(self, engine: Engine, features: Features, dtype: Any) -> Engine:
        """Return an engine whose work the callbacks see."""
        return engine


@contextmanager
def fit_task(
    estimator: Any, X: Any, y: Any, sample_weight: Any, n_solutions: int
) -> Iterator[FitTask]:
    """Show a fit to the callbacks of an estimator, if it has any.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted.
    X, y, sample_weight
        What it is fitted to.
    n_solutions : int
        The most that the search may make.

    Yields
    ------
    FitTask
        Its observers and its view of the engine are for the search.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield FitTask()
        return
    per_task = -(-n_solutions // MOST_SUBTASKS)
    n_tasks = -(-n_solutions // per_task)
    context = estimator._init_callback_context(max_subtasks=n_tasks)
    seen = {
        "estimator": estimator,
        "X": X,
        "y": y,
        "metadata": None if sample_weight is None else {"sample_weight": sample_weight},
    }
    context.call_on_fit_task_begin(**seen)
    task = _WatchedFit(context, seen, n_tasks, per_task)
    yield task
    task.close()
    context.call_on_fit_task_end(**seen, reconstruction_attributes={})


class _WatchedFit(FitTask):
    """Has one sub-task for each solution, or for several in a row if there may be very many."""

    def __init__(self, context: Any, seen: dict[str, Any], n_tasks: int, per_task: int) -> None:
        self.observers = (self._end_solution,)
        self._context = context
        self._seen = seen
        self._n_left = n_tasks
        self._per_task = per_task
        self._open: Any = None
        self._n_ended = 0
        self._waiting: deque[FloatArray] = deque()
        self._best: FloatArray | None = None

    def watched(self, engine: Engine, features: Features, dtype: Any) -> Engine:
        """Return an engine that tells when a round begins and which centres it ended with."""
        self._frame, self._features, self._dtype = engine.frame, features, dtype
        return _WatchedEngine(engine, self._begin_round, self._waiting)

    def _begin_round(self) -> None:
        # A resumed search may have begun with more solutions than could be foreseen.
        if self._open is None and self._n_left:
            self._n_left -= 1
            self._open = self._context.subcontext(task_name="offspring")
            self._open.call_on_fit_task_begin(
                **self._seen, reconstruction_attributes=self._attributes
            )

    def _end_solution(self, record: OffspringRecord) -> bool:
        centers = self._waiting.popleft()
        if record.inertia == record.best:
            self._best = centers
        self._begin_round()
        self._n_ended += 1
        return self._n_ended % self._per_task == 0 and self.close()

    def close(self) -> bool:
        """End the sub-task that is open, if any; return whether a callback asks to stop."""
        if self._open is None:
            return False
        task, self._open = self._open, None
        return bool(
            task.call_on_fit_task_end(**self._seen, reconstruction_attributes=self._attributes)
        )

    def _attributes(self) -> dict[str, Any] | None:
        """Return fitted attributes with which a copy of the estimator can predict."""
        if self._best is None:
            return None
        attributes = {
            "cluster_centers_": ordered_centers(self._frame, self._best, self._dtype),
            "n_features_in_": self._features.count,
            "_frame": self._frame,
        }
        if self._features.names is not None:
            attributes["feature_names_in_"] = self._features.names
        return attributes


class _WatchedEngine:
    """Tells when a round begins, and remembers the centres that it ends with."""

    def __init__(
        self, engine: Engine, begin: Callable[[], None], waiting: deque[FloatArray]
    ) -> None:
        self._engine = engine
        self._begin = begin
        self._waiting = waiting

    @property
    def n_samples(self) -> int:
        return self._engine.n_samples

    @property
    def batch(self) -> int:
        return self._engine.batch

    @property
    def is_plain(self) -> bool:
        return self._engine.is_plain

    @property
    def frame(self) -> Frame:
        return self._engine.frame

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        return self._engine.samples_at(quantiles)

    def seed(self, quantiles: FloatArray) -> FloatArray:
        return cast(GuidingEngine, self._engine).seed(quantiles)

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        engine = cast(GuidingEngine, self._engine)
        return engine.better_parts(first, second, first_handle, second_handle)

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        self._begin()
        refinements = self._engine.refine(starts)
        self._waiting.clear()
        self._waiting.extend(refinement.centers for refinement in refinements)
        return refinements

    def assign(self, centers: FloatArray) -> tuple[Any, float]:
        return self._engine.assign(centers)

    def distances(self, centers: FloatArray) -> Any:
        return self._engine.distances(centers)
