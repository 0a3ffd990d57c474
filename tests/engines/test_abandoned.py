"""Every long step of an engine asks whether it is still wanted; seeding ends with real centres."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix

from evomeans.compiled.jit import address_of
from evomeans.engines import Order, base, nearest
from evomeans.engines.constrained.engine import ConstrainedEngine
from evomeans.engines.constrained.links import Links, contract
from evomeans.engines.cpu import engine as cpu_engine
from evomeans.engines.cpu import order
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.hartigan import visit
from evomeans.engines.cpu.kernels import PLAIN, Move
from evomeans.engines.cpu.refine import refine
from evomeans.engines.cpu.samples import sparse_part, sparse_rows
from evomeans.engines.cpu.seeding import Candidates, seed
from evomeans.engines.cpu.threads import ABANDONED
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.protocol import Abandoned, LocalSearch
from evomeans.engines.sampling import WeightedDraw
from evomeans.engines.spherical import SphericalEngine
from evomeans.engines.trimmed import TrimmedEngine
from evomeans.engines.workers import watched
from fakes import ScriptedEngine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
NO_LINKS = Links(*(np.empty((0, 2), np.int64), np.empty(0)) * 2)


def constrained() -> ConstrainedEngine:
    k = 5
    low, high = np.full(k, 100, np.int64), np.full(k, 140, np.int64)
    return ConstrainedEngine(contract(X, None, np.arange(len(X))), NO_LINKS, low, high)


MODELS = {
    "spherical": lambda: SphericalEngine(X, None),
    "trimmed": lambda: TrimmedEngine(X, None, 30.0),
    "constrained": constrained,
}


class Ends:
    """Ends what it is asked about, at the given question."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Abandoned


def are_distinct_samples(centers, engine) -> bool:
    rows = {tuple(row) for row in engine.rows(np.arange(len(X)))}
    found = {tuple(row) for row in centers}
    return len(found) == len(centers) and found <= rows


# The CPU engine


@pytest.mark.parametrize("weights", [None, np.arange(600.0)])
def test_seeding_of_an_abandoned_engine_draws_distinct_samples(weights) -> None:
    engine = CpuEngine(X, weights)
    engine.abandon(True)
    assert are_distinct_samples(engine.seed(RNG.random((200, 3))), engine)


def test_centres_that_were_drawn_in_time_are_kept(monkeypatch) -> None:
    """They come first, and no sample is drawn again."""
    engine, quantiles = CpuEngine(X), RNG.random((300, 2))
    whole = engine.seed(quantiles)
    draw = Workspace.seed

    def seed_some(workspace, trials, chosen):
        draw(workspace, trials, chosen)
        chosen[100:] = -1
        raise Abandoned

    monkeypatch.setattr(Workspace, "seed", seed_some)
    centers = engine.seed(quantiles)
    assert_array_equal(centers[:100], whole[:100])
    assert are_distinct_samples(centers, engine)


def test_the_kernels_look_at_the_barrier() -> None:
    """Seeding chooses nothing, and an assignment labels nothing, once it says so."""
    engine = CpuEngine(X)
    workspace = engine._workspace(4)
    workspace.team.barrier[ABANDONED] = 1
    n_tiles = len(workspace.samples.radii)
    memory = workspace.centers.exact, workspace.scratch, Candidates.allocate(2, n_tiles, X.shape[1])
    chosen = np.full(4, -1, np.int64)
    seed(workspace.samples, *memory, RNG.random((4, 2)), chosen, 0, 1)
    assert_array_equal(chosen, -1)
    found = engine._new_solution(4)
    workspace._instruct(Move(steps=5), PLAIN)
    addresses = map(address_of, (workspace.work, found, found))
    workspace._kernels.entry(refine)(*addresses, 0, 1)
    assert_array_equal(found.state.labels, 4)


def test_single_moves_end_with_no_mark_left() -> None:
    """Of marked samples, an abandoned refinement moves none."""
    engine = CpuEngine(X)
    workspace = engine._workspace(4)
    found = engine._new_solution(4)
    workspace.run(found, found, engine.frame.encode(X[:4]), Move(steps=1))
    marks, before = workspace.scratch.marks, found.state.labels.copy()
    marks[:] = 1
    visit(workspace.work, found.state)
    assert (found.state.labels != before).any()
    before = found.state.labels.copy()
    marks[:] = 1
    workspace.team.barrier[ABANDONED] = 1
    visit(workspace.work, found.state)
    assert_array_equal(found.state.labels, before)
    assert not marks.any()


