"""A search that is stopped and resumed is the search that never stopped."""

from __future__ import annotations

import dataclasses
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import evomeans
from evomeans.engines.protocol import Ability
from evomeans.engines.reference import ReferenceEngine
from evomeans.search import SearchSettings, StopReason, solve
from evomeans.search.population import (
    Patience,
    Population,
    PopulationRules,
    independent_parents,
    survivors,
)
from evomeans.search.search import Bounds, SearchState
from evomeans.storage.archive import write_archive
from evomeans.storage.checkpoint import FORMAT, VERSION, Checkpoint, CheckpointError, encode_state
from fakes import ScriptedClock, ScriptedEngine
from tests.fuzz.tampering import contents, rewrite

X = np.random.default_rng(0).normal(size=(40, 2))
PROBLEM = {"n_clusters": 5, "samples": "a" * 64}
SETTINGS = SearchSettings(3, 6, max_offspring=25, patience=1000)
RULES = PopulationRules(3, 6, 6, independent_parents, survivors, 1e-10, Patience(1000))


class Batches(ReferenceEngine):
    """The reference engine with rounds of several starts."""

    def __init__(self, batch):
        super().__init__(X, None)
        self.batch = batch


def search(checkpoint=None, *, settings=SETTINGS, stop_at=(), batch=1, seed=0, initial=(), **more):
    """Search for five clusters; an observer stops it at the given numbers of solutions."""
    count = 0

    def stop(record):
        nonlocal count
        count += 1
        return count in stop_at

    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    return solve(
        Batches(batch),
        5,
        settings,
        rng,
        initial=initial,
        observers=[*filter(None, [checkpoint]), stop],
        **more,
    )


def without_time(history):
    return [dataclasses.replace(record, seconds=0.0) for record in history]


def assert_same_result(one, two):
    assert without_time(one.history) == without_time(two.history)
    assert one.n_offspring == two.n_offspring
    assert one.stop_reason is two.stop_reason
    assert len(one.population) == len(two.population)
    for a, b in zip((one.best, *one.population), (two.best, *two.population), strict=True):
        assert_array_equal(a.centers, b.centers)
        assert_array_equal(a.cluster_weights, b.cluster_weights)
        assert (a.inertia, a.alpha) == (b.inertia, b.alpha)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.checkpoint"


@pytest.mark.slow
@given(
    stops=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    batch=st.sampled_from([1, 3, 8]),
    n_given=st.integers(0, 9),
    patience=st.sampled_from([2, 8, 1000]),
    agreement=st.sampled_from([1, 3]),
    seed=st.integers(0, 100),
)
def test_stopped_and_resumed_is_never_stopped(tmp_path_factory, stops, n_given, seed, **more):
    """Stopped after any numbers of solutions, founders or offspring, at any place in a round."""
    path = tmp_path_factory.mktemp("resumed") / "c"
    given = list(np.random.default_rng(seed).normal(size=(n_given, 5, 2)))
    strategy = dataclasses.replace(SETTINGS.strategy, agreement=more.pop("agreement"))
    settings = dataclasses.replace(SETTINGS, patience=more.pop("patience"), strategy=strategy)
    whole = search(settings=settings, initial=given, seed=seed, **more)
    for stop in stops:
        checkpoint = Checkpoint(path, PROBLEM)
        search(checkpoint, settings=settings, stop_at=[stop], initial=given, seed=seed, **more)
    resumed = search(Checkpoint(path, PROBLEM), settings=settings, seed=99, **more)
    assert_same_result(resumed, whole)


def test_a_checkpoint_changes_nothing(path):
    """With one or without, the search is the same."""
    assert_same_result(search(Checkpoint(path, PROBLEM, every=0.0)), search())


@pytest.mark.parametrize("batch", [1, 4])
def test_an_ended_search_ends_at_once_and_goes_on_if_it_may(path, batch):
    """The same limits: no new solution. Higher ones: as if they had been there from the start."""
    first = search(Checkpoint(path, PROBLEM), batch=batch)
    before = path.read_bytes()
    again = search(Checkpoint(path, PROBLEM), batch=batch)
    assert_same_result(again, first)
    assert path.read_bytes() == before
    higher = dataclasses.replace(SETTINGS, max_offspring=50)
    longer = search(Checkpoint(path, PROBLEM), settings=higher, batch=batch)
    assert_same_result(longer, search(settings=higher, batch=batch))


