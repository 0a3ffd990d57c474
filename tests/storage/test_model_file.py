"""Model files: the same estimator comes back, and a bad file is refused with one clear error."""

from __future__ import annotations

import copy
import dataclasses
import random
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from evomeans import ConstrainedHGMeans, HGMeans, ModelFileError, load
from evomeans.estimators.persistence import VERSION
from evomeans.search import DEEP, PAPER
from evomeans.search.history import COLUMNS, History
from evomeans.storage.archive import HISTORY_MEMBERS
from tests.fuzz.tampering import contents, rewrite

X = np.random.default_rng(0).normal(size=(60, 3))
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 12, "random_state": 0}


def quick(n_clusters=4, **parameters):
    return HGMeans(n_clusters, **{**QUICK, "engine": "reference", **parameters})


@pytest.fixture(scope="module")
def model():
    return quick(init=X[:4]).fit(X)


@pytest.fixture
def path(tmp_path, model):
    path = tmp_path / "model.evomeans"
    model.save(path)
    return path


def assert_same_model(one, two):
    """Every fitted attribute is equal to the last bit."""
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert one.cluster_centers_.dtype == two.cluster_centers_.dtype
    assert_array_equal(one.labels_, two.labels_)
    assert one.labels_.dtype == two.labels_.dtype == np.int32
    for name in ("inertia_", "n_iter_", "history_", "stop_reason_", "n_features_in_"):
        assert getattr(one, name) == getattr(two, name), name
        assert type(getattr(one, name)) is type(getattr(two, name)), name
    assert_array_equal(one._frame.shift, two._frame.shift)
    assert one._frame.exponent == two._frame.exponent
    assert len(one.population_) == len(two.population_)
    for a, b in zip(one.population_, two.population_, strict=True):
        assert_array_equal(a.centers, b.centers)
        assert_array_equal(a.cluster_weights, b.cluster_weights)
        assert (a.inertia, a.alpha) == (b.inertia, b.alpha)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_loaded_model_answers_with_the_same_bits(tmp_path, dtype, offset, engine):
    samples = (X + offset).astype(dtype)
    new = (np.random.default_rng(1).normal(size=(50, 3)) * 3 + offset).astype(dtype)
    model = quick(engine=engine).fit(samples)
    model.save(tmp_path / "m")
    twin = load(tmp_path / "m")
    assert_same_model(model, twin)
    assert_array_equal(twin.predict(new), model.predict(new))
    assert_array_equal(twin.transform(new), model.transform(new))
    assert twin.score(new) == model.score(new)
    assert twin.get_params() == model.get_params()


def test_sparse_models(tmp_path):
    rng = np.random.default_rng(0)
    samples = sp.csr_array(rng.random((80, 6)) * (rng.random((80, 6)) < 0.3))
    model = quick(engine="cpu").fit(samples)
    model.save(tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict(samples), model.labels_)


def test_a_model_that_was_solved_exactly(tmp_path):
    """No history, one member; everything else as usual."""
    model = HGMeans(2).fit([[0.0], [1.0], [5.0], [6.0], [7.0]])
    model.save(tmp_path / "m")
    assert_same_model(load(tmp_path / "m"), model)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["ü", "", "<script>"], ["\ud800", "\n", '"']])
def test_feature_names_come_back(tmp_path, names):
    """Any text is a name; a model without names has none."""
    table = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
    model = quick().fit(table)
    model.save(tmp_path / "m")
    twin = load(tmp_path / "m")
    assert twin.feature_names_in_.tolist() == names
    assert twin.feature_names_in_.dtype == object
    assert_array_equal(twin.predict(table), model.labels_)
    assert list(twin.get_feature_names_out()) == list(model.get_feature_names_out())


