"""Every engine has the same properties, and gives the answers of the reference engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import ENGINE_NAMES, Order, create_engine
from evomeans.engines.frame import Frame
from limits import time_limit
from oracles import (
    assert_fixed_point,
    assert_nearest,
    assert_same_bits,
    assert_same_solution,
    in_frame,
    squared_distances,
)
from problems import (
    Problem,
    arranged,
    made,
    offspring,
    paired,
    problems,
    without_shrinking,
)


def drawn_problems(data: st.DataObject, engine_name, dtype, weighted) -> Iterator[Problem]:
    """Draw four problems, but one with Dask, which takes ten times as long as the CPU engine."""
    for _ in range(1 if engine_name == "dask" else 4):
        yield data.draw(problems(dtype, weighted))


# ---- engines by name -------------------------------------------------------------------------


def test_every_name_makes_an_engine_over_the_samples(engine_name, dtype) -> None:
    engine = create_engine(engine_name, np.zeros((17, 2), dtype), None)
    assert engine.n_samples == 17
    assert engine.batch >= 1


def test_auto_is_the_cpu_engine_and_other_names_are_refused() -> None:
    assert set(ENGINE_NAMES) == {"auto", "cpu", "gpu", "dask", "reference"}
    engine = create_engine("auto", np.zeros((4, 2)), None)
    assert type(engine) is type(create_engine("cpu", np.zeros((4, 2)), None))
    with pytest.raises(ValueError, match=r"engine='gpux' must be one of auto, cpu, gpu, dask, ref"):
        create_engine("gpux", np.zeros((4, 2)), None)


# ---- fixed points ----------------------------------------------------------------------------


@settings(without_shrinking, max_examples=10)
@given(st.data())
def test_refinements_are_fixed_points(engine_name, dtype, weighted, data) -> None:
    """Nearest labels, means, weights, inertia and no empty cluster, on all kinds of samples.

    One more run from the result changes no bit of it.
    """
    for problem in drawn_problems(data, engine_name, dtype, weighted):
        before = problem.X.copy()
        with time_limit(5):
            engine = problem.engine(engine_name)
            for start in problem.starts(engine, 2):
                centers = start.centers.copy()
                (result,) = engine.refine([start])
                assert_fixed_point(engine, problem, result)
                assert_array_equal(start.centers, centers)
                (again,) = engine.refine([Order(result.centers)])
                if (result.cluster_weights > 0).all():
                    assert_same_bits(replace(again, n_iter=result.n_iter), result)
                    assert again.n_iter <= 2
        assert_array_equal(problem.X, before)


@paired
@settings(without_shrinking, max_examples=8)
@given(st.data())
def test_offspring_are_fixed_points(engine_name, dtype, weighted, data) -> None:
    """The same after a relocation that starts from a parent's handle."""
    for problem in drawn_problems(data, engine_name, dtype, weighted):
        rng = np.random.default_rng(problem.seed)
        with time_limit(5):
            engine = problem.engine(engine_name)
            mother, father = engine.refine(problem.starts(engine, 2))
            for _ in range(2):
                (child,) = engine.refine([offspring(mother, father, rng)])
                assert_fixed_point(engine, problem, child)
                father, mother = mother, child


# ---- fewer distinct points than centres ------------------------------------------------------


def copies_of(points, count: int, rng: np.random.Generator):
    """Return each of some points once, and others of them up to so many."""
    chosen = rng.integers(0, len(points), count - len(points))
    return points[np.append(np.arange(len(points)), chosen)]


