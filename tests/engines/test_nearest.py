"""Labels, distances and inertia of samples that no engine holds."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from evomeans import HGMeans
from evomeans.engines import Order, nearest
from evomeans.engines.cpu import CpuEngine, predict
from evomeans.engines.frame import Frame
from oracles import squared_distances


def exact_squares(X, centers):
    """‖x − c‖² in rational numbers, without any rounding."""
    return [
        [
            sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, c, strict=True))
            for c in centers
        ]
        for x in X
    ]


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Few samples take NumPy, many the kernels; here a few of them do."""
    if request.param == "many blocks":
        monkeypatch.setattr(nearest, "FEWEST", 5)
        monkeypatch.setattr(nearest, "SCORES", 1)


GRID = st.integers(-4, 4).map(float)


@pytest.mark.usefixtures("blocks")
@given(
    X=arrays(float, st.tuples(st.integers(6, 12), st.just(3)), elements=GRID),
    centers=arrays(float, st.tuples(st.integers(1, 5), st.just(3)), elements=GRID),
)
def test_ties_on_a_grid_go_to_the_lowest_index(dtype, X, centers):
    """All arithmetic is exact here, and so are the ties; centres may be equal."""
    X = X.astype(dtype)
    frame = Frame.around(X)
    found = nearest.labels(X, frame.encode(centers), frame)
    assert_array_equal(found, np.argmin(exact_squares(X, centers), axis=1))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("exponent", [-400, 0, 400])
def test_near_ties_are_decided_in_double_precision(offset, exponent):
    """Samples are off the middle of two centres by a few units in the 14th digit."""
    rng = np.random.default_rng(0)
    pair = np.ldexp(offset + np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]), exponent)
    steps = rng.integers(-50, 50, size=(40, 1)) * (1e-6 if offset else 1e-13)
    X = np.ldexp(offset + np.array([0.5, 1.0, 1.5]) + steps, exponent)
    frame = Frame.around(np.concatenate([X, pair]))
    squares = exact_squares(X, pair)
    decided = [abs(a - b) > max(a, b) / 10**15 for a, b in squares]
    found = nearest.labels(X, frame.encode(pair), frame)
    assert sum(decided) > 30
    assert_array_equal(found[decided], np.argmin(squares, axis=1)[decided])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("offset", [0.0, 3000.0])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_wide_samples_have_the_labels_of_the_direct_formula(dtype, offset, k):
    """Near ties included."""
    rng = np.random.default_rng(4)
    X = (rng.integers(-9, 10, size=(700, 17)) + offset).astype(dtype)
    X[::50] = X[1::50] + dtype(2.0**-9)
    frame = Frame.around(X)
    samples = frame.encode(X).astype(np.float64)
    centers = samples[2 : 2 + k] + 2.0**-20
    expected = squared_distances(samples, centers).argmin(axis=1)
    for n_threads in (1, 2):
        assert_array_equal(nearest.labels(X, centers, frame, n_threads), expected)


@pytest.mark.parametrize(("d", "k"), [(2, 8), (3, 64), (10, 64)])
def test_far_from_the_origin_a_label_does_not_depend_on_the_other_samples(d, k, dtype):
    """Kernels lose no digits that NumPy keeps where samples are few."""
    rng = np.random.default_rng(7)
    X = (1000.0 + rng.normal(size=(20_000, d))).astype(dtype)
    frame = Frame.around(X)
    centers = frame.encode(1000.0 + rng.normal(size=(k, d)))
    few = [nearest.labels(X[i : i + 500], centers, frame) for i in range(0, len(X), 500)]
    assert_array_equal(nearest.labels(X, centers, frame), np.concatenate(few))