def test_sparse_rows_are_taken_in_block_by_block(monkeypatch) -> None:
    """The same samples as at once; what is asked between blocks ends it."""
    rows = csr_matrix(np.where(RNG.random((500, 40)) < 0.1, RNG.normal(size=(500, 40)), 0.0))
    whole = order.neighbour_order(rows, 64)
    monkeypatch.setattr(order, "VALUES_AT_A_TIME", 100)
    blocks = list(order.row_blocks(rows.indptr))
    assert_array_equal(np.concatenate([np.arange(500)[part] for part in blocks]), np.arange(500))
    assert len(blocks) > 10
    asked = []
    assert_array_equal(order.neighbour_order(rows, 64, 1, lambda: asked.append(1)), whole)
    found = sparse_part(rows, whole, lambda: asked.append(1))
    assert len(asked) > 2 * len(blocks) - 2
    assert (found != rows[whole]).nnz == 0
    assert_array_equal(found.indices, rows[whole].indices)
    held = sparse_rows(found, lambda: asked.append(1))
    assert_allclose(held.squares, found.multiply(found).sum(axis=1), rtol=1e-14)
    for take in (partial(sparse_part, rows, whole), partial(sparse_rows, rows)):
        with pytest.raises(Abandoned):
            take(Ends(5))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_order_of_rows_does_not_depend_on_how_often_it_is_looked_at(
    monkeypatch, n_jobs
) -> None:
    rows = RNG.normal(size=(20_000, 4))
    expected = order.neighbour_order(rows, 64)
    monkeypatch.setattr(order, "VALUES_AT_A_TIME", 5_000)
    asked = []
    found = order.neighbour_order(rows, 64, n_jobs, lambda: asked.append(1))
    assert_array_equal(found, expected)
    assert len(asked) > 20
    with pytest.raises(Abandoned):
        order.neighbour_order(rows, 64, 1, Ends(10))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_samples_that_are_not_in_order_are_seeded_and_labelled(monkeypatch, kind) -> None:
    monkeypatch.setattr(cpu_engine, "VALUES_WORTH_DEFERRING", 1)
    rows = X if kind == "dense" else csr_matrix(np.where(X > 0.5, X, 0.0))
    engine = CpuEngine(rows)
    assert not engine.is_prepared
    engine.abandon(True)
    centers = engine.seed(RNG.random((7, 2)))
    (stopped,) = engine.refine([Order(centers)])
    assert not stopped.is_complete
    assert not stopped.is_given_up
    assert_array_equal(stopped.centers, centers)
    assert not engine.is_prepared
    engine.abandon(False)
    # Labels come from the data as they are: nothing else is made of them when time is up.
    labels, inertia = engine.assign(centers)
    assert not engine.is_prepared
    monkeypatch.setattr(cpu_engine, "VALUES_WORTH_DEFERRING", 2**20)
    expected, same = CpuEngine(rows).assign(centers)
    assert_array_equal(labels, expected)
    assert inertia == pytest.approx(same, rel=1e-12)


def test_large_data_takes_time_to_label_and_small_data_none() -> None:
    engine = CpuEngine(RNG.normal(size=(3_000, 20)))
    assert engine.labelling_seconds(2) == 0.0
    assert engine.labelling_seconds(100) > 0.0


def test_time_of_labels_is_that_of_samples_of_all_places(monkeypatch) -> None:
    """Data may be sorted, so that the first samples take longer than others, or less."""
    X = np.arange(400_000.0).reshape(-1, 2)
    engine = CpuEngine(X)
    timed: list[float] = []
    measure = nearest.seconds_to_label

    def noted(rows, *given):
        timed.extend(rows[:, 0])
        return measure(rows, *given)

    monkeypatch.setattr(nearest, "seconds_to_label", noted)
    assert engine.labelling_seconds(100) > 0.0
    assert min(timed) == X[0, 0]
    assert max(timed) == X[-1, 0]
    assert abs(np.mean(timed) - X[:, 0].mean()) < 0.01 * X[-1, 0]


# Models


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("nth", [1, 2, 9])
def test_models_end_seeding_with_distinct_samples(monkeypatch, name, nth) -> None:
    engine = MODELS[name]()
    quantiles = RNG.random((80, 3))
    whole = engine.seed(quantiles)
    monkeypatch.setattr(engine, "check_abandoned", Ends(nth))
    centers = engine.seed(quantiles)
    assert are_distinct_samples(centers, engine)
    assert_array_equal(centers[0], whole[0])