@paired
@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_fewer_distinct_samples_than_centres_end_at_zero(
    engine_name, dtype, weighted, distinct
) -> None:
    """No hang and no rounding left over: 50 data sets whose means are not exact."""
    rng = np.random.default_rng(distinct)
    for _ in range(12 if engine_name == "dask" else 50):
        n = int(rng.integers(distinct + 1, 30))
        X = copies_of(rng.normal(size=(distinct, 2)).astype(dtype), n, rng)
        weights, k = (
            rng.random(n) + 0.1 if weighted else None,
            int(rng.integers(distinct + 1, n + 1)),
        )
        problem = Problem(X, weights, k, "samples", int(rng.integers(1000)))
        engine = problem.engine(engine_name)
        with time_limit(5):
            (result,) = engine.refine(problem.starts(engine))
        assert result.inertia == 0.0
        assert np.isfinite(result.centers).all()
        assert np.count_nonzero(result.cluster_weights) <= distinct
        assert result.n_iter < 100


def test_zero_weight_samples_are_no_distinct_points(engine_name, dtype) -> None:
    """Three places, but only two with weight: the third cluster stays without weight."""
    X = np.array([[0.0], [0.0], [5.0], [9.0]], dtype)
    engine = create_engine(engine_name, X, np.array([1.0, 2.0, 1.0, 0.0]))
    with time_limit(5):
        (result,) = engine.refine([Order(engine.samples_at(np.array([0.1, 0.2, 0.9])))])
    assert result.inertia == 0.0
    assert sorted(result.cluster_weights) == [0.0, 1.0, 3.0]


def test_a_centre_sits_on_the_samples_that_weigh(engine_name, dtype) -> None:
    """As many clusters as samples with weight: those without are no reason to move a centre."""
    X = np.array([[0.0], [1.0], [4.0], [5.0], [9.0], [9.4]], dtype)
    engine = create_engine(engine_name, X, np.array([0.0, 1.0, 0.0, 2.0, 3.0, 0.0]))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        start = Order(rng.normal(size=(3, 1)), rng.random(), rng.random())
        (result,) = engine.refine([start])
        landed = np.sort(engine.frame.decode(result.centers)[:, 0])
        assert_allclose(landed, [1.0, 5.0, 9.0], rtol=1e-6)
        assert sorted(result.cluster_weights) == [1.0, 2.0, 3.0]
        assert result.inertia < 1e-12


def test_an_inertia_tiny_beside_an_outlier_is_not_taken_for_rounding(engine_name) -> None:
    """Samples 0, 1, 2 next to one at 1e15: their centre is their mean, not one of them."""
    engine = create_engine(engine_name, np.array([[0.0], [1.0], [2.0], [1e15]]), None)
    (result,) = engine.refine([Order(engine.samples_at(np.array([0.1, 0.9])))])
    assert result.inertia == pytest.approx(2.0, rel=1e-3)


def test_as_many_distinct_samples_as_centres_get_one_each(engine_name, dtype) -> None:
    """Whatever the start, the empty clusters find the samples that have none."""
    rng = np.random.default_rng(0)
    X = copies_of(rng.normal(size=(6, 2)).astype(dtype), 36, rng)
    engine = create_engine(engine_name, X, None)
    sizes = sorted(np.unique(X, axis=0, return_counts=True)[1])
    for seed in range(30):
        rng = np.random.default_rng(seed)
        start = Order(np.tile(rng.normal(size=(1, 2)), (6, 1)), rng.random(), rng.random())
        (result,) = engine.refine([start])
        assert sorted(result.cluster_weights) == sizes
        assert result.inertia < 1e-28 if dtype is np.float64 else result.inertia < 1e-12


@pytest.mark.parametrize("removed", [-1, 0])
def test_one_cluster_and_one_sample(engine_name, dtype, removed) -> None:
    """One centre is the mean, one sample is its own centre, also after a relocation."""
    X = np.array([[1.0, 2.0], [3.0, 6.0]], dtype)
    for samples, mean, inertia in ((X, [[2.0, 4.0]], 10.0), (X[:1], X[:1], 0.0)):
        engine = create_engine(engine_name, samples, None)
        (result,) = engine.refine([Order(np.full((1, 2), 0.3), removed=removed)])
        assert_allclose(engine.frame.decode(result.centers), mean, rtol=1e-6 if inertia else 0.0)
        assert result.inertia == pytest.approx(inertia, rel=1e-6, abs=0.0)


