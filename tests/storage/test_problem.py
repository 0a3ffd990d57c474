"""Two searches are the same if all that decides about their course is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evomeans.engines import create_engine
from evomeans.search import SearchSettings
from evomeans.storage.checkpoint import describe_problem, digest

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