def test_parameters_come_back(tmp_path):
    """All but those that are no data; numbers of NumPy become numbers of Python."""
    parameters = {
        "n_clusters": np.int64(4),
        "min_population": 2,
        "max_population": 5,
        "max_offspring": 7,
        "n_iter_no_change": 3,
        "max_time": np.float32(99.5),
        "target_inertia": 0.25,
        "n_jobs": -1,
        "warm_start": np.True_,
        "engine": "reference",
        "random_state": 5,
        "verbose": 0,
    }
    model = HGMeans(**parameters, observers=[print_nothing]).fit(X)
    model.checkpoint = tmp_path / "c"
    model.save(tmp_path / "m")
    twin = load(tmp_path / "m")
    assert {name: getattr(twin, name) for name in parameters} == parameters
    assert type(twin.n_clusters) is int
    assert type(twin.max_time) is float
    assert twin.warm_start is True
    assert (twin.checkpoint, twin.observers, twin.init) == (None, None, None)


def print_nothing(record):
    """Observer that has nothing to say."""


@pytest.mark.parametrize("source", [None, np.random.default_rng(3), np.random.RandomState(3)])
def test_only_seeds_are_stored_and_sources_of_randomness_left_alone(tmp_path, model, source):
    twin = copy.copy(model).set_params(random_state=source, max_time=np.inf)
    before = str(source.__getstate__()) if source is not None else None
    twin.save(tmp_path / "m")
    twin = load(tmp_path / "m")
    assert (twin.random_state, twin.max_time) == (None, None)
    assert source is None or str(source.__getstate__()) == before