# ---- ties ------------------------------------------------------------------------------------


@paired
def test_exact_ties_go_to_the_lowest_index(engine_name, dtype, weighted) -> None:
    """Integers in a frame without shift, centres on a half-integer grid: nothing is rounded."""
    rng = np.random.default_rng(2)
    frame, ties = Frame(np.zeros(2), 0), 0
    for _ in range(30):
        X = rng.integers(-3, 4, size=(150, 2)).astype(dtype)
        weights = rng.integers(0, 3, size=150) + 1.0 if weighted else None
        problem = Problem(X, weights, 7)
        centers = rng.integers(-6, 7, size=(7, 2)) / 2.0
        squares = squared_distances(X, centers)
        labels, inertia = problem.engine(engine_name, frame=frame).assign(centers)
        assert_array_equal(np.asarray(labels), squares.argmin(axis=1))
        assert inertia == problem.w @ squares.min(axis=1)
        ties += np.count_nonzero((squares == squares.min(axis=1)[:, None]).sum(axis=1) > 1)
    assert ties > 300


@pytest.mark.parametrize("order", [1, -1])
def test_a_tie_inside_kmeans_goes_to_the_lowest_index(engine_name, dtype, order) -> None:
    """0 lies between −1 and 1: it joins whichever centre comes first."""
    X = np.array([[-1.0], [0.0], [1.0]], dtype)
    engine = create_engine(engine_name, X, None, frame=Frame(np.zeros(1), 0))
    (result,) = engine.refine([Order(np.array([[-1.0], [1.0]])[::order].copy())])
    assert_array_equal(result.centers[:, 0], np.array([-0.5, 1.0]) * order)
    assert_array_equal(result.cluster_weights, [2.0, 1.0])


@paired
def test_bounds_survive_ties_in_every_iteration(engine_name, dtype, weighted) -> None:
    """On a lattice, where ties abound, refinements from handles are fixed points all the same."""
    side = np.arange(12.0)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(dtype)
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 3, len(X)).astype(float) if weighted else None
    problem = Problem(X, weights, 9, "samples", 3)
    engine = problem.engine(engine_name)
    mother, father = engine.refine(problem.starts(engine, 2))
    for _ in range(20):
        start = offspring(mother, father, rng)
        (child,) = engine.refine([start])
        assert_fixed_point(engine, problem, child)
        assert_same_bits(child, engine.refine([replace(start, parent=None)])[0])
        mother, father = child, mother


def test_ties_between_equal_centres_do_not_depend_on_the_handle(engine_name, dtype) -> None:
    """Centre j put exactly onto centre i, for all pairs: everything there belongs to the lower."""
    problem = made(700, 3, 6, dtype=dtype, seed=4)
    engine, rng = problem.engine(engine_name), np.random.default_rng(5)
    (mother,) = engine.refine(problem.starts(engine))
    starts = []
    for i, j in np.ndindex(6, 6):
        centers = mother.centers.copy()
        centers[j] = centers[i]
        starts.append(Order(centers, rng.random(), rng.random(), parent=mother.handle))
    alone = engine.refine([replace(start, parent=None) for start in starts])
    for result, expected in zip(engine.refine(starts), alone, strict=True):
        assert_fixed_point(engine, problem, result)
        assert_same_bits(result, expected)


# ---- the same as the reference ---------------------------------------------------------------


@paired
@pytest.mark.parametrize(("n", "d"), [(40, 2), (300, 5), (1200, 3), (200, 40)])
def test_founders_equal_the_references(fast_engine_name, dtype, weighted, n, d) -> None:
    problem = made(n, d, 7, dtype=dtype, weighted=weighted, seed=n)
    engine, reference = problem.engine(fast_engine_name), problem.engine("reference")
    starts = problem.starts(engine, 8)
    for result, expected in zip(engine.refine(starts), reference.refine(starts), strict=True):
        assert_same_solution(result, expected)


