"""The sample on which a relocated centre lands follows the stated mixture (the paper's eq. 5)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from evomeans.engines import Order, create_engine
from evomeans.engines.frame import Frame
from problems import paired

# Six groups far from each other, of two samples each. Their centre lies between them, off the
# middle: twelve different distances. A centre that lands on a sample keeps it for itself, and the
# group's centre keeps the other: the refined solution tells which sample was drawn.
GROUPS = 1000.0 * np.arange(6.0)
RADII = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
OFFSETS = np.array([0.2, -0.5, 0.9, -1.2, 2.5, 0.0])
SAMPLES = np.stack([GROUPS - RADII, GROUPS + RADII], axis=1).reshape(-1, 1)
DISTANCES = np.stack([RADII + OFFSETS, RADII - OFFSETS], axis=1).ravel()
WEIGHTS = np.array([1.0, 2.0, 0.5, 0.0, 3.0, 1.0, 1.0, 4.0, 0.25, 1.0, 2.0, 0.1])
REMOVED = 2
FRAME = Frame(np.zeros(1), 0)


def drawn_samples(engine, quantiles, alpha: float, power: int) -> np.ndarray:
    """Refine with centre REMOVED relocated, once per quantile; return the samples it landed on."""
    # The centre to be removed lies exactly on a sample: it must not count as the closest one.
    centers = np.insert(GROUPS + OFFSETS, REMOVED, SAMPLES[9, 0])[:, None]
    starts = [Order(centers, alpha, q, removed=REMOVED, power=power) for q in quantiles]
    landed = np.array([result.centers[REMOVED, 0] for result in engine.refine(starts)])
    return np.argmin(np.abs(landed[:, None] - SAMPLES[:, 0]), axis=1)


def mixture(weights, alpha: float, power: int) -> np.ndarray:
    by_distance = weights * DISTANCES**power
    return (1 - alpha) * weights / weights.sum() + alpha * by_distance / by_distance.sum()


@pytest.mark.parametrize(("alpha", "power"), [(0.0, 1), (0.5, 1), (1.0, 1), (0.5, 2), (1.0, 2)])
def test_relocations_follow_the_mixture(engine_name, weighted, alpha, power) -> None:
    """(1−α)·wᵢ/Σw + α·wᵢδᵢ/Σwδ: chi-square over uniform quantiles, p > 0.001."""
    weights = WEIGHTS if weighted else np.ones(12)
    engine = create_engine(engine_name, SAMPLES, weights if weighted else None, frame=FRAME)
    count = 1000 if engine_name == "cpu" else 150
    quantiles = np.random.default_rng(20).random(count)
    drawn = np.bincount(drawn_samples(engine, quantiles, alpha, power), minlength=12)
    expected = count * mixture(weights, alpha, power)
    assert (drawn[expected == 0] == 0).all()
    possible = expected > 0
    statistic = np.sum((drawn[possible] - expected[possible]) ** 2 / expected[possible])
    assert chi2.sf(statistic, np.count_nonzero(possible) - 1) > 0.001


@paired
@pytest.mark.parametrize("power", [1, 2])
def test_shares_of_the_unit_interval_are_exact(engine_name, dtype, weighted, power) -> None:
    """On 300 even quantiles each sample is drawn as often as its probability says, ±2."""
    weights = WEIGHTS if weighted else np.ones(12)
    X = SAMPLES.astype(dtype)
    engine = create_engine(engine_name, X, weights if weighted else None, frame=FRAME)
    quantiles = (np.arange(300) + 0.5) / 300
    drawn = np.bincount(drawn_samples(engine, quantiles, 0.6, power), minlength=12)
    assert np.abs(drawn - 300 * mixture(weights, 0.6, power)).max() <= 2.0


def test_samples_on_a_centre_are_not_drawn_by_distance(engine_name, dtype) -> None:
    """α = 1: only the samples away from all remaining centres, here the two of the last group."""
    X = np.array([[0.0], [100.0], [199.0], [201.0]], dtype)
    engine = create_engine(engine_name, X, None, frame=FRAME)
    centers = np.array([[0.0], [100.0], [200.0], [50.0]])
    for quantile in [0.0, 0.2, 0.49, 0.51, 0.9, 1.0 - 2.0**-53]:
        (result,) = engine.refine([Order(centers, 1.0, quantile, removed=3, power=2)])
        assert result.centers[3, 0] == (199.0 if quantile < 0.5 else 201.0)


@pytest.mark.parametrize("quantile", [0.0, 0.4, 1.0 - 2.0**-53])
def test_a_draw_is_possible_when_all_distances_are_zero(engine_name, dtype, quantile) -> None:
    """Every sample on a remaining centre: any sample will do, and nothing divides by zero."""
    X = np.array([[0.0], [0.0], [5.0], [5.0]], dtype)
    engine = create_engine(engine_name, X, None, frame=FRAME)
    centers = np.array([[0.0], [5.0], [7.0]])
    (result,) = engine.refine([Order(centers, 1.0, quantile, removed=2)])
    assert result.inertia == 0.0
    assert sorted(result.cluster_weights) == [0.0, 2.0, 2.0]
