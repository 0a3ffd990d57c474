"""Fits that are interrupted, terminated or killed, and go on where they were."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

from evomeans import CheckpointError, HGMeans, StopReason, load
from evomeans.search import SearchObserver
from tests.fuzz.tampering import contents

X = np.random.default_rng(0).normal(size=(80, 3))
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 40, "random_state": 0}


def quick(n_clusters=6, **parameters):
    """Make an estimator; swaps in plain NumPy take their time."""
    swift = {"strategy": "paper"} if parameters.get("engine") == "reference" else {}
    return HGMeans(n_clusters, **{**QUICK, **swift, "engine": "cpu", **parameters})


def stop_at(number):
    return lambda record: record.number == number


def without_time(history):
    return [dataclasses.replace(record, seconds=0.0) for record in history]


def assert_same_fit(one, two):
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == two.inertia_
    assert one.stop_reason_ == two.stop_reason_
    assert without_time(one.history_) == without_time(two.history_)
    for a, b in zip(one.population_, two.population_, strict=True):
        assert_array_equal(a.centers, b.centers)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def test_observers_are_told_of_the_state_from_which_the_search_continues(path):
    class Beginning(SearchObserver):
        def on_start(self, state):
            self.n_known = len(state.history)

    begun, continued = Beginning(), Beginning()
    part = quick(checkpoint=path, max_offspring=8, observers=begun).fit(X)
    quick(checkpoint=path, observers=[continued]).fit(X)
    assert (begun.n_known, continued.n_known) == (0, len(part.history_))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_resumed_fit_has_the_bits_of_one_never_stopped(path, engine, dtype, weighted):
    """Though the engine has forgotten all it knew of the population."""
    samples = (X + 50.0).astype(dtype)
    weights = np.random.default_rng(1).random(80) if weighted else None
    whole = quick(engine=engine).fit(samples, sample_weight=weights)
    for number in (3, 21):
        quick(engine=engine, checkpoint=path, observers=stop_at(number)).fit(
            samples, sample_weight=weights
        )
    resumed = quick(engine=engine, checkpoint=path).fit(samples, sample_weight=weights)
    assert_same_fit(resumed, whole)


def test_sparse_samples(path):
    rng = np.random.default_rng(0)
    samples = sp.csr_array(rng.random((90, 7)) * (rng.random((90, 7)) < 0.3))
    quick(checkpoint=path, observers=stop_at(9)).fit(samples)
    assert_same_fit(quick(checkpoint=path).fit(samples), quick().fit(samples))
    with pytest.raises(CheckpointError, match="layout is 'csr' in the file and 'dense' now"):
        quick(checkpoint=path).fit(samples.toarray())


def test_a_fit_without_a_seed_can_be_resumed(path):
    """The random numbers go on from the file, whatever random_state is now."""
    quick(checkpoint=path, random_state=None, observers=stop_at(9)).fit(X)
    generator = np.random.default_rng(3)
    once = quick(checkpoint=path, random_state=None).fit(X)
    again = quick(checkpoint=path, random_state=generator).fit(X)
    assert_same_fit(once, again)


def test_a_finished_fit_is_read_from_its_file(path):
    """No solution is made; with a higher limit the fit goes on as if it had always been there."""
    seen = []
    first = quick(checkpoint=path).fit(X)
    again = quick(checkpoint=path, observers=seen.append).fit(X)
    assert seen == []
    assert_same_fit(again, first)
    longer = quick(checkpoint=path, max_offspring=70).fit(X)
    assert_same_fit(longer, quick(max_offspring=70).fit(X))


def test_a_path_in_any_form(tmp_path):
    for checkpoint in (str(tmp_path / "a"), tmp_path / "b"):
        quick(checkpoint=checkpoint).fit(X)
        assert Path(checkpoint).is_file()
        assert clone(quick(checkpoint=checkpoint)).checkpoint is not None


@pytest.mark.parametrize(
    ("checkpoint", "error", "text"),
    [
        (3, TypeError, "checkpoint must be a path or None, got 3 of type int"),
        (b"file", TypeError, "checkpoint must be a path"),
        ("", ValueError, "checkpoint='' must be the path of a file"),
        ("a\0b", ValueError, "must be the path of a file"),
    ],
)
def test_what_is_no_path(checkpoint, error, text):
    with pytest.raises(error, match=text):
        quick(checkpoint=checkpoint).fit(X)


CHANGES = {
    "samples differs": lambda model, X: model.fit(X + 1e-9),
    "n_clusters is 6 in the file and 5 now": lambda model, X: model.set_params(n_clusters=5).fit(X),
    "random_state is 0 .* and 7 now": lambda model, X: model.set_params(random_state=7).fit(X),
    "init differs": lambda model, X: model.set_params(init=X[:6]).fit(X),
}


@pytest.mark.parametrize("text", sorted(CHANGES))
def test_another_problem_is_refused_and_nothing_overwritten(path, text):
    """The error says what differs; neither the file nor the estimator changes."""
    quick(checkpoint=path, observers=stop_at(9)).fit(X)
    before = path.read_bytes()
    model = quick(checkpoint=path)
    with pytest.raises(CheckpointError, match=text) as caught:
        CHANGES[text](model, X)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert not hasattr(model, "cluster_centers_")


@pytest.mark.parametrize(
    "changes",
    [
        {"n_jobs": 2},
        {"max_offspring": 41},
        {"strategy": "paper", "n_iter_no_change": 33},
        {"max_time": 1e6},
        {"target_inertia": 0.0},
        {"verbose": 0},
        {"warm_start": True},
        {"engine": "auto"},
    ],
)
def test_what_does_not_change_the_course_may_change(path, changes):
    strategy = changes.get("strategy", "deep")
    quick(checkpoint=path, observers=stop_at(9), strategy=strategy).fit(X)
    resumed = quick(checkpoint=path, **changes).fit(X)
    assert_same_fit(resumed, quick(**changes).fit(X))


def test_one_feature_needs_no_checkpoint(path):
    """The exact answer comes without a search: no file is read or written."""
    model = HGMeans(3, checkpoint=path).fit(X[:, :1])
    assert model.stop_reason_ is StopReason.PROVEN_OPTIMAL
    assert not path.exists()


def test_a_warm_start_from_a_loaded_model_can_be_resumed(tmp_path, path):
    """Its founders are the loaded population, also in a process that never had it."""
    quick(max_offspring=5).fit(X).save(tmp_path / "m")

    def loaded(**parameters):
        return load(tmp_path / "m").set_params(warm_start=True, max_offspring=30, **parameters)

    whole = loaded().fit(X)
    loaded(checkpoint=path, observers=stop_at(0)).fit(X)
    assert_same_fit(quick(checkpoint=path, max_offspring=30).fit(X), whole)


# Signals and limits of the system; tests.fuzz.kills ends whole processes


LONG = {"n_clusters": 12, "max_offspring": 300, "n_iter_no_change": 10**6, "n_jobs": 1}
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")


@pytest.fixture
def written_often(monkeypatch):
    monkeypatch.setattr("evomeans.storage.checkpoint.SECONDS_BETWEEN", 0.002)
    monkeypatch.setattr("evomeans.storage.checkpoint.PAUSE_PER_WRITE", 0.002)


@posix
def test_ctrl_c_keeps_the_best_and_the_state_and_says_how_to_go_on(path, written_often):
    """The fit ends with a model; the next one continues to the bits of one never interrupted."""
    whole = quick(**LONG).fit(X)

    def interrupt(record):
        if record.number == 20:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="fit was interrupted") as caught:
        part = quick(checkpoint=path, observers=interrupt, **LONG).fit(X)
    assert part.stop_reason_ == "interrupted"
    assert 20 <= part.n_iter_ == part.history_[-1].number < 300
    assert_array_equal(part.predict(X), part.labels_)
    assert [str(one.message) for one in caught] == [
        f"fit was interrupted after {part.n_iter_} offspring; the best solution so far is kept. "
        f"To go on, fit again with checkpoint={str(path)!r}."
    ]
    assert len(contents(path)[1]["history_number"]) == len(part.history_)
    assert without_time(part.history_) == without_time(whole.history_[: len(part.history_)])
    assert_same_fit(quick(checkpoint=path, **LONG).fit(X), whole)


@posix
def test_a_limit_on_the_size_of_files_loses_nothing(path, written_often):
    """The system refuses to write more: the fit goes on, and the state that was there stays."""
    import resource

    quick(checkpoint=path, **{**LONG, "max_offspring": 30}).fit(X)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.warns(RuntimeWarning, match="could not be written") as caught:
            limited = quick(checkpoint=path, **{**LONG, "max_offspring": 100}).fit(X)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (limited.stop_reason_, limited.n_iter_) == ("max_offspring", 100)
    assert all(f"The checkpoint {path} could not be" in str(one.message) for one in caught)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert_same_fit(quick(checkpoint=path, **LONG).fit(X), quick(**LONG).fit(X))