@paired
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_relocations_equal_the_references(fast_engine_name, dtype, weighted, alpha, power) -> None:
    """The same centre is removed, the same sample drawn, with and without a parent's handle."""
    problem, rng = made(400, 4, 7, dtype=dtype, weighted=weighted), np.random.default_rng(1)
    engine, reference = problem.engine(fast_engine_name), problem.engine("reference")
    mother, father = engine.refine(problem.starts(engine, 2))
    for _ in range(5):
        start = offspring(mother, father, rng, alpha=alpha, power=power)
        (expected,) = reference.refine([start])
        for result in engine.refine([start, replace(start, parent=None)]):
            assert_same_solution(result, expected)
        mother, father = result, mother


@paired
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("where", ["one point", "far away"])
def test_repairs_of_empty_clusters_equal_the_references(
    fast_engine_name, dtype, weighted, where, power
) -> None:
    """Nearly all centres begin empty: the same samples are drawn for them, one after another."""
    problem = made(200, 3, 7, dtype=dtype, weighted=weighted, seed=5)
    engine, reference = problem.engine(fast_engine_name), problem.engine("reference")
    for start in replace(problem, start=where).starts(engine, 6):
        (result,), (expected,) = (
            one.refine([replace(start, power=power)]) for one in (engine, reference)
        )
        assert_same_solution(result, expected)
        assert (result.cluster_weights > 0).all()


# ---- handles, batches, threads, memory: the same bits ----------------------------------------


@paired
@pytest.mark.parametrize(("n", "d"), [(50, 2), (1500, 3), (600, 20)])
def test_a_parent_handle_changes_no_bit(fast_engine_name, dtype, weighted, n, d) -> None:
    """With, without, with an unrelated solution's, and with one that is used for the tenth time.

    After hundreds of other refinements an old handle still changes no bit.
    """
    problem = made(n, d, 7, kind="blobs", dtype=dtype, weighted=weighted, seed=7)
    engine, rng = problem.engine(fast_engine_name), np.random.default_rng(7)
    old, other, stranger = mother, father, _ = engine.refine(problem.starts(engine, 3))
    for _ in range(10):
        start = offspring(mother, father, rng)
        handles = (start.parent, None, stranger.handle)
        results = engine.refine([replace(start, parent=handle) for handle in handles])
        assert_same_bits(results[0], results[1])
        assert_same_bits(results[0], results[2])
        mother, father = (results[0], mother) if rng.random() < 0.5 else (mother, results[1])
    if n == 50:
        start = offspring(old, other, rng)
        (expected,) = engine.refine([start])
        engine.refine(problem.starts(engine, 300))
        assert_same_bits(engine.refine([start])[0], expected)


@paired
def test_a_batch_gives_the_same_bits_as_one_by_one(engine_name, dtype, weighted) -> None:
    problem = made(600, 3, 7, dtype=dtype, weighted=weighted, seed=11)
    engine, rng = problem.engine(engine_name), np.random.default_rng(11)
    mother, father = engine.refine(problem.starts(engine, 2))
    starts = [offspring(mother, father, rng) for _ in range(5)]
    for start, result in zip(starts, engine.refine(starts), strict=True):
        assert_same_bits(engine.refine([start])[0], result)
    assert engine.refine([]) == []


def test_results_are_not_overwritten_by_later_refinements(engine_name) -> None:
    """No result shares memory with the engine's scratch space."""
    problem = made(600, 3, 7, weighted=True, seed=12)
    engine = problem.engine(engine_name)
    (first,) = engine.refine(problem.starts(engine))
    results = first.centers, first.cluster_weights, np.asarray(engine.assign(first.centers)[0])
    kept = [array.copy() for array in results]
    for later in engine.refine(problem.starts(engine, 5)[1:]):
        engine.assign(later.centers)
    for array, before in zip(results, kept, strict=True):
        assert_array_equal(array, before)


