"""The bridge to scikit-learn's callbacks; only here it is known whether its version has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evomeans.docstrings import Function
from evomeans.estimators.solution import lexicographic
from evomeans.search import OffspringRecord
from evomeans.search.history import Observer, SearchObserver
from evomeans.typing import FloatArray

__all__ = ["EXTRA_FRAMES", "CallbackSupport", "fit_task", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:
    CallbackSupport = type("CallbackSupport", (), {"__doc__": "Nothing to support."})
    _with_callbacks = None

# How many calls the decorator puts between a fit and its caller.
EXTRA_FRAMES = 0 if _with_callbacks is None else 1
# scikit-learn keeps every sub-task of a fit, and its progress bar adds them all up at each.
MOST_SUBTASKS = 2000


def with_callbacks(fit: Function) -> Function:
    """Let callbacks tidy up after a fit, however it ends."""
    decorated: Function = fit if _with_callbacks is None else _with_callbacks(fit)
    return decorated


@contextmanager
def fit_task(
    estimator: Any, X: Any, y: Any, sample_weight: Any, known: dict[str, Any], n_solutions: int
) -> Iterator[tuple[Observer, ...]]:
    """Show a fit to the callbacks of an estimator, if it has any; yield observers for the search.

    With the attributes that are ``known``, a copy of the estimator can predict, given centres. The
    search makes ``n_solutions`` at most.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield ()
        return
    per_task = -(-n_solutions // MOST_SUBTASKS)
    context = estimator._init_callback_context(max_subtasks=n_solutions // per_task)
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    seen = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    context.call_on_fit_task_begin(**seen)
    yield (_Subtasks(context, seen, known, n_solutions // per_task, per_task),)
    context.call_on_fit_task_end(**seen, reconstruction_attributes={})


@dataclass
class _Subtasks(SearchObserver):
    """An observer with a sub-task for each solution, or for several in a row if there are many."""

    _context: Any
    _seen: dict[str, Any]
    _known: dict[str, Any]
    # A resumed search may have begun with more solutions than could be foreseen.
    _n_left: int
    _per_task: int
    _n_made: int = 0
    _best: FloatArray | None = None

    def on_solution(self, record: OffspringRecord) -> bool:
        """Count a solution, and show a sub-task; return whether a callback asks to stop."""
        if record.inertia == record.best:
            self._best = record.centers
        self._n_made += 1
        if self._n_made % self._per_task or not self._n_left:
            return False
        self._n_left -= 1
        task = self._context.subcontext(task_name="offspring")
        seen = {**self._seen, "reconstruction_attributes": self._attributes}
        task.call_on_fit_task_begin(**seen)
        return bool(task.call_on_fit_task_end(**seen))

    def _attributes(self) -> dict[str, Any] | None:
        """Return fitted attributes with which a copy of the estimator can predict."""
        if self._best is None:
            return None
        centers = lexicographic(self._best.astype(self._seen["X"].dtype))
        return {**self._known, "cluster_centers_": centers}
