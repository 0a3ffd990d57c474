"""Breathing K-means: centres come where the error is, and go where they are not missed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Order
from lab.baselines import BreathingKMeans
from lab.baselines.breathing import GAIN, OFFSET, breathe_in, breathe_out, dispensable
from lab.baselines.engines import create_engine

X = np.random.default_rng(0).normal(size=(600, 2)) * np.linspace(1.0, 5.0, 600)[:, None]
LINE = np.array([[0.0], [1.0], [2.5], [10.0], [11.2], [30.0]])


# ---- which centres go ------------------------------------------------------------------------


def test_the_least_useful_go_first() -> None:
    """Where no two centres are close neighbours, utility alone decides."""
    utilities = np.array([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    assert dispensable(LINE, utilities, 3, theta=1e-3) == [1, 3, 5]


def test_close_neighbours_of_those_that_go_stay() -> None:
    """Nearest distances are 1, 1, 1.5, 1.2, 1.2, 18.8, on average 4.1; θ times that is close."""
    utilities = np.array([2.0, 1.0, 3.0, 4.0, 5.0, 6.0])
    # 1 goes; 0 and 2 are within 4.1 of it and stay, 3 goes, and 4 stays because of that.
    assert dispensable(LINE, utilities, 3, theta=1.0) == [1, 3, 5]
    # Within 0.3 · 4.1 = 1.2 there is only 0, so that 2 goes next.
    assert dispensable(LINE, utilities, 3, theta=0.3) == [1, 2, 3]


def test_without_theta_only_the_nearest_neighbour_stays() -> None:
    utilities = np.array([2.0, 1.0, 3.0, 4.0, 5.0, 6.0])
    assert dispensable(LINE, utilities, 3, theta=None) == [1, 2, 3]
    assert dispensable(LINE, utilities, 2, theta=None) == [1, 2]


@pytest.mark.parametrize("theta", [None, 0.5, 1.1, 100.0])
def test_enough_are_left_to_go(theta) -> None:
    """However close all are, as many go as have to, and none twice."""
    rng = np.random.default_rng(1)
    for count in range(1, 6):
        chosen = dispensable(rng.normal(size=(10, 2)), rng.random(10), count, theta)
        assert len(set(chosen)) == count


def test_twins_do_not_go_together() -> None:
    """Two equal centres have no utility, but the samples need one of them."""
    centers = np.array([[0.0], [0.0], [5.0], [7.0]])
    utilities = np.array([0.0, 0.0, 3.0, 2.0])
    for theta in (None, 1.1):
        assert dispensable(centers, utilities, 2, theta) == [0, 3]


# ---- in and out ------------------------------------------------------------------------------


def test_a_breath_in_adds_centres_next_to_the_largest_errors(engine_name) -> None:
    """A little off, by one in two hundred of the root mean squared distance at most."""
    engine = create_engine(engine_name, X, None)
    (solution,) = engine.refine([Order(engine.samples_at((np.arange(8) + 0.5) / 8))])
    more = breathe_in(engine, solution, 3, np.random.default_rng(0))
    assert_array_equal(more[:8], solution.centers)
    errors, _ = engine.errors_and_utilities(solution.centers)
    off = engine.frame.decode(more[8:]) - engine.frame.decode(
        solution.centers[np.argsort(-errors)[:3]]
    )
    limit = OFFSET * np.sqrt(solution.inertia / 600)
    assert (np.abs(off) <= limit).all()
    assert np.abs(off).max() > 0.3 * limit
    assert len(np.unique(off)) == 6


@pytest.mark.parametrize(("theta", "counts"), [(None, [1, 2]), (1.1, [2, 1])])
def test_a_breath_out_takes_away_what_is_missed_least(engine_name, theta, counts) -> None:
    """The middle one of three, and then one that is not protected by the loss of that."""
    samples = np.concatenate([np.linspace(0.0, 1.0, 40), np.linspace(100.0, 101.0, 40)])[:, None]
    engine = create_engine(engine_name, samples, None)
    centers = engine.frame.encode(np.array([[0.2], [0.5], [0.8], [100.3], [100.7]]))
    (solution,) = engine.refine([Order(centers)])
    left = engine.frame.decode(breathe_out(engine, solution, 2, theta))[:, 0]
    assert [np.count_nonzero(left < 50.0), np.count_nonzero(left > 50.0)] == counts


# ---- the whole -------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [1.1, None])
@pytest.mark.parametrize("m", [1, 3, 5])
def test_it_breathes_until_m_cycles_have_brought_nothing(m, theta) -> None:
    """Each of them makes the breath shallower by one, and the start is never lost."""
    model = BreathingKMeans(10, m=m, theta=theta, random_state=0).fit(X)
    start, *cycles = [record.inertia for record in model.history_]
    lowest, without_gain = start, 0
    for inertia in cycles:
        assert without_gain < m
        if inertia < lowest * (1.0 - GAIN):
            lowest = inertia
        else:
            without_gain += 1
    assert without_gain == m
    assert model.inertia_ <= start


def test_it_improves_upon_its_start() -> None:
    """On data of uneven spread nearly always, and never the other way round."""
    gains = []
    for seed in range(10):
        model = BreathingKMeans(15, random_state=seed).fit(X)
        gains.append(1.0 - model.inertia_ / model.history_[0].inertia)
    assert min(gains) >= 0.0
    assert np.median(gains) > 0.01


def test_it_moves_a_centre_across_a_gap_that_kmeans_cannot_cross() -> None:
    """Three centres begin in a group of one, one in a group of three."""
    rng = np.random.default_rng(2)
    groups = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 5.0], [105.0, 0.0]])
    samples = np.repeat(groups, 50, axis=0) + rng.normal(scale=0.3, size=(200, 2))
    engine = create_engine("cpu", samples, None)
    poor = engine.frame.encode(np.array([[0.0, 0.1], [0.2, 0.0], [-0.2, 0.0], [102.0, 2.0]]))
    (stuck,) = engine.refine([Order(poor)])

    class Seeded:
        """Starts at given centres."""

        def __getattr__(self, name: str) -> object:
            return getattr(engine, name)

        def seed(self, quantiles: object) -> np.ndarray:
            return poor

    first, *_, last = BreathingKMeans(4).solutions(Seeded(), np.random.default_rng(0))
    assert first.inertia == stuck.inertia
    best = engine.refine([Order(engine.frame.encode(groups))])[0]
    assert last.inertia == pytest.approx(best.inertia, rel=1e-9)
    assert best.inertia < 0.1 * stuck.inertia


def test_without_breath_only_the_start_is_left() -> None:
    model = BreathingKMeans(5, m=0, random_state=0).fit(X)
    assert model.n_iter_ == 1


def test_a_weight_is_as_good_as_copies() -> None:
    """Errors, utilities and the size of the offsets all follow the weights."""
    copies = np.random.default_rng(6).integers(1, 4, 600)
    one = BreathingKMeans(9, random_state=0).fit(X, sample_weight=copies)
    two = BreathingKMeans(9, random_state=0).fit(np.repeat(X, copies, axis=0))
    assert_allclose(one.cluster_centers_, two.cluster_centers_, rtol=1e-6)
    assert one.n_iter_ == two.n_iter_
