"""k-means++: each centre is drawn by its squared distance to those before, times its weight."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from evomeans.engines import Order, create_engine
from evomeans.engines.cpu.rounds import Seeds, draw, most_missed, sum_up
from evomeans.engines.cpu.steps import (
    GivenRows,
    near_centers,
    near_labels,
    quick_steps,
    sort_by_label,
)
from oracles import in_frame, squared_distances
from problems import KINDS, made, make_samples, make_weights, paired


def seeded(samples, weights, quantiles):
    """Draw every centre from a wheel written down in full; return the indices of the samples."""
    (first, *_), *later = quantiles
    chosen = [spun(weights, first)]
    for trials in later:
        nearest = squared_distances(samples, samples[chosen]).min(axis=1)
        drawn = [spun(weights * nearest, quantile) for quantile in trials]
        saved = np.maximum(nearest[:, None] - squared_distances(samples, samples[drawn]), 0.0)
        chosen.append(drawn[int(np.argmax(weights @ saved))])
    return chosen


def spun(chances, quantile: float) -> int:
    shares = np.cumsum(chances / chances.sum())
    return int(np.flatnonzero(shares > quantile)[0])


@paired
@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("constant", "few distinct")])
def test_centres_are_drawn_from_the_wheel(rival_engine_name, dtype, weighted, kind, trials) -> None:
    """On every kind of samples, in tiles that can be skipped and tiles that cannot."""
    problem = made(400, 3, 12, kind=kind, dtype=dtype, weighted=weighted, seed=7)
    engine, rng = problem.engine(rival_engine_name), np.random.default_rng(7)
    samples = in_frame(engine.frame, problem.X)
    for _ in range(4):
        quantiles = rng.random((12, trials))
        chosen = seeded(samples, problem.w, quantiles)
        assert_array_equal(engine.seed(quantiles), samples[chosen])
        if trials == 1:
            assert_array_equal(engine.seed(quantiles[:, 0]), samples[chosen])


@paired
@pytest.mark.usefixtures("_compiled_kernels")
@pytest.mark.parametrize(("n", "d", "k"), [(5000, 2, 60), (3000, 16, 40), (1000, 70, 9)])
def test_larger_samples_are_seeded_as_by_the_reference(dtype, weighted, n, d, k) -> None:
    problem, rng = (
        made(n, d, k, kind="blobs", dtype=dtype, weighted=weighted),
        np.random.default_rng(n),
    )
    engine, reference = problem.engine("cpu"), problem.engine("reference")
    for trials in (1, 1, 4):
        quantiles = rng.random((k, trials))
        assert_array_equal(engine.seed(quantiles), reference.seed(quantiles))


def test_no_sample_is_drawn_twice_and_none_without_weight(rival_engine_name, dtype) -> None:
    """At the ends of the unit interval, too."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = make_samples("normal", 70, 2, dtype, rng)
        weights = make_weights(70, rng)
        weights[[0, -1]] = 0.0
        k = np.count_nonzero(weights)
        engine = create_engine(rival_engine_name, X, weights)
        quantiles = rng.choice([0.0, 5e-324, 0.3, 0.8, 1.0 - 2.0**-53], size=k)
        expected = in_frame(engine.frame, X)[weights > 0]
        assert_array_equal(np.unique(engine.seed(quantiles), axis=0), np.unique(expected, axis=0))


@pytest.mark.parametrize("trials", [1, 2])
def test_fewer_distinct_samples_than_centres(rival_engine_name, dtype, trials) -> None:
    """Every sample has its centre then, and the rest are samples as well."""
    X = np.array([[0.0, 1.0], [2.0, 0.0]] * 40, dtype)
    engine = create_engine(rival_engine_name, X, None)
    centers = engine.seed(np.random.default_rng(0).random((5, trials)))
    samples = in_frame(engine.frame, X)
    assert_array_equal(np.unique(centers, axis=0), np.unique(samples, axis=0))