@pytest.mark.parametrize("init", [X[:4], X[:4].tolist(), np.stack([X[:4], X[4:8]])])
def test_init_comes_back(tmp_path, model, init):
    copy.copy(model).set_params(init=init).save(tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").init, np.asarray(init))


def test_a_loaded_model_can_be_cloned_and_refitted(path, model):
    twin = clone(load(path))
    assert not hasattr(twin, "cluster_centers_")
    assert_same_bits(twin.fit(X), model)
    assert_same_bits(load(path).fit(X), model)


def assert_same_bits(one, two):
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert_array_equal(one.history_.column("inertia"), two.history_.column("inertia"))


def test_a_warm_start_goes_on_from_a_loaded_population(path, model):
    """As from the original: the next fit has the same founders and the same end."""
    twin = load(path).set_params(warm_start=True, random_state=1)
    original = copy.copy(model).set_params(warm_start=True, random_state=1)
    population = [member.inertia for member in twin.population_]
    assert_same_bits(twin.fit(X), original.fit(X))
    founders = [record.inertia for record in twin.history_ if record.number == 0]
    np.testing.assert_allclose(founders[: len(population)], population, rtol=1e-9)


def test_saving_is_reproducible_and_saves_again(path, tmp_path):
    """Equal models give equal bytes, also after a detour through a file."""
    load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_whole_numbers_of_other_models_stay_whole(tmp_path):
    """The number of violations is an integer, also after a detour through a file."""
    model = ConstrainedHGMeans(3, random_state=0, max_offspring=5, size_max="balanced").fit(X)
    model.save(tmp_path / "m")
    twin = load(tmp_path / "m")
    assert type(twin.n_violations_) is int
    twin.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("name", ["", "a" * 300, "ü \r\n\ud800"])
def test_any_name_of_an_operator_comes_back(tmp_path, model, name):
    renamed(model, name).save(tmp_path / "m")
    assert load(tmp_path / "m").history_[0].made_by == name


def renamed(model, name):
    """Return the model as if an operator of that name had made its first solution."""
    twin = copy.copy(model)
    first, *others = model.history_
    twin.history_ = History([dataclasses.replace(first, made_by=name), *others])
    return twin


def test_a_strategy_of_the_users_own_is_not_stored_and_that_is_said(tmp_path, model):
    """The warning is at the line that saves; strategies of evomeans are stored by their names."""
    mine = dataclasses.replace(DEEP, name="mine", swaps=0.0)
    with pytest.warns(UserWarning, match=r"The strategy 'mine' is not stored") as caught:
        copy.copy(model).set_params(strategy=mine).save(tmp_path / "m")
    assert [warning.filename for warning in caught] == [__file__]
    assert load(tmp_path / "m").strategy == "deep"
    copy.copy(model).set_params(strategy=PAPER).save(tmp_path / "m")
    assert load(tmp_path / "m").strategy == "paper"


def test_only_a_fitted_model_with_valid_parameters_is_saved(tmp_path, model):
    with pytest.raises(NotFittedError):
        HGMeans().save(tmp_path / "m")
    for bad in ({"n_clusters": "3"}, {"init": X[:3]}, {"n_jobs": 10**6}, {"engine": "abacus"}):
        twin = copy.copy(model).set_params(**bad)
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            twin.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# Files that are no good


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


def test_a_file_of_something_else(tmp_path):
    (tmp_path / "m").write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(
        ModelFileError, match=r"m is not a valid model file: it is damaged, or no ZIP"
    ):
        load(tmp_path / "m")
    np.savez(tmp_path / "m.npz", x=X)
    with pytest.raises(ModelFileError, match=r"lacks the member meta\.json"):
        load(tmp_path / "m.npz")


def refuses(path, text, **changes):
    rewrite(path, **changes)
    with pytest.raises(ModelFileError, match=text):
        load(path)


def parameters(path, **changes):
    return {"parameters": {**contents(path)[0]["parameters"], **changes}}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "evomeans checkpoint"}, "of the format 'evomeans checkpoint'"),
        ({"version": VERSION + 1}, "newer evomeans"),
        (
            {"version": VERSION - 1},
            "older evomeans .* reads version 3 only",
        ),
        ({"parameters": None}, "parameters is not a JSON object"),
        ({"feature_names": ["a", "b"]}, "names 2 features, but has 3"),
        ({"feature_names": [1, 2, 3]}, "not a list of texts"),
        ({"feature_names": {"a": 1}}, "not a list of texts"),
        ({"inertia": -1.0}, "inertia is not within"),
        ({"inertia": "0"}, "inertia is not a number"),
        ({"inertia": 10**400}, "inertia is not within"),
        ({"n_iter": 1.5}, "n_iter is not an integer"),
        ({"n_iter": -1}, "n_iter is not an integer"),
        ({"stop_reason": "bored"}, "stop_reason"),
        ({"estimator": None}, "estimator is not a text"),
        ({"estimator": ""}, "fitted|estimator|n_features_in"),
        ({"n_rediscoveries": None}, "n_rediscoveries is not an integer"),
        ({"levels": None}, "levels are not a list of integers"),
        ({"history_operators": []}, "history_made_by is not within 0 and -1"),
        ({"history_operators": [1]}, "history_operators are not a list of texts"),
        ({"levels": [0]}, "levels are not a list of integers"),
        ({"stop_reason": ["max_offspring"]}, "stop_reason"),
        ({"stop_reason": "max_iter"}, "stop_reason"),
        ({"frame_exponent": 5000}, "frame_exponent"),
        ({"frame_exponent": -(10**30)}, "frame_exponent"),
    ],
)
def test_impossible_fields(path, changes, text):
    refuses(path, text, meta=changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"n_clusters": "4"}, "n_clusters must be an int"),
        ({"n_clusters": 0}, "n_clusters=0"),
        ({"n_clusters": [4]}, "n_clusters must be an int"),
        ({"max_population": 1}, "max_population=1 must be at least min_population=3"),
        ({"max_time": "soon"}, "max_time must be"),
        ({"engine": "os.system"}, "engine='os.system' is unknown"),
        ({"engine": None}, "engine must be one of"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": 10**9}, "n_jobs=1000000000 must not exceed"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"random_state": [1, 2]}, "random_state must be"),
        ({"random_state": -1}, "random_state=-1"),
        ({"warm_start": 1}, "warm_start must be"),
        ({"verbose": -1}, "verbose"),
        ({"observers": ["print"]}, "unknown parameter 'observers'"),
        ({"checkpoint": "/etc/passwd"}, "unknown parameter 'checkpoint'"),
        ({"__class__": "os"}, "unknown parameter '__class__'"),
    ],
)
def test_impossible_parameters(path, changes, text):
    """They go through the same checks as those of a user, and name nothing to call or write to."""
    refuses(path, text, meta=parameters(path, **changes))


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("cluster_centers", np.full((4, 3), np.nan), "NaN or infinity"),
        ("cluster_centers", np.full((4, 3), np.inf), "NaN or infinity"),
        ("cluster_centers", np.full((4, 3), 1e308), "out of reach"),
        ("cluster_centers", np.ones((4, 3), np.int32), "is of type int32"),
        ("cluster_centers", np.ones(12), "has the shape"),
        ("cluster_centers", np.ones((0, 3)), "no centres"),
        ("cluster_centers", np.ones((3, 3)), "labels is not within|has the shape"),
        ("labels", np.full(60, 4, np.int32), "labels is not within 0 and 3"),
        ("labels", np.full(60, -1, np.int32), "labels is not within"),
        ("labels", np.zeros(60), "is of type float64"),
        ("labels", np.zeros(0, np.int32), "no labels"),
        ("labels", None, r"lacks the member labels\.npy"),
        ("frame_shift", np.zeros(2), "has the shape"),
        ("frame_shift", np.full(3, np.nan), "NaN"),
        ("population_centers", np.zeros((9, 4, 3)), "has the shape"),
        ("population_centers", np.zeros((0, 4, 3)), "has the shape"),
        ("population_alpha", np.full(4, 1.5), "has the shape|not within"),
        ("history_number", np.zeros(3, np.int64), "has the shape .* not .3"),
        ("history_accepted", np.zeros(36), "is of type float64"),
        ("init", np.zeros((1, 4, 2)), "init.shape"),
        ("init", np.zeros((0, 4, 3)), "init.shape"),
        ("unknown", np.zeros(3), r"unknown member unknown\.npy"),
    ],
)
def test_impossible_arrays(path, name, values, text):
    refuses(path, text, arrays={name: values})


