"""Metrics against scikit-learn where it has them, and against the formulas word by word."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import metrics as theirs

from evomeans import metrics
from evomeans.metrics import bic, centroid_index
from evomeans.metrics.sums import MANY_CENTERS, MANY_FEATURES, two_distances


def clustered(seed, offset=0.0, n=60, d=3, k=4):
    """Return samples, labels that are none of K-means, and whole weights."""
    rng = np.random.default_rng(seed)
    labels = np.append(np.arange(k), rng.integers(k, size=n - k))
    X = rng.normal(size=(n, d)) + 2.0 * labels[:, None] + offset
    return X, labels, rng.integers(1, 4, size=n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_scikit_learn_agrees(seed, offset):
    """To 1e-9, also far from the origin."""
    X, labels, _ = clustered(seed, offset)
    scores = ("calinski_harabasz_score", "davies_bouldin_score", "silhouette_score")
    for name in (*scores, "silhouette_samples"):
        # Of numbers with an offset, scikit-learn itself loses digits: it is asked without.
        expected, atol = getattr(theirs, name)(X - offset, labels), 1e-9 * name.endswith("samples")
        assert_allclose(getattr(metrics, name)(X, labels), expected, rtol=1e-9, atol=atol)


@pytest.mark.parametrize("name", ["calinski_harabasz", "davies_bouldin", "bic", "silhouette"])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_repetitions_and_sparse_is_dense(name, seed):
    score = getattr(metrics, f"{name}_score")
    X, labels, counts = clustered(seed)
    repeated = np.repeat(X, counts, axis=0), np.repeat(labels, counts)
    assert_allclose(score(X, labels, counts), score(*repeated), rtol=1e-9)
    assert_allclose(score(sp.csr_array(X), labels), score(X, labels), rtol=1e-12)
    assert_allclose(score(X, labels + 7), score(X, labels), rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_bic_is_that_of_the_likelihood(seed):
    """Summed up sample by sample."""
    X, labels, _ = clustered(seed)
    n, d = X.shape
    k = labels.max() + 1
    means = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    variance = ((X - means[labels]) ** 2).sum() / (n * d)
    likelihood = sum(
        np.log(np.mean(labels == labels[i]))
        - 0.5 * d * np.log(2 * np.pi * variance)
        - 0.5 * ((X[i] - means[labels[i]]) ** 2).sum() / variance
        for i in range(n)
    )
    expected = -2 * likelihood + (k - 1 + k * d + 1) * np.log(n)
    assert_allclose(metrics.bic_score(X, labels), expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_simplified_silhouette_sample_by_sample(seed):
    X, _, weights = clustered(seed)
    centers = X[:5]
    expected = []
    for x in X:
        a, b = sorted(np.linalg.norm(x - c) for c in centers)[:2]
        expected.append((b - a) / max(a, b))
    values = metrics.simplified_silhouette_samples(X, centers)
    assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    score = metrics.simplified_silhouette_score(X, centers, weights)
    assert_allclose(score, np.average(expected, weights=weights), rtol=1e-9)


def test_silhouette_of_a_sample_of_the_samples():
    """The same rows as those drawn by hand, and all of them if there are not more."""
    X, labels, _ = clustered(0)
    rows = np.sort(np.random.default_rng(3).choice(len(X), 40, replace=False))
    score = metrics.silhouette_score
    some = score(X, labels, sample_size=40, random_state=3)
    assert_allclose(some, theirs.silhouette_score(X[rows], labels[rows]), rtol=1e-9)
    assert score(X, labels, sample_size=99) == score(X, labels)


INERTIAS, KS = np.array([90.0, 40.0, 17.0, 15.0, 14.0]), np.arange(1, 6)


def test_jump_by_its_definition():
    """For few features, where nothing overflows, up to the common factor."""
    for power in (None, 0.7):
        powers = (INERTIAS / (30 * 4)) ** -(power or 2.0)
        expected = np.diff(np.append(0.0, powers)) / powers[-1]
        assert_allclose(metrics.jump_statistic(INERTIAS, KS, 30, 4, power), expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e300])
def test_jump_neither_overflows_nor_vanishes(scale):
    """With 2,000 features, and whatever the unit."""
    values = metrics.jump_statistic(INERTIAS * scale, KS, 30, 2000)
    assert np.isfinite(values).all()
    assert values.argmax() == 4
    # It knows only neighbours.
    values = metrics.jump_statistic([40.0, 17.0, 14.0, 0.0], [2, 3, 5, 6], 30, 4)
    assert np.isnan(values).tolist() == [True, False, True, True]


def test_krzanowski_lai_by_its_definition():
    d = 3
    W = dict(zip(KS.tolist(), INERTIAS.tolist(), strict=True))

    def diff(k):
        return (k - 1) ** (2 / d) * W[k - 1] - k ** (2 / d) * W[k]

    KL = metrics.krzanowski_lai_index(INERTIAS, KS, d)
    assert_allclose(KL[1:-1], [abs(diff(k) / diff(k + 1)) for k in range(2, 5)], rtol=1e-9)
    assert np.isnan(KL[[0, -1]]).all()


def test_gap_by_its_definition():
    references = np.random.default_rng(0).uniform(1, 2, size=(7, 5)) * INERTIAS
    gaps, errors = metrics.gap_statistic(INERTIAS, references)
    for k, logs in enumerate(np.log(references).T.tolist()):
        mean = sum(logs) / 7
        deviation = np.sqrt(sum((log - mean) ** 2 for log in logs) / 7)
        assert_allclose(gaps[k], mean - np.log(INERTIAS[k]), rtol=1e-9)
        assert_allclose(errors[k], deviation * np.sqrt(1 + 1 / 7), rtol=1e-9)


labellings = st.integers(2, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


@given(labellings)
@settings(max_examples=60, deadline=None)
def test_prediction_strength_pair_by_pair(both):
    own, predicted = both
    shares = []
    for cluster in set(own):
        members = [i for i, label in enumerate(own) if label == cluster]
        pairs = list(combinations(members, 2))
        if pairs:
            shares.append(np.mean([predicted[i] == predicted[j] for i, j in pairs]))
    expected = min(shares) if shares else 0.0
    assert_allclose(metrics.prediction_strength(own, predicted), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.silhouette_score([[0.0], [1.0]], [0, 0]), "at least 2"),
        (lambda: metrics.simplified_silhouette_score([[0.0]], [[1.0]]), "at least 2 clusters"),
        (lambda: metrics.simplified_silhouette_score([[0.0]], [[1, 2], [3, 4]]), "2 features"),
        (lambda: metrics.bic_score([[0.0], [1.0]], [0]), "1 labels for 2 samples"),
        (lambda: metrics.bic_score([0.0, 1.0], [0, 1]), r"X has shape \(2,\)"),
        (lambda: metrics.bic_score([["a"]], [0]), "expected real numbers"),
        (lambda: metrics.bic_score([[0.0]], [0], [-1.0]), "not negative"),
        (lambda: metrics.bic_score([[0.0]], [0], [1.0, 2.0]), "one per sample"),
        (lambda: metrics.jump_statistic([1.0], [1], 5, 2, power=0), "power=0 must be positive"),
        (lambda: metrics.jump_statistic([1.0, 2.0], [1], 5, 2), "one inertia for each"),
        (lambda: metrics.krzanowski_lai_index([1.0, 2.0], [2, 1], 5), "must ascend"),
        (lambda: metrics.gap_statistic([1.0], [1.0]), "n_references, n_values"),
        (lambda: metrics.prediction_strength([0, 1], [0]), "1 labels for 2 samples"),
        (lambda: centroid_index([1.0, 2.0], [[1.0]]), r"centers_a has shape \(2,\); expected"),
        (lambda: centroid_index([[1.0]], np.zeros((3, 0))), r"centers_b has shape \(3, 0\)"),
        (lambda: centroid_index([[1.0, 2.0]], [[1.0]]), "centers_a has 2 features and centers_b"),
        (lambda: centroid_index([[np.nan]], [[1.0]]), "centers_a has NaN or infinite"),
        (lambda: centroid_index([[1.0]], [[1j]]), "centers_b has dtype complex128"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_degenerate_samples():
    """All on their means: no scatter, and an infinite ratio. What weighs nothing is not there."""
    X, labels = [[0.0], [0.0], [3.0]], [0, 0, 1]
    assert metrics.calinski_harabasz_score(X, labels) == np.inf
    assert metrics.davies_bouldin_score(X, labels) == 0.0
    assert metrics.bic_score(X, labels) == -np.inf
    assert np.isnan(metrics.calinski_harabasz_score(X, [0, 0, 0]))
    assert metrics.simplified_silhouette_samples([[1.0]], [[1.0], [1.0]]).tolist() == [0.0]
    assert metrics.silhouette_samples([[0.0], [1.0], [5.0]], labels, [1, 1, 0])[:2].tolist() == [
        0,
        0,
    ]
    # Found by ``make fuzz``: a path over samples with weights near 1e-323 ended in an error.
    assert np.isnan(bic(1.66e-321, np.zeros(1), 3))


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("is_labelled", [False, True])
@pytest.mark.parametrize("k", [MANY_CENTERS, 20])
def test_many_features_have_the_distances_of_few(offset, is_labelled, k) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, MANY_FEATURES)) + offset
    centers = rows[:k] + 0.1
    labels = rng.integers(k, size=len(rows)) if is_labelled else None
    own, near, far, other = two_distances(rows, centers, labels)
    distances = cdist(rows, centers)
    places = np.arange(len(rows))
    expected = distances.argmin(axis=1) if labels is None else labels
    assert_array_equal(own, expected)
    assert_allclose(near, distances[places, expected], rtol=1e-12)
    distances[places, expected] = np.inf
    assert_array_equal(other, distances.argmin(axis=1))
    assert_allclose(far, distances.min(axis=1), rtol=1e-12)


def test_twins_among_the_centres_are_as_near_as_each_other() -> None:
    rows = np.random.default_rng(0).normal(size=(50, MANY_FEATURES))
    own, near, far, other = two_distances(rows, np.repeat(rows[:3], 2, axis=0))
    assert (near[:3] == 0.0).all()
    assert_array_equal(near, far)
    assert (own != other).all()
    assert_array_equal(own // 2, other // 2)


def orphans_by_counting(source, target):
    """Eqs. 3 and 4 of Fränti, Rezaei and Zhao (2014), one centre after the other."""
    chosen = set()
    for center in source:
        distances = [sum((a - b) ** 2 for a, b in zip(center, t, strict=True)) for t in target]
        chosen.add(distances.index(min(distances)))
    return len(target) - len(chosen)


# Whole numbers: sums of squares are exact, so ties are the same ones in every formula.
@st.composite
def pairs_of_centers(draw):
    d = draw(st.integers(1, 3))
    shape = st.tuples(st.integers(1, 7), st.just(d))
    centers = arrays(np.int64, shape, elements=st.integers(-9, 9))
    return draw(centers), draw(centers)


@given(pairs_of_centers())
def test_it_is_what_counting_gives(pair):
    """Against the definition, in both orders; bounded by the numbers of clusters."""
    a, b = pair
    index = centroid_index(a, b)
    assert isinstance(index, int)
    assert index == max(orphans_by_counting(*both) for both in ((a, b), (b, a)))
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