@paired
def test_sparse_samples_are_seeded_like_dense_ones(dtype, weighted) -> None:
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(700, 20)) * (rng.random((700, 20)) < 0.3)).astype(dtype)
    weights = make_weights(700, rng) if weighted else None
    sparse = create_engine("cpu", sp.csr_matrix(X), weights)
    dense = create_engine("cpu", X, weights, frame=sparse.frame)
    for trials in (1, 3):
        quantiles = rng.random((15, trials))
        assert_array_equal(sparse.seed(quantiles), dense.seed(quantiles))


@paired
@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("sparse", [False, True])
def test_neither_threads_nor_the_order_of_tiles_matter(dtype, weighted, sparse) -> None:
    problem = made(4000, 5, 20, kind="blobs", dtype=dtype, weighted=weighted, seed=6)
    X = sp.csr_matrix(problem.X) if sparse else problem.X
    quantiles = np.random.default_rng(6).random((20, 3))
    centers = [
        create_engine("cpu", X, problem.weights, n_jobs=n_jobs, searching=searching).seed(q)
        for q in (quantiles, quantiles[:, 0])
        for n_jobs, searching in [(1, True), (2, True), (3, True), (1, False)]
    ]
    for same in (centers[:4], centers[4:]):
        assert len({array.tobytes() for array in same}) == 1


def test_seeding_leaves_refinements_as_they_are(rival_engine_name) -> None:
    """A solution refined before can still be gone on from."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(500, 3))
    engine = create_engine(rival_engine_name, X, None)
    (mother,) = engine.refine([Order(engine.seed(rng.random(6)))])
    start = Order(mother.centers, 1.0, 0.4, removed=2, parent=mother.handle)
    (expected,) = engine.refine([start])
    engine.seed(rng.random((6, 2)))
    (result,) = engine.refine([start])
    assert result.centers.tobytes() == expected.centers.tobytes()


# ---- in rounds, where samples are many -----------------------------------------------------------


def rounds_of(problem, n_jobs=1):
    """Return an engine, and the points that stand for its samples."""
    engine, rng = problem.engine("cpu", n_jobs=n_jobs), np.random.default_rng(3)
    source = GivenRows(problem.X, problem.weights, engine.frame, n_jobs)
    return engine, sum_up(source, problem.k, rng, engine.check_abandoned)


@paired
def test_points_of_rounds_weigh_as_much_as_the_samples_and_have_their_mean(dtype, weighted) -> None:
    problem = made(3000, 20, 40, kind="blobs", dtype=dtype, weighted=weighted, seed=4)
    engine, (points, totals, _) = rounds_of(problem)
    assert 40 < len(points) < 160
    assert (totals > 0.0).all()
    assert totals.sum() == pytest.approx(problem.w.sum())
    expected = problem.w @ in_frame(engine.frame, problem.X)
    np.testing.assert_allclose(totals @ points, expected, atol=1e-4 * problem.w.sum())


@paired
def test_rounds_do_not_depend_on_threads(dtype, weighted, monkeypatch) -> None:
    monkeypatch.setattr("evomeans.engines.cpu.rounds.AT_ONCE", 20_000)
    problem = made(3000, 20, 40, kind="blobs", dtype=dtype, weighted=weighted, seed=4)
    (_, one), (_, two) = (rounds_of(problem, n_jobs) for n_jobs in (1, 3))
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])


def test_seeds_in_rounds_are_as_good_as_greedy_ones(monkeypatch) -> None:
    """They have seen every sample, so K-means begins at most 5 % above; random rows are 30 %."""
    rng = np.random.default_rng(9)
    X = (3.0 * rng.normal(size=(60, 16)))[rng.integers(60, size=6000)] + rng.normal(size=(6000, 16))
    engine, quantiles = create_engine("cpu", X, None), rng.random((60, 6))
    greedy = engine.assign(engine.seed(quantiles))[1]
    random = engine.assign(engine.samples_at(rng.random(60)))[1]
    monkeypatch.setattr("evomeans.engines.cpu.engine.MANY_PRODUCTS", 1)
    assert engine.assign(engine.seed(quantiles))[1] < 1.05 * greedy < 0.8 * random


@pytest.mark.parametrize("sizes", [[10, 10, 10], [400, 400, 400]])
def test_rounds_among_outliers_far_beyond_each_other_see_all_samples(sizes, monkeypatch) -> None:
    """Those farthest out take a whole round, whether they are fewer than it draws or more."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4000, 4))
    X += np.repeat([0.0, 1e3, 1e6, 1e9], [4000 - sum(sizes), *sizes])[:, None]
    engine, quantiles = create_engine("cpu", X, None), rng.random((100, 6))
    greedy = engine.assign(engine.seed(quantiles))[1]
    monkeypatch.setattr("evomeans.engines.cpu.engine.MANY_PRODUCTS", 1)
    assert engine.assign(engine.seed(quantiles))[1] < 1.1 * greedy