def test_parameters_that_a_later_version_adds_take_their_default(path):
    """An older file may lack a parameter."""
    fields = parameters(path)
    del fields["parameters"]["verbose"]
    rewrite(path, meta=fields)
    assert load(path).verbose == 0


def test_the_file_is_what_the_documentation_says(path):
    """Every member and every field of it is described, and nothing else is in there."""
    text = (Path(__file__).parents[2] / "docs" / "background" / "file-formats.md").read_text(
        encoding="utf-8"
    )
    meta, arrays = contents(path)
    documented = text.replace("`init.npy`", "")
    for name in arrays:
        assert f"`{'history_*' if name.startswith('history_') else name}.npy`" in text, name
    for name in (*meta, *meta["parameters"]):
        assert f"`{name}`" in documented, name


@given(seed=st.integers(0, 2**32), flips=st.integers(1, 8))
def test_flipped_bytes_give_the_model_or_the_error(tmp_path_factory, model, seed, flips):
    """Whatever is hit: quickly, with little memory, the same model or a ModelFileError."""
    folder = tmp_path_factory.getbasetemp()
    path = folder / "flipped.evomeans"
    model.save(path)
    data = bytearray(path.read_bytes())
    source = random.Random(seed)
    for _ in range(flips):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    path.write_bytes(data)
    tracemalloc.start()
    began = time.perf_counter()
    try:
        loaded = load(path)
    except ModelFileError:
        loaded = None
    finally:
        seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert seconds < 2.0
    assert peak < 20 * len(data) + 10**6
    if loaded is not None:
        assert_same_model(loaded, model)


def test_every_column_of_a_history_is_stored():
    """A new one of a type that cannot be stored would be forgotten."""
    assert {f"history_{name}" for name in COLUMNS} == {*HISTORY_MEMBERS}
