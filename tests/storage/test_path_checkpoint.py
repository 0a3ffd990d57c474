"""The file of a path: it holds the whole state, and refuses what no path can come to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans import CheckpointError
from evomeans.path import Entry, PathState
from evomeans.search.population import Individual
from evomeans.storage.checkpoint import PATH_VERSION, PathCheckpoint
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