@paired
@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize(("n", "d"), [(20_000, 3), (3_000, 20)])
def test_any_number_of_threads_gives_the_same_bits(dtype, weighted, n, d) -> None:
    """One, two and four threads: founders, labels, distances, and offspring after them."""
    problem = made(n, d, 8, kind="blobs", dtype=dtype, weighted=weighted, seed=13)
    answers = []
    for n_jobs in (1, 2, 4):
        engine, rng = problem.engine("cpu", n_jobs=n_jobs), np.random.default_rng(13)
        *parents, other = problem.starts(engine, 3)
        mother, father = engine.refine(parents)
        labels, inertia = engine.assign(father.centers)
        distances = engine.distances(mother.centers)
        # Nothing of an assignment may be left behind in the memory of the threads.
        (other,) = engine.refine([other])
        children = [engine.refine([offspring(mother, father, rng)])[0] for _ in range(4)]
        assert_fixed_point(engine, problem, other)
        answers.append(([mother, father, other, *children], labels, inertia, distances))
    for results, labels, inertia, distances in answers[1:]:
        for one, many in zip(answers[0][0], results, strict=True):
            assert_same_bits(one, many)
        assert_array_equal(answers[0][1], labels)
        assert answers[0][2] == inertia
        assert_array_equal(answers[0][3], distances)


@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "memory map"])
def test_any_memory_layout_gives_the_same_bits(engine_name, dtype, layout, tmp_path) -> None:
    problem = made(300, 5, 6, dtype=dtype, seed=14)
    if layout == "memory map":
        np.save(tmp_path / "X.npy", problem.X)
        samples = np.load(tmp_path / "X.npy", mmap_mode="r")
    else:
        samples = arranged(problem.X, layout)
    engines = [one.engine(engine_name) for one in (problem, replace(problem, X=samples))]
    results = [engine.refine(problem.starts(engine, 3)) for engine in engines]
    for one, other in zip(*results, strict=True):
        assert_same_bits(one, other)


def test_clusters_have_the_same_weights_under_every_numbering(engine_name, dtype) -> None:
    """Bits of fractional cluster weights depend on the members alone: clones are recognised."""
    rng = np.random.default_rng(16)
    blobs = made(900, 3, 6, kind="blobs", dtype=dtype, seed=16)
    problem = replace(blobs, weights=rng.random(900))
    engine = problem.engine(engine_name)
    for start in problem.starts(engine, 5):
        (result,) = engine.refine([start])
        order = rng.permutation(6)
        (renumbered,) = engine.refine([Order(start.centers[order], start.alpha, start.quantile)])
        (from_nearby,) = engine.refine([Order(result.centers[order] + 1e-9)])
        for other in (renumbered, from_nearby):
            assert_array_equal(other.cluster_weights, result.cluster_weights[order])
            assert other.inertia == pytest.approx(result.inertia, rel=1e-12)


# ---- weights ---------------------------------------------------------------------------------


def test_a_weight_is_as_good_as_copies(engine_name, dtype) -> None:
    """Integer weights and repeated rows give the same solution."""
    X = made(60, 2, 5, dtype=dtype, seed=17).X
    copies = np.random.default_rng(17).integers(0, 4, 60)
    frame = Frame.around(X)
    weighted = create_engine(engine_name, X, copies.astype(float), frame=frame)
    repeated = create_engine(engine_name, np.repeat(X, copies, axis=0), None, frame=frame)
    slots = (np.arange(5) * 7 + 0.5) / copies.sum()
    assert_array_equal(weighted.samples_at(slots), repeated.samples_at(slots))
    for quantile in (0.1, 0.5, 0.9):
        start = Order(weighted.samples_at(slots), 0.5, quantile, removed=2)
        (one,), (two,) = weighted.refine([start]), repeated.refine([start])
        assert_same_solution(one, two)


