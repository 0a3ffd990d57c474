"""KernelHGMeans clusters in the space of a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg.lapack import dpstrf
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels

from evomeans import HGMeans, KernelHGMeans
from evomeans.estimators import kernel as kernel_module
from evomeans.estimators.kernel import (
    IndefiniteKernelError,
    apply_map,
    find_coordinates,
    landmarks_within,
    pivoted_cholesky,
)

QUICK = {"n_jobs": 1, "random_state": 0}
X = np.random.default_rng(0).normal(size=(60, 3))


def test_a_linear_kernel_is_hgmeans_to_the_last_bit():
    """Labels, centres, inertia and predictions."""
    ours, plain = KernelHGMeans.fast(4, kernel="linear", **QUICK), HGMeans.fast(4, **QUICK)
    ours.fit(X)
    plain.fit(X)
    assert ours.cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()
    assert ours.inertia_ == plain.inertia_
    assert_array_equal(ours.labels_, plain.labels_)
    assert_array_equal(ours.predict(X + 0.1), plain.predict(X + 0.1))


def test_a_precomputed_linear_kernel_has_the_same_clusters():
    """Coordinates that are found from the products alone, and a prediction from products."""
    ours = KernelHGMeans.fast(4, kernel="precomputed", **QUICK).fit(X @ X.T)
    plain = HGMeans.fast(4, **QUICK).fit(X)
    assert ours.inertia_ == pytest.approx(plain.inertia_)
    assert adjusted_rand_score(ours.labels_, plain.labels_) == 1.0
    new = X + 0.1
    assert adjusted_rand_score(ours.predict(new @ X.T), plain.predict(new)) == 1.0
    assert len(ours.factor_) == 3


def test_rings_are_separated():
    """No straight line does that."""
    points, classes = make_circles(200, noise=0.05, factor=0.3, random_state=0)
    model = KernelHGMeans.fast(2, gamma=5.0, **QUICK).fit(points)
    assert adjusted_rand_score(classes, model.labels_) == 1.0
    assert_array_equal(model.predict(points), model.labels_)
    assert model.is_exact_ == 1


def test_coordinates_have_the_kernel_as_products():
    """However few landmarks span the samples."""
    gram = pairwise_kernels(X, metric="poly", degree=2)
    found = find_coordinates(gram)
    coordinates = apply_map(gram[found.chosen], found.factor)
    assert_allclose(coordinates @ coordinates.T, gram, atol=1e-9 * gram.max())
    # Monomials of degree 2 and less in three features.
    assert len(found.chosen) == 10


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (63, 63), (64, 40), (65, 65), (200, 129)])
def test_panels_choose_the_pivots_of_lapack(n, rank):
    """Panels that are full, cut off by the last column, and by the rank."""
    points = np.random.default_rng(n).normal(size=(n, rank))
    gram = points @ points.T
    tolerance = n * np.finfo(np.float64).eps * gram.diagonal().max()
    factor, chosen = pivoted_cholesky(gram, tolerance)
    expected, pivots, r, _ = dpstrf(gram, tol=tolerance, lower=1)
    assert r == rank
    assert_array_equal(chosen, pivots[:r] - 1)
    assert_allclose(factor, np.tril(expected[:r, :r]), atol=1e-9 * np.abs(expected).max())


def test_a_callable_kernel_is_used_with_its_parameters(tmp_path):
    """And a model file says why it cannot hold it."""

    def dot(one, other, scale):
        return scale * (one @ other)

    model = KernelHGMeans.fast(3, kernel=dot, kernel_params={"scale": 4.0}, **QUICK).fit(X)
    assert model.inertia_ == pytest.approx(4.0 * HGMeans.fast(3, **QUICK).fit(X).inertia_)
    with pytest.raises(ValueError, match="is a function, which a model file cannot hold"):
        model.save(tmp_path / "model")


def test_landmarks_approximate_and_say_so(monkeypatch):
    """Asked for, or because there are too many samples, which a warning says."""
    exact = KernelHGMeans.fast(3, **QUICK).fit(X)
    rough = KernelHGMeans.fast(3, n_components=20, **QUICK).fit(X)
    assert (exact.is_exact_, rough.is_exact_) == (1, 0)
    assert len(rough.landmarks_) == 20
    assert rough.inertia_ <= exact.inertia_
    monkeypatch.setattr("evomeans.estimators.kernel.MOST_EXACT", 50)
    monkeypatch.setattr("evomeans.estimators.kernel.DEFAULT_LANDMARKS", 10)
    with pytest.warns(UserWarning, match=r"60 samples is approximated by 10 landmarks \(Nyström\)"):
        few = KernelHGMeans.fast(3, **QUICK).fit(X)
    assert len(few.landmarks_) == 10


@pytest.mark.parametrize(
    ("parameters", "samples", "error", "text"),
    [
        ({"kernel": "gauss"}, X, ValueError, "kernel='gauss' must be one of"),
        ({"kernel": 3}, X, TypeError, "kernel must be a name or a callable"),
        ({"gamma": "scale"}, X, TypeError, "gamma must be a number"),
        ({"gamma": np.inf}, X, ValueError, "gamma=inf must be finite"),
        ({"degree": np.nan}, X, ValueError, "degree=nan must be finite"),
        ({"coef0": np.nan}, X, ValueError, "coef0=nan must be finite"),
        ({"kernel_params": {"a": 1}}, X, ValueError, "kernel_params are for callable kernels"),
        ({"n_components": 0}, X, ValueError, "n_components=0 must be at least 1"),
        ({"warm_start": True}, X, ValueError, "warm_start=True cannot be used with KernelHGMeans"),
        ({"init": X[:3]}, X, ValueError, "init cannot be used with KernelHGMeans"),
        ({"kernel": "precomputed"}, X, ValueError, "a square matrix; X.shape"),
        ({"kernel": "precomputed"}, np.triu(np.ones((9, 9))), ValueError, "symmetric"),
        (
            {"kernel": "precomputed"},
            np.ones((9, 9)) - 2 * np.eye(9) + np.diag(np.full(9, 1.1)),
            IndefiniteKernelError,
            "not positive semi-definite",
        ),
    ],
)
def test_errors_name_what_came(parameters, samples, error, text):
    """One sentence for each mistake."""
    with pytest.raises(error, match=text):
        KernelHGMeans(3, **parameters).fit(samples)


def test_a_time_limit_leaves_as_many_landmarks_as_it_allows() -> None:
    """All of them if there is time, and a few hundred at least."""
    assert landmarks_within(1e9, 6000, 1e-10, 1e-8) == 6000
    assert landmarks_within(0.0, 6000, 1e-10, 1e-8) == 200
    assert landmarks_within(0.0, 50, 1e-10, 1e-8) == 50
    some, more = (landmarks_within(seconds, 6000, 1e-10, 1e-8) for seconds in (0.15, 1.5))
    assert 200 < some < more < 6000


def test_a_time_limit_that_is_too_short_for_all_coordinates_says_so(monkeypatch) -> None:
    X = np.random.default_rng(0).normal(size=(700, 3))
    monkeypatch.setattr(kernel_module, "COORDINATES_SHARE", 0.0)
    with pytest.warns(UserWarning, match=r"approximated by 200 landmarks .* max_time=1\.0"):
        model = KernelHGMeans(3, max_time=1.0, max_offspring=5, random_state=0).fit(X)
    assert model.is_exact_ == 0
    assert len(model.landmarks_) == 200
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_a_sample_between_two_clusters_is_predicted_as_it_was_fitted() -> None:
    """Clusters are numbered by the means of their samples after the search has numbered them."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    weights = [0.8, 0.4, 0.3, 0.7, 0.0]
    settings = {"max_population": 3, "min_population": 2, "max_offspring": 2}
    for seed in range(5):
        model = KernelHGMeans(4, random_state=seed, **settings).fit(X, sample_weight=weights)
        assert_array_equal(model.predict(X), model.labels_)


def test_the_gaussian_kernel_does_not_depend_on_where_zero_is():
    """Squares of large values would leave no digits of small differences."""
    X = np.random.default_rng(0).integers(0, 40, (120, 3)) / 16.0
    near, far = (
        KernelHGMeans(4, max_offspring=20, n_jobs=1, random_state=0).fit(X + offset)
        for offset in (0.0, 2.0**30)
    )
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)
    assert_array_equal(far.predict(X + 2.0**30), far.labels_)