@pytest.mark.parametrize("name", MODELS)
def test_a_refinement_of_a_model_says_how_far_it_came(monkeypatch, name) -> None:
    """It is asked for every block of rows, and ends with finite centres, wherever that is."""
    monkeypatch.setattr(base, "PRODUCTS_AT_ONCE", 1_000)
    engine = MODELS[name]()
    start = Order(engine.rows(np.arange(5)))
    asked = []
    monkeypatch.setattr(engine, "check_abandoned", lambda: asked.append(1))
    (whole,) = engine.refine([start])
    assert len(asked) > 5 * whole.n_iter
    for nth in range(1, min(len(asked), 60), 7):
        monkeypatch.setattr(engine, "check_abandoned", Ends(nth))
        (stopped,) = engine.refine([start])
        assert not stopped.is_complete
        assert stopped.centers.shape == start.centers.shape
        assert np.isfinite(stopped.centers).all()
    # What was left half done does not spoil the next one.
    monkeypatch.setattr(engine, "check_abandoned", lambda: None)
    (again,) = engine.refine([start])
    assert again.inertia == whole.inertia
    assert_array_equal(again.labels, whole.labels)


def test_matrix_products_label_as_the_kernel_does(monkeypatch) -> None:
    rows = RNG.normal(size=(500, 12))
    labels, objective = SphericalEngine(rows, None).assign(rows[:9])
    seeds = SphericalEngine(rows, None).seed(np.linspace(0.0, 0.9, 20).reshape(10, 2))
    monkeypatch.setattr(base, "LONG", 1)
    same, value = SphericalEngine(rows, None).assign(rows[:9])
    assert_array_equal(same, labels)
    assert value == pytest.approx(objective, rel=1e-12)
    again = SphericalEngine(rows, None).seed(np.linspace(0.0, 0.9, 20).reshape(10, 2))
    assert_allclose(again, seeds)


@pytest.mark.parametrize("name", MODELS)
def test_the_twins_of_an_abandoned_engine_go_on(name) -> None:
    """The search abandons one to place orders early, while workers refine."""
    engine = MODELS[name]()
    order = Order(engine.rows(np.arange(5)), local_search=LocalSearch(single_moves=True))
    (expected,), twin = engine.refine([order]), engine.twin()
    engine.abandon(True)
    (found,) = twin.refine([order])
    assert found.is_complete
    assert_array_equal(found.centers, expected.centers)


def test_an_abandoned_engine_keeps_the_limits_of_clusters() -> None:
    engine = constrained()
    engine.abandon(True)
    engine.abandon(False)
    centers = engine.rows(np.arange(5))
    weights, inertia = engine.weigh(centers)
    assert weights.min() >= 100
    assert weights.max() <= 140
    labels, _ = engine.assign(centers)
    assert inertia == pytest.approx(((X - X[:5][labels]) ** 2).sum(), rel=1e-9)
    assert inertia >= constrained().assign(centers)[1] * (1.0 - 1e-12)


# What they share


def test_rows_are_drawn_once_and_have_weight() -> None:
    weights = np.array([1.0, 0.0, 5.0, 0.0, 2.0, 1.0])
    drawing = WeightedDraw(6, weights)
    rows = drawing.distinct_rows(np.full(3, 0.5), np.array([2]))
    assert sorted(rows.tolist()) == [0, 4, 5]
    # There are no more than four.
    assert set(drawing.distinct_rows(np.full(6, 0.5)).tolist()) == {0, 2, 4, 5}
    assert_array_equal(drawing.distinct_rows(np.array([0.0, 0.9])), [0, 5])


def test_a_step_that_is_watched_ends_when_it_is_over(monkeypatch) -> None:
    engine = CpuEngine(X)
    monkeypatch.setattr("evomeans.engines.workers.MOMENT", 1e-3)
    questions = iter([False, False, True])

    def wait() -> str:
        while not engine.is_abandoned:
            pass
        return "ended"

    assert watched(engine, wait, lambda: next(questions)) == "ended"
    assert not engine.is_abandoned
    assert watched(ScriptedEngine([]), lambda: 5, lambda: False) == 5
    with pytest.raises(ZeroDivisionError):
        watched(engine, lambda: 1 // 0, lambda: False)