@pytest.mark.parametrize("unit", [1e-320, 1.0, 1e300])
def test_draws_of_a_round_follow_chances_of_any_size(unit) -> None:
    rng = np.random.default_rng(0)
    chances = np.array([0.0, 3.0, 0.0, 1.0]) * unit
    assert draw(chances, 3, rng).tolist() == [1, 3]
    first = [draw(chances, 1, rng).tolist() for _ in range(1000)]
    assert 700 < first.count([1]) < 800
    assert first.count([1]) + first.count([3]) == 1000


def test_the_points_of_many_rounds_are_not_seeded_in_rounds(monkeypatch) -> None:
    """Weights of all sizes take as many rounds as there are."""
    monkeypatch.setattr("evomeans.engines.cpu.engine.MANY_PRODUCTS", 1)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(3000, 4)), 10.0 ** rng.uniform(-300.0, 0.0, 3000)
    centers = create_engine("cpu", X, weights).seed(rng.random((60, 6)))
    assert np.isfinite(centers).all()


def test_rounds_of_an_abandoned_engine_end_with_samples(monkeypatch) -> None:
    monkeypatch.setattr("evomeans.engines.cpu.engine.MANY_PRODUCTS", 1)
    X = np.random.default_rng(0).normal(size=(2000, 5))
    engine = create_engine("cpu", X, None)
    engine.abandon(True)
    centers = engine.seed(np.random.default_rng(1).random((30, 3)))
    assert {row.tobytes() for row in centers} <= {
        row.tobytes() for row in in_frame(engine.frame, X)
    }
    assert len(np.unique(centers, axis=0)) == 30


def test_rounds_among_few_different_samples_draw_these(monkeypatch) -> None:
    monkeypatch.setattr("evomeans.engines.cpu.engine.MANY_PRODUCTS", 1)
    X = np.repeat(np.eye(7), 100, axis=0)
    engine = create_engine("cpu", X, None)
    centers = engine.seed(np.random.default_rng(1).random((10, 3)))
    assert len(centers) == 10
    assert len(np.unique(centers, axis=0)) == 7


CLOUDS = np.random.default_rng(9).normal(size=(6000, 160))
CLOUDS += np.random.default_rng(8).normal(size=(60, 160))[np.arange(6000) % 60]


@paired
def test_quick_seeds_do_not_depend_on_threads(dtype, weighted, monkeypatch) -> None:
    monkeypatch.setattr("evomeans.engines.cpu.rounds.AT_ONCE", 200_000)
    weights = make_weights(6000, np.random.default_rng(1)) if weighted else None
    X, quantiles = CLOUDS.astype(dtype), np.random.default_rng(2).random((70, 5))
    one, two = (
        create_engine("cpu", X, weights, n_jobs=n_jobs).quick_seed(quantiles) for n_jobs in (1, 3)
    )
    assert_array_equal(one, two)


