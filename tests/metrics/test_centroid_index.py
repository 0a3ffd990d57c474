"""The centroid index counts clusters without a counterpart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evomeans.metrics import centroid_index


def orphans_by_counting(source, target):
    """Eqs. 3 and 4 of Fränti, Rezaei and Zhao (2014), one centre after the other."""
    chosen = set()
    for center in source:
        distances = [sum((a - b) ** 2 for a, b in zip(center, t, strict=True)) for t in target]
        chosen.add(distances.index(min(distances)))
    return len(target) - len(chosen)


def index_by_counting(a, b):
    return max(orphans_by_counting(a, b), orphans_by_counting(b, a))


# Whole numbers: sums of squares are exact, so ties are the same ones in every formula.
@st.composite
def pairs_of_centers(draw):
    d = draw(st.integers(1, 3))
    shape = st.tuples(st.integers(1, 7), st.just(d))
    centers = arrays(np.int64, shape, elements=st.integers(-9, 9))
    return draw(centers), draw(centers)


@pytest.mark.parametrize(
    ("a", "b", "index"),
    [
        ([[0]], [[5]], 0),
        ([[0], [10]], [[1], [9]], 0),
        # Two centres in the cluster at 0; those at 10 and 12 share one.
        ([[0], [10], [12]], [[-1], [1], [11]], 1),
        # All three centres in the first of three clusters.
        ([[0], [10], [20]], [[-1], [0], [1]], 2),
        # Orphans in one direction only: -5 and 15 are nobody's nearest, yet all have neighbours.
        ([[4], [6]], [[-5], [5], [15]], 2),
        ([[0, 0], [3, 4]], [[0, 1], [3, 3], [50, 50]], 1),
        # Coinciding centres have one counterpart between them.
        ([[0], [0], [7]], [[0], [6], [7]], 1),
    ],
)
def test_cases_by_hand(a, b, index):
    assert centroid_index(a, b) == index
    assert centroid_index(b, a) == index


@given(pairs_of_centers())
def test_it_is_what_counting_gives(pair):
    """Against the definition, in both orders; bounded by the numbers of clusters."""
    a, b = pair
    index = centroid_index(a, b)
    assert isinstance(index, int)
    assert index == index_by_counting(a.tolist(), b.tolist())
    assert index == centroid_index(b, a)
    assert abs(len(a) - len(b)) <= index < max(len(a), len(b))


@given(pairs_of_centers(), st.randoms(use_true_random=False))
def test_the_order_of_distinct_centers_does_not_matter(pair, random):
    """A set has index 0 with every permutation of itself."""
    a = np.unique(pair[0], axis=0)
    shuffled = a[random.sample(range(len(a)), len(a))]
    assert centroid_index(a, shuffled) == 0


@given(pairs_of_centers(), st.integers(-1000, 1000), st.sampled_from([2.0**-300, 0.25, 2.0**500]))
def test_translation_and_scale_do_not_matter(pair, shift, scale):
    """Neither a shift nor a change of the unit, however extreme, changes it."""
    a, b = pair
    index = centroid_index(a, b)
    assert centroid_index(a + shift, b + shift) == index
    assert centroid_index(a * scale, b * scale) == index


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, bool])
def test_kinds_of_numbers(dtype):
    a = np.array([[0, 1], [1, 0]], dtype=dtype)
    assert centroid_index(a, a[::-1]) == 0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0, 2.0], [[1.0]], r"centers_a has shape \(2,\); expected \(n_clusters, n_features\)"),
        ([[1.0]], np.zeros((2, 2, 2)), r"centers_b has shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), [[1.0, 2.0]], r"centers_a has shape \(0, 2\)"),
        ([[1.0]], np.zeros((3, 0)), r"centers_b has shape \(3, 0\)"),
        ([[1.0, 2.0]], [[1.0]], "centers_a has 2 features and centers_b has 1"),
        ([[np.nan]], [[1.0]], "centers_a has NaN or infinite"),
        ([[1.0]], [[-np.inf]], "centers_b has NaN or infinite"),
        ([["x"]], [[1.0]], "centers_a has dtype <U1; expected real numbers"),
        ([[1.0]], [[1j]], "centers_b has dtype complex128"),
    ],
)
def test_errors_say_which_set_is_wrong(a, b, message):
    with pytest.raises(ValueError, match=message):
        centroid_index(a, b)
