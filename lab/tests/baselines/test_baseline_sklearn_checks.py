"""All baselines pass the checks of scikit-learn, and the examples in their docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
from sklearn.base import is_clusterer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from lab import baselines

# Parameters with which each is quick, and still finds the same optimum of the 15 samples of the
# check that compares weights with repetitions in another order.
QUICK = {
    "BigMeans": {"n_clusters": 2, "n_chunks": 20},
    "BreathingKMeans": {"n_clusters": 8},
    "DCClust": {"n_clusters": 2},
    "DCDBundle": {"n_clusters": 2},
    "DRSMeans": {"n_clusters": 2, "n_swaps": 20},
    "FLSpp": {"n_clusters": 2, "n_swaps": 200},
    "GlobalKMeans": {"n_clusters": 2},
    "GlobalKMeansPP": {"n_clusters": 2},
    "LMBMClust": {"n_clusters": 2},
    "MDEClust": {"n_clusters": 2, "population_size": 8, "n_iter_no_change": 20},
    "MSDCA": {"n_clusters": 2},
    "ModifiedGlobalKMeans": {"n_clusters": 2},
    "MultiStartKMeans": {"n_clusters": 2, "n_runs": 20},
    "MultiStartModifiedGlobalKMeans": {"n_clusters": 2},
    "RandomSwap": {"n_clusters": 2, "n_swaps": 20},
    "RecombinatorKMeans": {"n_clusters": 2},
    "SAGA": {"n_clusters": 2, "population_size": 8, "n_generations": 6},
    "Smartigan": {"n_clusters": 2},
}
ESTIMATORS = [getattr(baselines, name)(**QUICK[name]) for name in baselines.__all__]


# One of each base class; `fit` and all that the checks look at is there.
TYPICAL = ("MultiStartKMeans", "GlobalKMeans", "DCClust")
OTHERS = [one for one in ESTIMATORS if type(one).__name__ not in TYPICAL]
# Some checks have fewer distinct samples than clusters.
few_samples = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@few_samples
@parametrize_with_checks([one for one in ESTIMATORS if one not in OTHERS])
def test_scikit_learns_own_checks(estimator, check) -> None:
    """None is expected to fail; equivalence of weights and repetitions is among them."""
    check(estimator)


@few_samples
@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_scikit_learns_own_checks_of_the_others(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_tags_and_names(estimator) -> None:
    """Clusterers that take sparse X, where the engine does, and keep float32."""
    assert is_clusterer(estimator)
    assert get_tags(estimator).input_tags.sparse
    assert not get_tags(type(estimator)(engine="reference")).input_tags.sparse
    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    distances = estimator.fit_transform(X)
    assert distances.shape == (30, estimator.n_clusters)
    assert distances.dtype == np.float32
    assert len(estimator.get_feature_names_out()) == estimator.n_clusters


@pytest.mark.parametrize("name", baselines.__all__)
def test_examples_in_docstrings(name) -> None:
    """They run, and print what they say."""
    module = importlib.import_module(getattr(baselines, name).__module__)
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
