"""Single centres that NumPy engines draw among their samples, against slow copies of the rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from evomeans.engines.base import DrawnCenters
from evomeans.engines.reference import ReferenceEngine
from evomeans.engines.sampling import WeightedDraw, roulette
from evomeans.engines.spherical import SphericalEngine
from evomeans.engines.trimmed import TrimmedEngine
from oracles import least_useful, relocated_to, spun_wheel, squared_distances

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3))
WEIGHTS = np.where(np.arange(60) % 7 == 0, 0.0, RNG.gamma(2.0, size=60))
BELOW_ONE = float(np.nextafter(1.0, 0.0))


@given(
    st.lists(st.sampled_from([0.0, 1e-300, 0.1, 1.0, 3.0, 1e17]), min_size=1, max_size=12),
    st.lists(st.floats(0.0, BELOW_ONE), min_size=1, max_size=4),
)
def test_the_wheel_stops_where_a_walk_over_all_chances_ends(chances, quantiles) -> None:
    wheel, wanted = np.array(chances), np.array([*quantiles, 0.0, BELOW_ONE])
    if not wheel.any():
        return
    expected = [spun_wheel(wheel, quantile) for quantile in wanted.tolist()]
    assert_array_equal(roulette(wheel, wanted), expected)
    drawing = WeightedDraw(len(wheel), wheel)
    assert_array_equal(drawing.rows(wanted), expected)
    assert [drawing.row(quantile) for quantile in wanted.tolist()] == expected
    assert (wheel[expected] > 0.0).all()


def test_all_numpy_engines_draw_by_the_same_rules() -> None:
    for kind in (ReferenceEngine, SphericalEngine, TrimmedEngine):
        assert issubclass(kind, DrawnCenters)
        assert kind.relocate is DrawnCenters.relocate
        assert kind.swapped is DrawnCenters.swapped


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_a_relocated_centre_lands_where_the_mixture_says(alpha, power) -> None:
    engine = ReferenceEngine(X, WEIGHTS)
    start = engine.samples[:5]
    for quantile in RNG.random(40):
        centers = start.copy()
        engine.relocate(centers, 2, alpha, float(quantile), power)
        others = np.delete(start, 2, axis=0)
        row = relocated_to(engine.samples, WEIGHTS, others, alpha, float(quantile), power)
        assert_array_equal(centers[2], engine.samples[row])
        assert_array_equal(np.delete(centers, 2, axis=0), others)


def test_a_swap_takes_the_least_useful_centre_to_a_costly_sample() -> None:
    engine = ReferenceEngine(X, WEIGHTS)
    centers, weights = engine.samples[:30], RNG.gamma(2.0, size=30)
    for seed in range(30):
        rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
        swapped = engine.swapped(centers, weights, rng)
        removed = least_useful(centers, weights, same.integers(30, size=3).tolist())
        costs = WEIGHTS * squared_distances(engine.samples, centers).min(axis=1)
        expected = centers.copy()
        expected[removed] = engine.samples[spun_wheel(costs, float(same.random(1)[0]))]
        assert_array_equal(swapped, expected)