def test_quick_seeds_are_means_of_clusters() -> None:
    """They cost little more than a fixed point of K-means; random rows cost far more."""
    engine = create_engine("cpu", CLOUDS, None)
    rng = np.random.default_rng(2)
    centers = engine.quick_seed(rng.random((60, 6)))
    cost = engine.assign(centers)[1]
    (fixed,) = engine.refine([Order(centers)])
    assert (1.0 - 1e-12) * fixed.inertia <= cost < 1.01 * fixed.inertia
    assert engine.assign(engine.samples_at(rng.random(60)))[1] > 1.3 * cost


def test_steps_improve_quick_seeds(monkeypatch) -> None:
    """Without them they still cost far less than random samples."""
    engine = create_engine("cpu", CLOUDS, None)
    rng = np.random.default_rng(2)
    quantiles = rng.random((90, 6))
    improved = engine.assign(engine.quick_seed(quantiles))[1]
    in_directions = engine.assign(engine.quick_seed(quantiles, 64))[1]
    random = engine.assign(engine.samples_at(rng.random(90)))[1]
    monkeypatch.setattr("evomeans.engines.cpu.steps.MOST_COMPARISONS", 0)
    plain = engine.assign(engine.quick_seed(quantiles))[1]
    assert improved < plain < 0.9 * random
    assert in_directions < 1.05 * plain


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_points_are_kept_by_what_their_samples_would_cost_without_them(n_jobs) -> None:
    """A far point of little weight, and a heavy one; of two that lie together, both can go."""
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(700, 40)), rng.uniform(0.5, 2.0, 700)
    points[5], weights[5] = 1000.0, 1e-3
    points[6] = points[7]
    weights[9] = 100.0
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    costs = weights * squares.min(axis=1)
    kept = most_missed(Seeds(points, weights, np.zeros(1, np.int32)), 300, n_jobs)
    assert_array_equal(kept, points[np.sort(np.argsort(-costs)[:300])])
    assert (kept == points[5]).all(axis=1).any()
    assert (kept == points[9]).all(axis=1).any()
    assert not (kept == points[6]).all(axis=1).any()


def test_samples_are_sorted_by_their_clusters() -> None:
    labels = np.random.default_rng(1).integers(0, 6, 100).astype(np.int32)
    labels[labels == 3] = 4
    order, ends = np.empty(100, np.intp), np.empty(8, np.intp)
    sort_by_label(labels, order, ends)
    assert_array_equal(order, np.argsort(labels, kind="stable"))
    assert_array_equal(ends, np.searchsorted(np.sort(labels), np.arange(8)))


def test_means_are_those_of_clusters(weighted) -> None:
    X = CLOUDS
    weights = make_weights(6000, np.random.default_rng(1)) if weighted else None
    engine = create_engine("cpu", X, weights)
    labels, others = (np.arange(6000) % 7).astype(np.int32), np.ones((8, 160))
    if weighted:
        labels[weights == 0.0] = 7
    means = engine.frame.decode(engine.means(labels, others))
    for j in range(7):
        own = None if weights is None else weights[labels == j]
        np.testing.assert_allclose(means[j], np.average(X[labels == j], axis=0, weights=own))
    assert_array_equal(means[7], engine.frame.decode(others)[7])


@pytest.mark.parametrize(
    ("dtype", "factor", "offset", "n_jobs", "wrong"),
    [(float, 1.0, 0.0, 2, 0.0), (np.float32, 1.0, 1e5, 1, 1e-3), (np.float32, 1e30, 0.0, 1, 1e-3)],
)
def test_near_labels_are_right_if_all_centres_are_near(
    dtype, factor, offset, n_jobs, wrong, monkeypatch
) -> None:
    """Also of samples far from zero, or huge."""
    monkeypatch.setattr("evomeans.engines.cpu.steps.FEWEST_NEAR", 40)
    X = (CLOUDS * factor + offset).astype(dtype)
    engine = create_engine("cpu", X, None)
    centers = engine.samples_at(np.random.default_rng(3).random(40))
    expected, _ = engine.assign(centers)
    labels = np.zeros(6000, np.int32)
    source = GivenRows(X, None, engine.frame, n_jobs)
    found = near_labels(source, centers, labels, near_centers(centers, source), lambda: False)
    assert np.mean(found != expected) <= wrong