@pytest.mark.parametrize(
    "kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"], ids=lambda kind: kind
)
def test_every_bit_generator_of_numpy_can_be_kept(path, kind):
    """An instance is advanced by a resumed search as by a whole one."""
    one, other, third = (np.random.Generator(getattr(np.random, kind)(7)) for _ in range(3))
    whole = search(seed=one)
    search(Checkpoint(path, PROBLEM), stop_at=[9], seed=other)
    assert_same_result(search(Checkpoint(path, PROBLEM), seed=third), whole)
    assert one.random() == third.random()
    other = np.random.Generator(np.random.PCG64(0) if kind != "PCG64" else np.random.SFC64(0))
    with pytest.raises(CheckpointError, match="bit generator"):
        search(Checkpoint(path, PROBLEM), seed=other)


def test_the_best_is_kept_even_if_it_is_no_member(path):
    """And if it is, it is the same object in the population."""
    search(Checkpoint(path, PROBLEM), stop_at=[9])
    result = search(Checkpoint(path, PROBLEM), stop_at=[1])
    assert any(member is result.best for member in result.population)


# When it is written


def scripted(checkpoint, *, now=0.0, clock=None, seconds=1.0, during=None, **limits):
    """Search where every solution takes some seconds of a scripted clock."""
    clock = clock or ScriptedClock(now)
    engine = ScriptedEngine(repeat(3.0), clock=clock, seconds=seconds, during=during or {})
    settings = SearchSettings(2, 4, **{"max_offspring": 20, **limits})
    rng = np.random.default_rng(0)
    return solve(engine, 2, settings, rng, clock=clock, observers=[checkpoint])


def n_records(path):
    return len(contents(path)[1]["history_number"])


@pytest.mark.parametrize(("every", "seconds"), [(10.0, 1.0), (None, 3.0)])
def test_it_is_written_before_the_search_at_intervals_and_at_the_end(path, every, seconds):
    """With ten solutions between writes, usually half a minute, 24 solutions make four files."""
    seen = []
    watch = {number: lambda: seen.append(n_records(path)) for number in range(24)}
    scripted(Checkpoint(path, PROBLEM, every=every), seconds=seconds, during=watch)
    assert seen == [0] * 10 + [10] * 10 + [20] * 4
    assert n_records(path) == 24


def test_slow_writes_are_made_less_often(path, monkeypatch):
    """When writing takes 2 s, the next is due not 5 but 40 s later."""
    clock = ScriptedClock()
    writes = []

    def slow(*arguments):
        writes.append(clock.now)
        clock.now += 2.0

    monkeypatch.setattr("evomeans.storage.checkpoint.write_archive", slow)
    keeper = Checkpoint(path, PROBLEM, every=5.0, clock=clock)
    scripted(keeper, clock=clock, max_offspring=100)
    assert np.diff(writes[:-1]).tolist() == [42.0] + [40.0] * (len(writes) - 3)


def test_time_goes_on_where_it_stopped(path):
    """The clock of the records, and of max_time, counts the seconds of all runs together."""
    first = scripted(Checkpoint(path, PROBLEM), max_offspring=3)
    second = scripted(Checkpoint(path, PROBLEM), max_offspring=6)
    assert [record.seconds for record in second.history] == [float(i) for i in range(1, 11)]
    assert first.history[-1].seconds == 7.0
    result = scripted(Checkpoint(path, PROBLEM), now=500.0, max_offspring=100, max_time=13.0)
    assert (result.stop_reason, result.n_offspring) == (StopReason.MAX_TIME, 9)


# When it cannot be written


def test_a_path_that_cannot_be_written_is_an_error_before_the_search(tmp_path):
    engine, rng = ScriptedEngine(repeat(3.0)), np.random.default_rng(0)
    keeper = Checkpoint(tmp_path / "missing" / "c", PROBLEM)
    with pytest.raises(FileNotFoundError):
        solve(engine, 2, SETTINGS, rng, observers=[keeper])
    assert engine.starts == []