def test_a_far_centre_leaves_the_others_clear(dtype, monkeypatch):
    """What a score may be wrong by depends on its own centre, not on the farthest one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5000, 16)).astype(dtype)
    centers = np.vstack([rng.normal(size=(8, 16)), np.full((1, 16), 3e3)])
    unclear, choose = [], predict.choose
    monkeypatch.setattr(
        predict, "choose", lambda *given: unclear.append(len(given[-1])) or choose(*given)
    )
    frame = Frame.around(X)
    found = nearest.labels(X, frame.encode(centers), frame)
    assert_array_equal(found, squared_distances(X.astype(float), centers).argmin(axis=1))
    assert sum(unclear) < 50


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("sparse", [False, True])
def test_labels_distances_and_inertia_are_those_of_the_direct_formula(dtype, sparse):
    """Samples on and next to a centre keep their digits."""
    rng = np.random.default_rng(2)
    centers = rng.integers(-8, 9, size=(4, 6)) * 1.0
    X = (centers[rng.integers(4, size=50)] + rng.normal(size=(50, 6)) * 1e-4).astype(dtype)
    X[0] = centers[0]
    weights = rng.random(50)
    frame = Frame.scaling(X, 6)
    samples = sp.csr_array(X) if sparse else X
    squares = squared_distances(X, centers)
    args = frame.encode(centers), frame
    assert_array_equal(nearest.labels(samples, *args), squares.argmin(axis=1))
    distances = nearest.distances(samples, *args)
    assert distances.dtype == dtype
    assert_allclose(distances, np.sqrt(squares), rtol=1e-12 if dtype is np.float64 else 1e-6)
    assert distances[0].min() == 0.0
    cost = weights @ squares.min(axis=1)
    assert_allclose(nearest.inertia(samples, weights, *args), cost, rtol=1e-12)


def test_a_row_does_not_depend_on_others_threads_or_layout(dtype, monkeypatch):
    """One by one, reversed, in Fortran order, strided, read-only, and by three threads."""
    rng = np.random.default_rng(3)
    X = rng.integers(-2, 3, size=(200, 4)).astype(dtype)
    frame = Frame.around(X)
    centers = frame.encode(rng.integers(-2, 3, size=(9, 4)) / 2)
    expected = np.concatenate([nearest.labels(X[i : i + 1], centers, frame) for i in range(200)])
    frozen = X.copy()
    frozen.flags.writeable = False
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    monkeypatch.setattr(nearest, "FEWEST", 16)
    monkeypatch.setattr(nearest, "SCORES", 1)
    for n_threads in (1, 3):
        for variant in (X, np.asfortranarray(X), strided, frozen):
            assert_array_equal(nearest.labels(variant, centers, frame, n_threads), expected)
        assert_array_equal(nearest.labels(X[::-1], centers, frame, n_threads)[::-1], expected)
    one, three = (nearest.inertia(X, None, centers, frame, n) for n in (1, 3))
    assert one == three


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("sparse", [False, True])
def test_samples_far_outside_do_not_change_the_labels_of_others(sparse):
    """1e100 has a frame of its own; 1e200 cannot be squared."""
    X = np.array([[0.0, 1.0], [3.0, 1.0], [1e100, 0.0], [-1e100, 0.0], [3.1, 1.0], [0.2, 1.0]])
    frame = Frame(np.zeros(2), -2)
    centers = frame.encode(np.array([[0.0, 1.0], [3.0, 1.0]]))
    kind = sp.csr_array if sparse else np.array
    assert_array_equal(nearest.labels(kind(X), centers, frame)[[0, 1, 4, 5]], [0, 1, 1, 0])
    assert_allclose(nearest.distances(kind(X), centers, frame)[2:4], 1e100)
    assert_allclose(nearest.inertia(kind(X), None, centers, frame), 2e200)
    X[2, 0] = 1e200
    with pytest.raises(ValueError, match="overflow beyond"):
        nearest.labels(kind(X), centers, frame)


KERNELS = (
    predict.label_clear,
    predict.label_narrow,
    predict.set_offsets,
    predict.set_squared_distances,
)


@pytest.mark.parametrize("d", [3, 20])
def test_read_only_samples_need_no_kernels_of_their_own(dtype, d):
    """Tables of pandas are read-only, and Numba takes such arrays for another type."""
    X = np.random.default_rng(0).normal(size=(20_000, d)).astype(dtype)
    frame, centers = Frame.around(X), X[:5].astype(np.float64)
    args = frame.encode(centers), frame
    expected = nearest.labels(X, *args), nearest.inertia(X, None, *args)
    X.setflags(write=False)
    known = [len(kernel.signatures) for kernel in KERNELS]
    assert_array_equal(nearest.labels(X, *args), expected[0])
    assert nearest.inertia(X, None, *args) == expected[1]
    assert [len(kernel.signatures) for kernel in KERNELS] == known


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [40, 2_000])
def test_the_labels_of_a_fit_are_those_of_predict(n, sparse):
    """By the same function, with ties on a grid, and so is the inertia that of score."""
    X = np.random.default_rng(0).integers(0, 4, size=(n, 3)).astype(float)
    X = sp.csr_array(X) if sparse else X
    model = HGMeans(6, max_offspring=3, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(-model.score(X), model.inertia_, rtol=1e-14)
    with closing(CpuEngine(X)) as engine:
        centers = engine.frame.encode(model.cluster_centers_)
        for _ in range(2):
            assert_array_equal(engine.assign(centers)[0], model.labels_)
            engine.refine([Order(centers)])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("d", "sparse"), [(3, False), (9, False), (9, True)])
def test_one_look_gives_the_bits_of_two(d, sparse):
    """Labels, and squared distances to the centres of these; some samples are far outside."""
    X = np.random.default_rng(0).normal(size=(700, d))
    X[::90] *= 1e9
    centers = X[1:40]
    X = sp.csr_array(X) if sparse else X
    frame = Frame(np.zeros(d), -2)
    given = X, frame.encode(centers), frame
    for n_threads in (1, 2):
        labels, squares = nearest.labels_and_squares(*given, n_threads)
        assert_array_equal(labels, nearest.labels(*given))
        assert_array_equal(squares, nearest.squares(X, labels, *given[1:]))


def test_few_samples_without_ties_need_no_compiler():
    """A model can serve at once on a machine that has compiled nothing."""
    import subprocess
    import sys

    program = (
        "import sys, numpy as np; from evomeans.engines import nearest;"
        "from evomeans.engines.frame import Frame;"
        "frame = Frame(np.zeros(2), 0);"
        "args = np.array([[0.1, 0.1], [0.7, 0.2]]), frame;"
        "assert nearest.labels(np.array([[0.6, 0.3]]), *args) == [1];"
        "nearest.distances(np.ones((9, 2)), *args); nearest.inertia(np.ones((9, 2)), None, *args);"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_matrix_products_use_one_thread_each(blocks, monkeypatch, n_threads) -> None:
    """Those of a library would stay busy for a while after a single product."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    counts = set()
    products = nearest.Scorer._products_by_center

    def counted(scorer, block):
        libraries = threadpool_info()
        counts.update(one["num_threads"] for one in libraries if one["user_api"] == "blas")
        return products(scorer, block)

    monkeypatch.setattr(nearest.Scorer, "_products_by_center", counted)
    monkeypatch.setattr(nearest.Scorer, "most_narrow", 0)
    with threadpool_limits(2, "blas"):
        nearest.labels(X, X[:4], Frame.spanning(X.min(axis=0), X.max(axis=0), len(X)), n_threads)
    assert counts == {1}


def test_kernels_read_what_must_not_be_written_without_a_copy() -> None:
    """The array itself stays read-only."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    X.flags.writeable = False
    read = nearest.as_kernels_read(X)
    assert np.shares_memory(read, X)
    assert not X.flags.writeable
    columns = np.asfortranarray(X)
    assert nearest.as_kernels_read(columns).flags.c_contiguous
    assert_array_equal(nearest.as_kernels_read(columns), X)