def test_the_scale_of_the_weights_does_not_matter(engine_name, dtype) -> None:
    """Times 2^40, clusters stay; inertia and cluster weights scale."""
    problem = made(200, 3, 5, dtype=dtype, weighted=True, seed=18)
    light = problem.engine(engine_name)
    heavy = replace(problem, weights=problem.w * 2.0**40).engine(engine_name)
    for start in problem.starts(light, 3):
        (one,), (two,) = light.refine([start]), heavy.refine([start])
        assert_allclose(two.centers, one.centers, rtol=0.0, atol=1e-14)
        assert_allclose(two.cluster_weights, one.cluster_weights * 2.0**40, rtol=1e-13)
        assert two.inertia == pytest.approx(one.inertia * 2.0**40, rel=1e-13)


# ---- the other verbs -------------------------------------------------------------------------


@paired
@settings(without_shrinking, max_examples=5)
@given(st.data())
def test_assign_and_distances_are_brute_force(engine_name, dtype, weighted, data) -> None:
    """For any centres, fixed point or not; fewer or more of them than samples."""
    for problem in drawn_problems(data, engine_name, dtype, weighted):
        engine, (n, d) = problem.engine(engine_name), problem.X.shape
        samples = in_frame(engine.frame, problem.X)
        rng = np.random.default_rng(problem.seed)
        for k in (1, 3, 70):
            centers = rng.normal(size=(k, d))
            centers[:1] = samples[0]
            squares = squared_distances(samples, centers)
            labels, inertia = engine.assign(centers)
            assert labels.dtype == np.int32
            assert_nearest(samples, centers, np.asarray(labels))
            direct = engine.frame.inertia_in_data_units(float(problem.w @ squares.min(axis=1)))
            assert inertia == pytest.approx(direct, rel=1e-12, abs=1e-322)
            totals, again = engine.weigh(centers)
            assert_allclose(totals, np.bincount(np.asarray(labels), problem.w, k), rtol=1e-12)
            assert again == inertia
            distances = np.asarray(engine.distances(centers))
            assert distances.shape == (n, k)
            expected = np.ldexp(np.sqrt(squares), -engine.frame.exponent)
            rounding = (d + 8) * np.finfo(distances.dtype).eps
            if engine_name == "dask":
                # By matrix products, which lose a few digits to cancellation (engines/nearest.py).
                rounding *= 100.0
            assert_allclose(distances, expected, rtol=rounding, atol=1e-322)


def test_samples_at_are_rows_at_weight_quantiles(engine_name, dtype) -> None:
    """The middles of the W slots of unit weight name every row as often as its weight says."""
    weights = np.array([0.0, 3.0, 1.0, 0.0, 0.0, 2.0, 4.0, 0.0])
    X = np.arange(16.0).reshape(8, 2).astype(dtype)
    for own in (weights, None):
        engine = create_engine(engine_name, X, own)
        counts = np.ones(8, int) if own is None else own.astype(int)
        rows = engine.samples_at((np.arange(counts.sum()) + 0.5) / counts.sum())
        assert_array_equal(rows, in_frame(engine.frame, np.repeat(X, counts, axis=0)))


@pytest.mark.parametrize("n", [5, 1300])
def test_samples_without_weight_are_never_drawn(engine_name, dtype, n) -> None:
    """Not at the ends of the unit interval either, where rounding might reach them."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weights = rng.random(n) * (rng.random(n) < 0.5)
        weights[[0, -1]] = 0.0
        weights[2] = 0.1
        X = rng.normal(size=(n, 1)).astype(dtype)
        engine = create_engine(engine_name, X, weights)
        possible = in_frame(engine.frame, X)[weights > 0, 0]
        quantiles = np.array([0.0, 5e-324, *rng.random(20), 1.0 - 2.0**-52, 1.0 - 2.0**-53])
        drawn = engine.samples_at(quantiles)[:, 0]
        assert set(drawn.tolist()) <= set(possible.tolist())
        assert drawn[0] == possible[0]