# Files that cannot be continued


@pytest.fixture
def written(path):
    search(Checkpoint(path, PROBLEM, seed=1), stop_at=[9])
    return path


def refuses(path, text, problem=PROBLEM, *, batch=1, **arguments):
    """Continuing is an error with that text, which names the file and leaves it alone."""
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=text) as caught:
        search(Checkpoint(path, problem, **arguments), batch=batch)
    assert str(path) in str(caught.value)
    assert "Choose another path, or remove the file to begin anew" in str(caught.value)
    assert path.read_bytes() == before


def test_another_problem_is_refused_and_every_difference_named(written):
    refuses(
        written,
        r"another search; n_clusters is 5 in the file and 6 now, samples differs\.",
        {"n_clusters": 6, "samples": "b" * 64},
    )
    refuses(written, "batch is None in the file and 4 now", {**PROBLEM, "batch": 4})
    refuses(written, "samples differs", {"n_clusters": 5, "samples": None})


def test_another_seed_is_refused_but_none_need_be_given(written):
    refuses(written, "random_state is 1 in the file and 2 now", seed=2)
    search(Checkpoint(written, PROBLEM, seed=1))
    search(Checkpoint(written, PROBLEM))


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x05\x06" + bytes(18)])
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    refuses(path, "cannot be continued: it ")


OLDER = (
    rf"it has version 3 of the format, written by an older evomeans \('{evomeans.__version__}'\); "
    rf"this one, {evomeans.__version__}, reads version {VERSION} only\. Use the one that wrote it"
)


@pytest.mark.parametrize(
    ("kind", "version", "text"),
    [
        (FORMAT, VERSION + 1, "newer evomeans"),
        (FORMAT, 3, OLDER),
        ("evomeans model", 1, "it is of the format 'evomeans model', not 'evomeans checkpoint'"),
    ],
)
def test_other_versions_and_kinds_are_refused(path, kind, version, text):
    """Before anything else in the file is looked at, which may have had another meaning."""
    write_archive(path, kind, version, {}, {"history_number": np.zeros(2, np.int64)})
    refuses(path, text)


def change(path, meta=None, arrays=None):
    """Replace fields and arrays; those of populations are added to what a whole one has."""
    meta, whole = meta or {}, contents(path)[0]["population"]
    if isinstance(own := meta.get("population"), dict) and own:
        meta = {**meta, "population": {**whole, **own}}
    if isinstance(settled := meta.get("settled"), list):
        beside = {**whole, "n_offspring": 0}
        full = [{**beside, **own} if isinstance(own, dict) else own for own in settled]
        meta = {**meta, "settled": full}
    rewrite(path, meta, arrays)


def swapped(first, second):
    def edit(numbers):
        assert numbers[first] != numbers[second]
        numbers[[first, second]] = numbers[[second, first]]
        return numbers

    return edit


def put(place, value):
    def edit(values):
        values[place] = value
        return values

    return edit


MIDDLE_HALVED = np.where(np.arange(9) == 4, 0.5, 1.0)


def scaled_best(factor):
    return lambda values: np.where(values == values.min(), factor * values, values)


