"""Rules on curves whose answer is plain."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans import HGMeansPath
from evomeans.criteria import (
    BIC,
    CRITERIA,
    FEWEST_SAMPLES,
    Budget,
    Criterion,
    Gap,
    Jump,
    PredictionStrength,
    SampleSource,
    Silhouette,
    find_criterion,
    within_error_of_first_maximum,
    within_error_of_next,
)
from evomeans.estimators.path_solving import check_path_parameters
from evomeans.typing import FloatArray

KS = np.array([2, 3, 4, 5, 6])
NAN = np.nan


def values(*numbers):
    return np.array(numbers, dtype=float)


@pytest.mark.parametrize(
    ("criterion", "curve", "choice"),
    [
        (Jump(), (NAN, 1, 3, 3, 2), 4),
        (Jump(), (1, 2, np.inf, 3, 4), 4),
        (Jump(), [NAN] * 5, None),
        (BIC(), (NAN, 4, 1, 3, NAN), 4),
        (BIC(), (NAN, NAN, -np.inf, 1, 2), 4),
        (PredictionStrength(), (0.9, 0.2, 0.8, 0.1, NAN), 4),
        (PredictionStrength(), [0] * 5, None),
    ],
)
def test_rules_choose_what_they_say(criterion, curve, choice):
    """What is not defined is never chosen, and the smallest k is on ties."""
    assert criterion.choose(KS, values(*curve)) == choice


def test_both_rules_of_the_gap():
    """Tibshirani's looks one k ahead, the other one back from the first maximum."""
    gaps, errors = values(1.0, 2.0, 3.0, 2.9, 3.5), values(0.1, 0.1, 0.1, 0.1, 0.1)
    assert within_error_of_next(KS, gaps, errors) == 4
    assert within_error_of_first_maximum(KS, gaps, errors) == 4
    near = values(1.0, 2.95, 3.0, 2.0, 1.0)
    assert within_error_of_next(KS, near, errors) == 3
    assert within_error_of_first_maximum(KS, near, errors) == 3
    rising = values(1, 2, 3, 4, 5)
    assert within_error_of_next(KS, rising, errors) is None
    assert within_error_of_first_maximum(KS, rising, errors) == 6


def test_every_criterion_is_found_by_its_name():
    for name, kind in CRITERIA.items():
        assert find_criterion(name) == kind()
        assert isinstance(kind.rule, str)
        assert kind.title


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gap(n_references=0), "n_references=0"),
        (lambda: Gap(choose_by="best"), "choose_by='best' must be one of tibshirani"),
        (lambda: PredictionStrength(n_divisions=0), "n_divisions=0"),
        (lambda: Silhouette(sample_size=1), "sample_size=1"),
        (lambda: find_criterion("elbow"), "criterion 'elbow' is unknown; it must be one of cal"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(TypeError, match="a criterion must be one of"):
        find_criterion(3)


class Clock:
    """A clock that moves by a second for every so many samples, to some power."""

    def __init__(self, power: int = 1) -> None:
        self.seconds, self.power = 0.0, power

    def __call__(self) -> float:
        return self.seconds

    def work(self, n_samples: int) -> None:
        self.seconds += (n_samples / FEWEST_SAMPLES) ** self.power


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("deadline", [1.5, 3.0, 17.0, 300.0])
def test_what_is_affordable_ends_before_the_deadline(power: int, deadline: float) -> None:
    clock = Clock(power)
    budget = Budget(deadline, clock)
    n = budget.affords(clock.work, 50_000, power=power)
    assert FEWEST_SAMPLES <= n <= 50_000
    clock.work(n)
    # The trial and the fewest samples are taken in any case.
    assert clock() <= max(deadline, 2.0) + 1e-9
    assert budget.n_taken == (None if n == 50_000 else n)


def test_all_samples_are_taken_without_a_deadline_and_if_they_are_few() -> None:
    clock = Clock()
    assert Budget().affords(clock.work, 10**6) == 10**6
    assert Budget(0.0).affords(clock.work, FEWEST_SAMPLES) == FEWEST_SAMPLES
    # There was nothing to try.
    assert clock() == 0.0
    # A tenth of the work is tried, and stands for all of it.
    assert Budget(11.0, clock).affords(clock.work, 10**6, share=0.1) == FEWEST_SAMPLES


@pytest.fixture(name="samples")
def make_samples() -> tuple[FloatArray, FloatArray]:
    rng, n = np.random.default_rng(5), 20_000
    return rng.normal(size=(n, 3)) + 6.0 * rng.integers(3, size=(n, 1)), rng.random(n)


def test_sums_of_some_samples_estimate_those_of_all(samples: tuple[FloatArray, FloatArray]) -> None:
    X, weights = samples
    weights[::3] = 0.0
    centers = {3: np.array([[0.0] * 3, [6.0] * 3, [12.0] * 3])}
    source, hurried = SampleSource(X, weights), Budget(0.0)
    exact, estimate = (source.sums(centers, one)[3] for one in (Budget(), hurried))
    assert hurried.n_taken == FEWEST_SAMPLES
    assert np.count_nonzero(weights) > FEWEST_SAMPLES
    for name in ("squares", "distances", "silhouettes"):
        whole, part = (getattr(one, name) / one.weights for one in (exact, estimate))
        np.testing.assert_allclose(part, whole, rtol=0.15)
        assert not np.array_equal(part, whole)


@pytest.mark.parametrize("name", ["davies_bouldin", "silhouette"])
def test_a_path_without_time_says_that_its_criteria_are_estimates(
    samples: tuple[FloatArray, FloatArray], name: str
) -> None:
    X, _ = samples
    path = HGMeansPath((2, 6), criteria=[name], select=name, max_time=1e-3, random_state=0)
    with pytest.warns(RuntimeWarning, match="criteria from 1,024 samples only"):
        path.fit(X)
    assert path.best_k_ == 3
    assert np.isfinite(path.results_[name]).all()
    assert path.labels_path_.shape == (len(X), 5)


@pytest.mark.parametrize(
    ("criterion", "n_searches"),
    [(Gap(), 20), (Gap(4), 4), (PredictionStrength(), 20), (PredictionStrength(3), 6)],
)
def test_searches_of_criteria_share_the_time(criterion: Criterion, n_searches: int) -> None:
    path = HGMeansPath((2, 4), criteria=[criterion], select=None, max_time=10.0)
    limit = check_path_parameters(path).settings.max_time
    assert limit is not None
    assert limit * (1 + n_searches) == pytest.approx(10.0)


def test_criteria_of_a_path_that_continues_have_their_share() -> None:
    parameters = check_path_parameters(HGMeansPath((2, 4), max_time=10.0))
    share = 10.0 - (parameters.settings.max_time or 0.0)
    assert share > 0.0
    assert parameters.deadline(100.0, 0.0) == pytest.approx(110.0)
    assert parameters.deadline(100.0, 1e6) == pytest.approx(100.0 + share)
    assert check_path_parameters(HGMeansPath((2, 4))).deadline(100.0, 3.0) is None
