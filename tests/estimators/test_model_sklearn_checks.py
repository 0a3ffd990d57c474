"""The estimators of other models are citizens of scikit-learn too."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_clusterer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from evomeans import ConstrainedHGMeans, SphericalHGMeans, TrimmedHGMeans

QUICK = {"min_population": 2, "max_population": 3, "max_offspring": 3, "n_jobs": 1}
# Weights and repetitions are equivalent at the optimum, which a search has to find for that.
ENOUGH = {**QUICK, "max_population": 6, "max_offspring": 20}
MODELS = (ConstrainedHGMeans, SphericalHGMeans, TrimmedHGMeans)


@pytest.mark.slow
# Some checks have fewer distinct samples than clusters.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        ConstrainedHGMeans(3, **ENOUGH),
        # Not all checks have enough samples for more.
        ConstrainedHGMeans(1, size_max=1000, **ENOUGH),
        SphericalHGMeans(3, **ENOUGH),
        TrimmedHGMeans(3, n_outliers=0.1, **ENOUGH),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    """None is expected to fail; equivalence of weights and repetitions is among them."""
    check(estimator)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_a_clusterer_that_can_be_cloned(model):
    """Tags and parameters are those that scikit-learn expects."""
    estimator = model(4, random_state=3, max_time=1.0)
    assert is_clusterer(estimator)
    assert clone(estimator).get_params() == estimator.get_params()
    assert get_tags(estimator).input_tags.sparse == (model is SphericalHGMeans)


@pytest.mark.parametrize("model", MODELS)
def test_docstrings_are_complete(model):
    """Every parameter has its entry, also those that are documented in the base class."""
    text = model.__doc__.partition("Attributes")[0]
    missing = [name for name in model().get_params() if name not in text]
    assert missing == []
    assert "cluster_centers_" in model.__doc__
    assert "stop_reason_" in model.__doc__


@pytest.mark.parametrize("model", MODELS)
def test_the_same_bits_for_any_number_of_threads(model):
    """Refinements run side by side, and nothing of it is seen."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    quick = {**QUICK, "random_state": 0, "max_offspring": 30}
    fits = [model(4, **{**quick, "n_jobs": n}).fit(X) for n in (1, 3)]
    assert fits[0].inertia_ == fits[1].inertia_
    assert fits[0].cluster_centers_.tobytes() == fits[1].cluster_centers_.tobytes()
    assert_array_equal(fits[0].labels_, fits[1].labels_)