def refuses_change(path, name, edit, text, **arguments):
    """Edit an array, or add one, and see it refused with that text."""
    change(path, arrays={name: edit(contents(path)[1].get(name))})
    refuses(path, text, **arguments)


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({"problem": 3}, "problem is not a JSON object"),
        ({"best": 99}, "best is not an integer"),
        ({"best": None}, "best is not an integer"),
        ({"best": -1}, "best contradicts"),
        ({"population": 3}, "population is not a JSON object"),
        ({"population": {}}, "population is impossible: its meta.json lacks founders_due"),
        ({"population": {"leader": -1}}, "leader contradicts"),
        ({"population": {"founders_due": 1e9}}, "population is impossible: its founders_due"),
        ({"population": {"founders_due": 10**6}}, "founders_due contradicts"),
        ({"population": {"number": 0}}, "number contradicts"),
        ({"population": {"last_improvement": 10**6}}, "last_improvement contradicts"),
        ({"population": {"n_agreeing": 0}}, "n_agreeing contradicts"),
        ({"population": {"n_offspring": 10**6}}, "n_offspring contradicts"),
        ({"population": {"members": [10**6]}}, "members is not"),
        ({"population": {"members": []}}, "population contradicts|leader contradicts"),
        ({"population": {"members": [0] * 6}}, "population contradicts"),
        ({"n_offspring": -1}, "n_offspring"),
        ({"n_sampled": 1}, "n_sampled contradicts"),
        ({"spacing": 1e300}, "spacing contradicts"),
        ({"settled": 3}, "settled is not a list"),
        ({"settled": [3]}, "settled is not a JSON object"),
        ({"settled": [{"members": [], "leader": -1}]}, "settled contradicts"),
        ({"settled": [{"n_agreeing": 0}]}, "n_agreeing contradicts"),
        ({"seconds": -1.0}, "seconds"),
        ({"rng": []}, "rng is not a JSON object"),
        ({"rng": {}}, "bit generator"),
    ],
)
def test_impossible_fields_are_refused(written, meta, text):
    change(written, meta=meta)
    refuses(written, text)


@pytest.mark.parametrize(
    ("name", "edit", "text"),
    [
        ("solution_centers", lambda _: np.full((9, 5, 2), np.nan), "NaN"),
        ("solution_centers", lambda _: np.zeros((9, 4, 2)), "shape"),
        ("given", lambda _: np.zeros((1, 5, 3)), "shape"),
        ("given", lambda _: np.zeros((9, 5, 2)), "founders_due contradicts"),
        ("waiting_centers", lambda _: np.zeros((1, 5, 2)), "shape"),
        ("history_best", lambda _: np.zeros(2), "history_best has the shape"),
        ("history_made_by", lambda _: np.full(9, 77), "history_made_by is not within 0 and"),
        ("more", lambda _: np.zeros(2), "unknown member"),
        # Criteria of the history rely on its order; its best is its lowest, also in the middle.
        ("history_number", swapped(0, -1), "history_number contradicts"),
        ("history_number", swapped(1, -2), "history_number contradicts"),
        ("history_number", put(-1, 10**6), "history_number contradicts"),
        ("history_inertia", lambda one: MIDDLE_HALVED * one, "solution_inertia contradicts"),
        ("history_best", lambda one: MIDDLE_HALVED * one, "solution_inertia contradicts"),
        # Otherwise a wrong solution could pass for the best.
        ("solution_inertia", scaled_best(0.5), "solution_inertia contradicts"),
        ("solution_inertia", scaled_best(2.0), "solution_inertia contradicts"),
        # A cluster cannot weigh more than all samples, which are forty.
        ("solution_cluster_weights", put((0, 0), 41.0), "weights is not within 0 and 40"),
    ],
)
def test_impossible_arrays_are_refused(written, name, edit, text):
    refuses_change(written, name, edit, text)


@pytest.mark.parametrize("value", [1.1e6, -1e160, 1e308])
@pytest.mark.parametrize("name", ["solution_centers", "waiting_centers", "given"])
def test_centers_whose_squares_could_overflow_are_refused(path, name, value):
    """Kernels rely on finite squares: with others they hang, or read where there is nothing."""
    initial = list(X[:40].reshape(8, 5, 2))
    search(Checkpoint(path, PROBLEM), stop_at=[1], initial=initial, batch=3)
    text = rf"its {name} is not within -1e\+06 and 1e\+06"
    refuses_change(path, name, put((0, 2, 1), value), text, batch=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("swaps", 1),
        ("swaps", 2**40),
        ("removed", 5),
        ("alpha", 1.5),
        ("quantile", 1.0),
        ("power", 3),
    ],
)
def test_impossible_orders_of_waiting_solutions_are_refused(path, name, value):
    """The strategy of these searches makes no swaps; more of them would run for ever."""
    search(Checkpoint(path, PROBLEM), stop_at=[13], batch=3)
    edit = put(-1, value + (name == "swaps"))
    refuses_change(path, f"waiting_{name}", edit, f"its waiting_{name} is not within", batch=3)


