"""Criteria keep to the time of a path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evomeans import HGMeansPath
from evomeans.criteria import Gap, Instability, PredictionStrength
from evomeans.criteria.base import FEWEST_SAMPLES, Budget, InMemory
from evomeans.estimators.path_solving import check_path_parameters
from evomeans.typing import FloatArray


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
    def never(_: int) -> None:
        pytest.fail("there is nothing to try")

    assert Budget().affords(never, 10**6) == 10**6
    assert Budget(0.0).affords(never, FEWEST_SAMPLES) == FEWEST_SAMPLES


def test_a_part_of_the_work_stands_for_all_of_it() -> None:
    clock = Clock()
    assert Budget(11.0, clock).affords(clock.work, 10**6, share=0.1) == FEWEST_SAMPLES


@pytest.fixture(name="samples")
def make_samples() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(20_000, 3)) + 6.0 * rng.integers(3, size=(20_000, 1)), rng.random(
        20_000
    )


def test_sums_of_some_samples_estimate_those_of_all(samples: tuple[FloatArray, FloatArray]) -> None:
    X, weights = samples
    weights[::3] = 0.0
    centers = {3: np.array([[0.0] * 3, [6.0] * 3, [12.0] * 3])}
    source, hurried = InMemory(X, weights), Budget(0.0)
    exact, estimate = (source.sums(centers, one)[3] for one in (Budget(), hurried))
    assert hurried.n_taken == FEWEST_SAMPLES
    assert np.count_nonzero(weights) > FEWEST_SAMPLES
    for name in ("squares", "distances", "silhouettes"):
        whole, part = (getattr(one, name) / one.weights for one in (exact, estimate))
        np.testing.assert_allclose(part, whole, rtol=0.15)
        assert not np.array_equal(part, whole)


def test_a_path_without_time_says_that_its_criteria_are_estimates(
    samples: tuple[FloatArray, FloatArray],
) -> None:
    X, _ = samples
    path = HGMeansPath((2, 6), max_time=1e-3, random_state=0)
    with pytest.warns(RuntimeWarning, match=r"criteria from [\d,]+ samples only"):
        path.fit(X)
    assert path.best_k_ == 3
    assert np.isfinite(path.results_["davies_bouldin"]).all()
    assert path.labels_.shape == (len(X), 5)


def test_a_silhouette_without_time_looks_at_fewer_samples(
    samples: tuple[FloatArray, FloatArray],
) -> None:
    X, _ = samples
    path = HGMeansPath((2, 4), criteria=["silhouette"], select="silhouette", max_time=1e-3)
    with pytest.warns(RuntimeWarning, match="criteria from 1,024 samples only"):
        path.fit(X)
    assert path.best_k_ == 3


@pytest.mark.parametrize(
    ("make", "n_searches"),
    [(Gap, 20), (lambda: Gap(4), 4), (PredictionStrength, 20), (lambda: Instability(3), 6)],
)
def test_searches_of_criteria_share_the_time(make: Callable[[], object], n_searches: int) -> None:
    path = HGMeansPath((2, 4), criteria=[make()], select=None, max_time=10.0)
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
