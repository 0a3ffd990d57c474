"""scikit-learn's callbacks see a search; where there are none, nothing changes."""

from __future__ import annotations

import sys
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evomeans import HGMeans, StopReason

X = np.random.default_rng(0).normal(size=(60, 3))
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 30, "random_state": 0}

with suppress(ImportError):
    import sklearn.callback  # noqa: F401
has_callbacks = pytest.mark.skipif(
    "sklearn.callback" not in sys.modules, reason="scikit-learn before 1.9"
)


class Recorder:
    """A callback that writes down which hooks are called, and with what."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.calls = []
        self.ends = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name, context.task_id))
        self.max_subtasks = context.max_subtasks if context.parent is None else self.max_subtasks

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.calls.append(("end", context.task_name, context.task_id))
        self.ends.append((X, y, metadata, fitted_estimator))
        return context.task_name == "offspring" and context.task_id == self.stop_at


def offspring(first, last):
    return [(kind, "offspring", i) for i in range(first, last) for kind in ("begin", "end")]


@has_callbacks
def test_every_solution_is_a_task():
    """Six founders, swaps of the first and thirty offspring, each ended before the next."""
    recorder = Recorder()
    model = HGMeans(4, **QUICK).set_callbacks(recorder).fit(X)
    expected = [("begin", "fit", 0), *offspring(0, 37), ("end", "fit", 0)]
    assert recorder.calls == ["setup", *expected, "teardown"]
    assert recorder.max_subtasks == 37
    plain = HGMeans(4, **QUICK).fit(X)
    assert_array_equal(model.history_.column("inertia"), plain.history_.column("inertia"))
    assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    assert not [name for name in vars(model) if "callback" in name and name != "_skl_callbacks"]


@has_callbacks
def test_hooks_get_a_model_that_can_predict():
    """At the end of each task the best so far, at the end of the fit the answer."""
    recorder = Recorder()
    weights = np.arange(1.0, 61.0)
    y = np.arange(60)
    model = HGMeans(4, **QUICK).set_callbacks(recorder).fit(X, y, sample_weight=weights)
    best = model.history_.column("best")
    *tasks, fit = recorder.ends
    for (samples, target, metadata, fitted), inertia in zip(tasks, best, strict=True):
        assert samples is X
        assert target is y
        assert_array_equal(metadata["sample_weight"], weights)
        np.testing.assert_allclose(-fitted.score(X, sample_weight=weights), inertia, rtol=1e-9)
    assert fit[3].inertia_ == model.inertia_
    assert fit[3] is not model


@has_callbacks
def test_a_callback_can_stop_the_search():
    recorder = Recorder(stop_at=9)
    model = HGMeans(4, **QUICK).set_callbacks(recorder).fit(X)
    assert model.stop_reason_ is StopReason.OBSERVER
    assert len(model.history_) == 10
    assert recorder.calls[-2:] == [("end", "fit", 0), "teardown"]


@has_callbacks
def test_many_solutions_share_a_task(monkeypatch):
    """No more tasks than scikit-learn can add up; each is begun and ended all the same."""
    monkeypatch.setattr("evomeans.estimators.callbacks.MOST_SUBTASKS", 10)
    recorder = Recorder()
    HGMeans(4, **{**QUICK, "max_offspring": 31}).set_callbacks(recorder).fit(X)
    assert recorder.max_subtasks == 9
    assert recorder.calls[2:-2] == offspring(0, 9)


@has_callbacks
def test_an_error_in_a_fit_still_tidies_up():
    recorder = Recorder()
    model = HGMeans(4, **QUICK, observers=lambda record: 1 / 0).set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    assert recorder.calls[-1] == "teardown"
    model.set_params(observers=None).fit(X)


@has_callbacks
def test_one_feature_is_a_task_without_subtasks():
    recorder = Recorder()
    HGMeans(4).set_callbacks(recorder).fit(X[:, :1])
    assert recorder.calls == ["setup", ("begin", "fit", 0), ("end", "fit", 0), "teardown"]


@has_callbacks
def test_a_resumed_search_goes_on_with_fewer_tasks(tmp_path):
    """Also if it began with more solutions than the estimator now knows of."""
    stack = np.random.default_rng(1).normal(size=(20, 4, 3))
    model = HGMeans(4, **QUICK, warm_start=True, checkpoint=tmp_path / "c")
    model.population_ = HGMeans(4, **{**QUICK, "max_population": 20}, init=stack).fit(X).population_
    model.set_params(observers=lambda record: True).fit(X)
    recorder = Recorder()
    resumed = HGMeans(4, **QUICK, checkpoint=tmp_path / "c").set_callbacks(recorder).fit(X)
    ended = sum(call[:2] == ("end", "offspring") for call in recorder.calls)
    assert ended <= len(resumed.history_) - 1 <= ended + 20
    assert recorder.calls[-1] == "teardown"


@has_callbacks
def test_clones_keep_their_callbacks():
    recorder = Recorder()
    clone(HGMeans(4, **QUICK).set_callbacks(recorder)).fit(X)
    assert recorder.calls[0] == "setup"


@has_callbacks
def test_the_progress_bar_of_scikit_learn(capsys):
    """Alone and inside a pipeline, as a sub-task of it."""
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    HGMeans(4, **QUICK).set_callbacks(ProgressBar()).fit(X)
    assert "HGMeans - fit" in capsys.readouterr().out
    pipeline = make_pipeline(StandardScaler(), HGMeans(4, **QUICK)).set_callbacks(ProgressBar())
    pipeline.fit(X)
    shown = capsys.readouterr().out
    assert "Pipeline - fit" in shown
    assert "HGMeans" in shown
    pipeline.fit_predict(X)
    assert not hasattr(pipeline[-1], "_skl_callbacks")


def test_warnings_point_at_whoever_calls_fit():
    """Whether or not scikit-learn's decorator stands in between."""
    with pytest.warns(ConvergenceWarning) as caught:
        HGMeans(4, **QUICK).fit(np.repeat(X[:2], 5, axis=0))
    assert [warning.filename for warning in caught] == [__file__]