def test_orders_that_the_engine_cannot_carry_out_are_refused(path, monkeypatch):
    """Momentum in a file of a search whose engine has none."""
    monkeypatch.setattr(Batches, "abilities", frozenset(Ability) - {Ability.MOMENTUM})
    search(Checkpoint(path, PROBLEM), stop_at=[13], batch=3)
    momentum = contents(path)[1]["waiting_momentum"]
    assert momentum.size
    assert not momentum.any()
    change(path, arrays={"waiting_momentum": ~momentum})
    refuses(path, "its waiting_momentum contradicts", batch=3)


@pytest.mark.parametrize("shape", [(0, -1), (0, 1), (-1, 0)])
def test_labels_of_another_number_of_samples_are_refused(written, shape):
    n_solutions = len(contents(written)[1]["solution_inertia"])
    labels = np.zeros((n_solutions + shape[0], 40 + shape[1]), np.int32)
    text = rf"solution_labels has the shape .*, not \({n_solutions}, 40\)"
    refuses_change(written, "solution_labels", lambda _: labels, text)


def test_labels_that_the_model_cannot_have_are_refused(written):
    """As far as the model says so."""

    def check(labels):
        raise ValueError("cluster 0 has 40 samples")

    n_solutions = len(contents(written)[1]["solution_inertia"])
    change(written, arrays={"solution_labels": np.zeros((n_solutions, 40), np.int32)})
    with pytest.raises(CheckpointError, match="solution_labels are impossible: cluster 0 has 40"):
        search(Checkpoint(written, PROBLEM, check_labels=check))


@pytest.mark.parametrize(
    ("kind", "where", "value"),
    [
        ("MT19937", ("state", "pos"), 625),
        ("MT19937", ("state", "pos"), -1),
        ("MT19937", ("state", "key"), [1, 2, 3]),
        ("MT19937", ("state", "key"), [2**32] * 624),
        ("MT19937", ("state", "key"), "k" * 624),
        ("Philox", ("buffer_pos",), 10**6),
        ("PCG64", ("state", "state"), 2**128),
        ("PCG64", ("state", "state"), 1.5),
        ("PCG64", ("has_uint32",), 2),
        ("PCG64", ("has_uint32",), True),
        ("PCG64", ("uinteger",), 2**32),
    ],
)
def test_impossible_random_numbers_are_refused(path, kind, where, value):
    """NumPy would believe them, and read where there is nothing."""
    source = np.random.Generator(getattr(np.random, kind)(7))
    search(Checkpoint(path, PROBLEM), stop_at=[9], seed=source)
    state = contents(path)[0]["rng"]
    place = state
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    change(path, meta={"rng": state})
    with pytest.raises(CheckpointError, match=f"impossible .{where[-1]}"):
        search(Checkpoint(path, PROBLEM), seed=np.random.Generator(getattr(np.random, kind)(7)))


def test_every_field_of_the_state_is_stored(written):
    """A new field is stored by its type, without another edit."""
    meta, arrays = contents(written)
    known = [*meta, *arrays]
    for field in dataclasses.fields(SearchState):
        is_known = any(name == field.name or name.startswith(f"{field.name}_") for name in known)
        assert is_known == field.metadata.get("is_stored", True)
    of_population = {field.name for field in dataclasses.fields(Population)}
    assert meta["population"].keys() == of_population - {"rules"}


def test_a_field_of_an_unknown_type_cannot_be_forgotten():
    @dataclasses.dataclass
    class Extended(SearchState):
        more: set[int] = dataclasses.field(default_factory=set)

    bounds = Bounds(2, 1, len(X), float(len(X)), 0, frozenset())
    state = Extended(np.random.default_rng(0), Population(RULES, 2), [], bounds)
    with pytest.raises(TypeError, match=r"cannot store more of type set\[int\]"):
        encode_state(state)


def test_the_file_is_what_the_documentation_says(written):
    """Every member and every field is described."""
    text = (Path(__file__).parents[2] / "docs" / "background" / "file-formats.md").read_text(
        encoding="utf-8"
    )
    meta, arrays = contents(written)
    for name in arrays:
        assert ("`history_*.npy`" if name.startswith("history_") else f"`{name}.npy`") in text
    for name in (*meta, *meta["population"]):
        assert f"`{name}`" in text, name
