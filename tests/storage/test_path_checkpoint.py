"""Checkpoints of paths, and what tells one problem from another."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from evomeans import CheckpointError
from evomeans.engines import create_engine
from evomeans.path import Entry, PathState
from evomeans.search import SearchSettings
from evomeans.search.population import Individual
from evomeans.storage.checkpoint import PATH_VERSION, PathCheckpoint, describe_problem, digest
from tests.fuzz.tampering import contents, rewrite

PROBLEM = {"samples": "a" * 64, "n_clusters": "1, 2, 3"}


def keeper_of(file, **options):
    """Return the keeper of a path through samples with four features and a weight of nine."""
    return PathCheckpoint(file, PROBLEM, n_features=4, total_weight=9.0, **options)


def found(k, inertia, seed=0):
    rng = np.random.default_rng([k, seed])
    return Individual(rng.normal(size=(k, 4)), inertia, rng.random(k), rng.random())


def filled():
    """Return a state in which everything is different from its default."""
    state = PathState([1, 2, 3], [7, 8], n_steps=5, seconds=1.25)
    for k in (1, 2, 3):
        members = [found(k, 0.1 + seed + 1 / k, seed) for seed in range(3)]
        state.entries[k] = Entry(
            members,
            up=members[:2],
            down=[found(k, 9.0, 5)],
            alone=[0.1 + 1 / k, 9.0],
            is_combined=k == 2,
            n_fresh=k,
            tested={k + 1: 1 / 3},
            n_solutions=40 + k,
        )
    return state


def same(one, other):
    assert (one.ks, one.entropy, one.n_steps) == (other.ks, other.entropy, other.n_steps)
    assert one.seconds == other.seconds
    assert list(one.entries) == list(other.entries)
    for k, entry in one.entries.items():
        twin = other.entries[k]
        for name in ("alone", "is_combined", "n_fresh", "tested", "n_solutions"):
            assert getattr(entry, name) == getattr(twin, name)
        for name in ("members", "up", "down"):
            for a, b in zip(getattr(entry, name), getattr(twin, name), strict=True):
                assert (a.inertia, a.alpha) == (b.inertia, b.alpha)
                assert_array_equal(a.centers, b.centers)
                assert_array_equal(a.cluster_weights, b.cluster_weights)


def test_the_state_comes_back_as_it_was(tmp_path):
    file = tmp_path / "path.checkpoint"
    state = filled()
    keeper = keeper_of(file, seed=3, every=100.0)
    assert keeper.read_or_write(state) is state
    state.n_steps = 6
    keeper.on_round(state, False)
    same(keeper_of(file, seed=3).read_or_write(PathState([1, 2, 3], [0])), filled())
    keeper.on_round(state, True)
    back = keeper_of(file).read_or_write(PathState([1, 2, 3], [0]))
    same(back, state)
    empty = PathState([1, 2], [0])
    keeper_of(tmp_path / "new").read_or_write(empty)
    same(keeper_of(tmp_path / "new").read_or_write(PathState([1, 2], [5])), empty)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta: meta.update(ks=[1, 2]), "numbers of clusters are not those"),
        (lambda meta: meta.update(ks="123"), "ks are not a list of integers"),
        (lambda meta: meta["entries"]["2"].update(members=[]), "impossible"),
        (lambda meta: meta["entries"]["2"].update(members=[0]), "impossible"),
        (lambda meta: meta["entries"]["2"].update(up=[-1]), "impossible"),
        (lambda meta: meta["entries"]["2"].update(up=[999]), "impossible"),
        (lambda meta: meta["entries"]["2"].update(alone=["x"]), "impossible"),
        (lambda meta: meta["entries"]["2"].pop("tested"), "impossible"),
        (lambda meta: meta.update(entries=[]), "entries is not a JSON object"),
        (lambda meta: meta["entries"].update(x={}), "entries are not by numbers of clusters"),
        (lambda meta: meta["entries"].update({"02": {}}), "entries are not by numbers of clusters"),
        (lambda meta: meta["entries"]["2"]["members"].reverse(), "impossible"),
        (lambda meta: meta.update(n_steps=-1), "n_steps"),
        (lambda meta: meta.update(version=PATH_VERSION + 1), "Update evomeans"),
        (lambda meta: meta.update(version=PATH_VERSION - 1), "Use the one that wrote it"),
        (lambda meta: meta["problem"].update(samples="b" * 64), "samples differs"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path, change, message):
    file = tmp_path / "path.checkpoint"
    keeper_of(file).read_or_write(filled())
    meta, _ = contents(file)
    change(meta)
    rewrite(file, meta)
    before = file.read_bytes()
    with pytest.raises(CheckpointError, match=message):
        keeper_of(file).read_or_write(PathState([1, 2, 3], [0]))
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("centers", lambda values: values * 1e160, r"centers is not within -1e\+06 and 1e\+06"),
        ("centers", lambda values: values[:, :3], r"centers has the shape .*, 4\)"),
        ("centers", lambda values: values[:-1], "centers has the shape"),
        ("cluster_weights", lambda values: values + 10, "cluster_weights is not within 0 and 9"),
        ("solution_inertia", lambda values: values - 100, "solution_inertia is not within"),
        ("solution_inertia", lambda values: values * np.inf, "NaN or infinity"),
        ("solution_k", lambda values: values + 2**40, "has the shape"),
    ],
)
def test_arrays_that_would_harm_a_kernel_are_refused(tmp_path, name, change, message):
    """Of another number of features, too far away, too heavy, or too many."""
    file = tmp_path / "path.checkpoint"
    keeper_of(file).read_or_write(filled())
    rewrite(file, arrays={name: change(contents(file)[1][name])})
    with pytest.raises(CheckpointError, match=message):
        keeper_of(file).read_or_write(PathState([1, 2, 3], [0]))


def test_a_write_that_fails_is_a_warning(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    keeper = keeper_of(folder / "path.checkpoint")
    state = filled()
    keeper.read_or_write(state)
    (folder / "path.checkpoint").unlink()
    folder.rmdir()
    state.n_steps += 1
    with pytest.warns(RuntimeWarning, match="could not be written"):
        keeper.on_round(state, True)


# Two searches are the same if all that decides about their course is


X = np.random.default_rng(0).normal(size=(20, 3))


def describe(samples=X, weights=None, k=3, init=(), engine="cpu", **settings):
    held = create_engine(engine, samples, weights)
    return describe_problem(held, samples, weights, k, SearchSettings(**settings), init)


def test_it_is_made_of_what_json_can_hold():
    assert all(isinstance(value, int | str | None) for value in describe().values())


def test_the_same_problem_has_the_same_description():
    """Memory and engine do not matter, nor do criteria that only end a search."""
    assert describe() == describe(X.copy())
    assert describe() == describe(engine="reference")
    assert describe() == describe(max_offspring=3, patience=2, max_time=1.0, target_inertia=1.0)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"samples": X.astype(np.float32)}, {"dtype", "samples"}),
        ({"samples": X[::-1].copy()}, {"samples"}),
        ({"samples": np.nextafter(X, 9.0)}, {"samples"}),
        ({"samples": X[:19]}, {"n_samples", "samples"}),
        ({"weights": np.ones(20)}, {"sample_weight"}),
        ({"k": 4}, {"n_clusters"}),
        ({"init": [X[:3]]}, {"init"}),
        ({"min_population": 9}, {"min_population"}),
        ({"max_population": 21}, {"max_population"}),
        ({"roulette_power": 1}, {"roulette_power"}),
    ],
)
def test_every_difference_shows_under_its_name(changes, names):
    one, two = describe(), describe(**changes)
    assert {name for name in one if one[name] != two[name]} - {"frame"} == names


def test_sparse_samples_are_told_apart_by_all_three_arrays():
    """Equal values at other places are other samples."""
    base = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    column = sp.csr_array(np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]]))
    row = sp.csr_array(np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]))
    digests = {describe(samples, k=2)["samples"] for samples in (base, column, row)}
    assert len(digests) == 3
    assert describe(base, k=2)["layout"] == "csr"


@given(arrays(np.float64, (3, 2)), st.integers(0, 5), st.integers(0, 63))
def test_a_digest_sees_every_bit(values, position, bit):
    other = values.copy()
    other.reshape(-1).view(np.uint64)[position] ^= np.uint64(1 << bit)
    assert digest(values) != digest(other)
    assert digest(values) == digest(values.copy(order="F"))


def test_a_digest_sees_shapes_and_where_arrays_end():
    zeros = np.zeros(6)
    assert len({digest(zeros), digest(zeros.reshape(2, 3)), digest(zeros[:3], zeros[3:])}) == 3
    assert digest(np.zeros((0, 2))) != digest(np.zeros((0, 3)))