def test_steps_that_are_over_leave_the_centres() -> None:
    engine = create_engine("cpu", CLOUDS, None)
    centers = engine.samples_at(np.random.default_rng(3).random(40))
    given = GivenRows(CLOUDS, None, engine.frame, 1), centers, np.zeros(6000, np.int32)
    assert_array_equal(quick_steps(*given, lambda: True), centers)
    assert not (quick_steps(*given, lambda: False) == centers).all()


def test_steps_that_end_during_a_comparison_keep_what_it_found(monkeypatch) -> None:
    """The first samples have the labels of the comparison, the others those they had."""
    monkeypatch.setattr("evomeans.engines.cpu.steps.LABELLED_AT_ONCE", 500 * 40 * 160)
    monkeypatch.setattr("evomeans.engines.cpu.steps.NEAR_STEPS", 0)
    engine = create_engine("cpu", CLOUDS, None)
    centers, answers = engine.samples_at(np.random.default_rng(3).random(40)), iter([False] * 3)
    before = (np.arange(6000) % 40).astype(np.int32)
    source = GivenRows(CLOUDS, None, engine.frame, 1)
    reached = quick_steps(source, centers, before, lambda: next(answers, True))
    expected = np.append(engine.assign(centers)[0][:1500], before[1500:])
    np.testing.assert_allclose(reached, engine.means(expected, centers))


def test_quick_seeding_of_an_abandoned_engine_has_samples() -> None:
    engine = create_engine("cpu", CLOUDS, None)
    engine.abandon(True)
    centers = engine.quick_seed(np.random.default_rng(1).random((30, 3)))
    assert len(np.unique(centers, axis=0)) == 30


def test_quick_seeding_is_expected_where_greedy_seeding_takes_long(monkeypatch) -> None:
    engine = create_engine("cpu", CLOUDS, None)
    assert engine.quick_looks(100, 6) == math.inf
    monkeypatch.setattr("evomeans.engines.cpu.engine.MANY_PRODUCTS", 1)
    assert 0.0 < engine.quick_looks(300, 7, 32) < engine.quick_looks(300, 7) < math.inf
    assert create_engine("cpu", CLOUDS[:100], None).quick_looks(100, 6) == math.inf


def test_quick_steps_of_an_abandoned_engine_have_begun(monkeypatch) -> None:
    """The first samples have been compared: those centres are their means."""
    monkeypatch.setattr("evomeans.engines.cpu.steps.LABELLED_AT_ONCE", 500 * 90 * 160)
    engine = create_engine("cpu", CLOUDS, None)
    centers = engine.samples_at(np.random.default_rng(3).random(90))
    labels = engine.assign(centers)[0][:500]
    engine.abandon(True)
    reached = engine.quick_steps(centers)
    engine.abandon(False)
    for j in range(90):
        own = in_frame(engine.frame, CLOUDS[:500])[labels == j]
        expected = own.mean(axis=0) if len(own) else centers[j]
        np.testing.assert_allclose(reached[j], expected, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_quick_steps_are_nearly_k_means(sparse, weighted) -> None:
    X = np.where(CLOUDS > 1.0, CLOUDS, 0.0) if sparse else CLOUDS
    weights = make_weights(6000, np.random.default_rng(1)) if weighted else None
    engine = create_engine("cpu", sp.csr_matrix(X) if sparse else X, weights)
    centers = engine.samples_at(np.random.default_rng(3).random(90))
    reached = engine.assign(engine.quick_steps(centers))[1]
    assert reached < 1.02 * engine.refine([Order(centers)])[0].inertia
    assert reached < 0.8 * engine.assign(centers)[1]
