"""Draws of rows: roulette wheels, quantiles of the weight, and samples of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import Order, create_engine
from evomeans.engines.base import DrawnCenters
from evomeans.engines.frame import Frame
from evomeans.engines.reference import ReferenceEngine
from evomeans.engines.rules import GOLDEN_RATIO, repair_draw, split_mixture
from evomeans.engines.sampling import Drawing, WeightedDraw, roulette, uniforms
from evomeans.engines.spherical import SphericalEngine
from evomeans.engines.trimmed import TrimmedEngine
from oracles import least_useful, relocated_to, spun_wheel, squared_distances
from problems import paired


def test_uniform_numbers_belong_to_rows_and_not_to_blocks() -> None:
    whole = uniforms(7, 0, 1000)
    assert_array_equal(np.concatenate([uniforms(7, 0, 137), uniforms(7, 137, 863)]), whole)
    assert not np.array_equal(uniforms(8, 0, 1000), whole)


def test_uniform_numbers_are_uniform() -> None:
    values = uniforms(2**63 + 5, 10**12, 200_000)
    counts = np.histogram(values, bins=100, range=(0.0, 1.0))[0]
    # χ² with 99 degrees of freedom exceeds 160 once in 10,000 seeds.
    assert counts.sum() == 200_000
    assert np.square(counts - 2000).sum() / 2000 < 160
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_make_sums_over_samples_unbiased(weighted) -> None:
    rng = np.random.default_rng(0)
    values, costs = rng.normal(3.0, 1.0, 20_000), rng.gamma(0.3, size=20_000)
    weights = rng.gamma(2.0, size=20_000) if weighted else None
    w = np.ones(20_000) if weights is None else weights
    estimates = []
    for seed in range(200):
        drawing = Drawing(seed, 500, np.zeros((1, 1)), float((w * costs).sum()))
        rows, own = drawing.choose(w * costs, weights, float(w.sum()), 20_000)
        assert 350 < len(rows) < 650
        estimates.append([own.sum(), own @ values[rows], own @ costs[rows]])
    truth = np.array([w.sum(), w @ values, w @ costs])
    error = np.std(estimates, axis=0) / np.sqrt(200)
    assert_allclose(np.mean(estimates, axis=0), truth, atol=4.0 * error.max())
    assert np.all(np.abs(np.mean(estimates, axis=0) - truth) < 4.5 * error)


def test_rows_without_weight_are_never_taken_and_heavy_ones_always() -> None:
    weights = np.zeros(10_000)
    weights[::100] = 1.0
    weights[42] = 1e6
    rows, own = Drawing(0, 50).choose(None, weights, float(weights.sum()), 10_000)
    assert np.all(weights[rows] > 0.0)
    assert own[rows.tolist().index(42)] == 1e6


def rows_of(engine) -> np.ndarray:
    """Return all rows of a sample in data units, ordered."""
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    return np.unique(engine.frame.decode(engine.samples_at(quantiles)), axis=0)


def test_all_engines_draw_the_same_rows_of_the_data(engine_name, dtype) -> None:
    """By weights alone and by distances; the rows stand for the weight of all."""
    X = np.random.default_rng(2).normal(100.0, 1.0, (3000, 4)).astype(dtype)
    weights = np.random.default_rng(3).integers(0, 4, 3000).astype(np.float64)
    oracle = create_engine("reference", X, weights)
    engine = create_engine(engine_name, X, weights, frame=oracle.frame)
    centers = oracle.samples_at(np.array([0.2, 0.6, 0.9]))
    cost = oracle.frame.inertia_in_frame(oracle.assign(centers)[1])
    known = {tuple(row) for row in X.astype(np.float64).tolist()}
    for drawing in (Drawing(11, 300), Drawing(11, 300, centers, cost)):
        ours, theirs = engine.subsample(drawing), oracle.subsample(drawing)
        rows = rows_of(ours)
        assert_array_equal(rows, rows_of(theirs))
        assert 200 < ours.n_samples < 400
        assert all(tuple(row) in known for row in rows.tolist())
        assert_allclose(ours.total_weight, theirs.total_weight, rtol=1e-6)
        assert ours.total_weight == pytest.approx(weights.sum(), rel=0.15)


def test_sparse_samples_stay_sparse() -> None:
    X = np.random.default_rng(4).poisson(0.05, (3000, 50)).astype(np.float64)
    dense, sparse = create_engine("cpu", X, None), create_engine("cpu", csr_array(X), None)
    centers = sparse.samples_at(np.array([0.2, 0.7]))
    drawing = Drawing(5, 400, centers, 1e3)
    ours = sparse.subsample(drawing)
    assert (
        ours.n_samples
        == create_engine("cpu", X, None, frame=sparse.frame).subsample(drawing).n_samples
    )
    assert type(ours.samples.rows) is type(sparse.samples.rows)
    assert type(ours.samples.rows) is not type(dense.samples.rows)


def test_fifty_rows_far_out_of_a_million_are_in_the_sample() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(0.0, 1.0, (1_000_000, 2)).astype(np.float32)
    X[123_456 : 123_456 + 50] += 400.0
    engine = create_engine("cpu", X, None)
    pilot = engine.subsample(Drawing(1, 2000))
    centers = pilot.samples_at(np.array([0.1, 0.4, 0.7]))
    cost = engine.frame.inertia_in_frame(pilot.assign(centers)[1])
    sample = engine.subsample(Drawing(2, 5000, centers, cost))
    far = sample.frame.decode(sample.samples_at((np.arange(100_000) + 0.5) / 100_000))
    # Each of them costs more than the average row of the sample, so all of them are taken.
    assert sample.n_samples < 15_000
    assert np.count_nonzero(sample._source[:, 0] > 200.0) == 50
    assert np.count_nonzero(far[:, 0] > 200.0) > 0


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


@paired
@pytest.mark.parametrize(("alpha", "power"), [(0.0, 1), (0.6, 1), (0.6, 2), (1.0, 1), (1.0, 2)])
def test_relocations_follow_the_mixture(engine_name, dtype, weighted, alpha, power) -> None:
    """On 300 even quantiles each sample is drawn as often as its probability says, ±2."""
    weights = WEIGHTS if weighted else np.ones(12)
    X = SAMPLES.astype(dtype)
    engine = create_engine(engine_name, X, weights if weighted else None, frame=FRAME)
    quantiles = (np.arange(300) + 0.5) / 300
    drawn = np.bincount(drawn_samples(engine, quantiles, alpha, power), minlength=12)
    assert np.abs(drawn - 300 * mixture(weights, alpha, power)).max() <= 2.0


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


# ---- rules ---------------------------------------------------------------------------------------


LARGEST = 1.0 - 2.0**-53
alphas = st.floats(0.0, 1.0)
quantiles = st.floats(0.0, LARGEST)


@given(alphas, quantiles)
@example(1.0, LARGEST)
@example(0.0, LARGEST)
@example(1.7e-16, LARGEST)
@example(0.1, LARGEST)
@example(2.0**-53, LARGEST)
def test_what_is_left_of_the_uniform_number_is_one_again(alpha, quantile) -> None:
    """Always in [0, 1), also where 1 − α rounds."""
    _, left = split_mixture(alpha, quantile)
    assert 0.0 <= left < 1.0


@given(quantiles)
def test_alpha_one_draws_only_by_distance_and_zero_never(quantile) -> None:
    assert split_mixture(1.0, quantile) == (True, quantile)
    assert split_mixture(0.0, quantile) == (False, quantile)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_the_parts_have_their_shares_and_stay_uniform(alpha) -> None:
    """On an even grid, α of it goes to the distances, and either part is an even grid again."""
    grid = (np.arange(1000) + 0.5) / 1000
    by_distance, left = map(np.array, zip(*[split_mixture(alpha, q) for q in grid], strict=True))
    assert by_distance.mean() == pytest.approx(alpha)
    for part in (left[by_distance], left[~by_distance]):
        even = (np.arange(len(part)) + 0.5) / len(part)
        np.testing.assert_allclose(np.sort(part), even, atol=1e-12)


@given(alphas, quantiles, st.integers(1, 10_000))
def test_repairs_draw_in_the_unit_interval(alpha, quantile, repair) -> None:
    """The first from the mixture, later ones by distance only, so that repairs come to an end."""
    used_alpha, used_quantile = repair_draw(alpha, quantile, repair)
    assert used_alpha == (alpha if repair == 1 else 1.0)
    assert 0.0 <= used_quantile < 1.0
    shift = (used_quantile - quantile - repair * GOLDEN_RATIO) % 1.0
    assert min(shift, 1.0 - shift) < 1e-9


def test_repairs_made_together_land_apart() -> None:
    """The first ten numbers of any start differ by more than 1/20."""
    numbers = np.sort([repair_draw(0.5, 0.37, repair)[1] for repair in range(1, 11)])
    gaps = np.diff(np.append(numbers, numbers[0] + 1.0))
    assert gaps.min() > 0.05


# ---- single centres, by slow copies of the rules -------------------------------------------------


RNG = np.random.default_rng(5)
POINTS = RNG.normal(size=(60, 3))
POINT_WEIGHTS = np.where(np.arange(60) % 7 == 0, 0.0, RNG.gamma(2.0, size=60))
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
    engine = ReferenceEngine(POINTS, POINT_WEIGHTS)
    start = engine.samples[:5]
    for quantile in RNG.random(40):
        centers = start.copy()
        engine.relocate(centers, 2, alpha, float(quantile), power)
        others = np.delete(start, 2, axis=0)
        row = relocated_to(engine.samples, POINT_WEIGHTS, others, alpha, float(quantile), power)
        assert_array_equal(centers[2], engine.samples[row])
        assert_array_equal(np.delete(centers, 2, axis=0), others)


def test_a_swap_takes_the_least_useful_centre_to_a_costly_sample() -> None:
    engine = ReferenceEngine(POINTS, POINT_WEIGHTS)
    centers, weights = engine.samples[:30], RNG.gamma(2.0, size=30)
    for seed in range(30):
        rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
        swapped = engine.swapped(centers, weights, rng)
        removed = least_useful(centers, weights, same.integers(30, size=3).tolist())
        costs = POINT_WEIGHTS * squared_distances(engine.samples, centers).min(axis=1)
        expected = centers.copy()
        expected[removed] = engine.samples[spun_wheel(costs, float(same.random(1)[0]))]
        assert_array_equal(swapped, expected)
