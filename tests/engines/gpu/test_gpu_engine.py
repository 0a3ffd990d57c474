"""Properties of the GPU engine alone: batches, memory, and the same bits whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order
from evomeans.engines.sampling import Drawing
from evomeans.search import SearchSettings, solve
from optional import require_torch
from oracles import assert_same_bits, trace
from problems import Problem, made, offspring

pytestmark = pytest.mark.usefixtures("gpu_device")
SETTINGS = SearchSettings(4, 8, max_offspring=24)


def gpu_engine(problem, **options):
    require_torch()
    from evomeans.engines.gpu.engine import GpuEngine

    return GpuEngine(problem.X, problem.weights, **options)


def search(engine, settings=SETTINGS):
    return solve(engine, 6, settings, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("dtype", "weighted"),
    [(np.float32, True), pytest.param(np.float64, False, marks=pytest.mark.slow)],
)
def test_a_search_does_not_depend_on_what_is_refined_together(dtype, weighted) -> None:
    """Rounds of 8, refined all at once, by fives and one by one, with and without handles."""
    problem = made(300, 4, 6, dtype=dtype, weighted=weighted)
    expected = trace(search(gpu_engine(problem, batch=8)))
    for together, budget in ((5, 2**31), (1, 2**31), (8, 0)):
        engine = gpu_engine(problem, batch=8)
        engine.together, engine.memory.budget = together, budget
        assert trace(search(engine)) == expected


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(300, 4, 7), *(pytest.param(20_011, m, m, marks=pytest.mark.gpu) for m in (20, 100))],
)
def test_centres_have_the_bits_of_the_cpu_engine(gpu_device, dtype, weighted, n, d, k) -> None:
    """Both sum in the same fixed point; the inertia agrees to rounding."""
    if n > 300 and gpu_device == "cpu":
        pytest.skip("no CUDA device")
    problem = made(n, d, k, kind="blobs", dtype=dtype, weighted=weighted)
    engine, other = gpu_engine(problem), problem.engine("cpu")
    for start in problem.starts(engine, 4):
        (result,), (expected,) = engine.refine([start]), other.refine([start])
        assert result.centers.tobytes() == expected.centers.tobytes()
        assert result.cluster_weights.tobytes() == expected.cluster_weights.tobytes()
        assert result.inertia == pytest.approx(expected.inertia, rel=1e-12)


def test_handles_are_kept_within_the_budget_and_given_back() -> None:
    problem = made(300, 4, 5, weighted=True)
    engine = gpu_engine(problem)
    first = engine.refine(problem.starts(engine, 3))
    size = first[0].handle.labels.nbytes + first[0].handle.sums.nbytes
    assert engine.memory.used == 3 * size
    del first
    assert engine.memory.used == 0
    engine.memory.budget = 2 * size
    results = engine.refine(problem.starts(engine, 3))
    assert [result.handle is None for result in results] == [False, False, True]


# ---- out of memory ---------------------------------------------------------------------------


@pytest.fixture
def scarce(monkeypatch):
    """Return how many solutions the device has room for, and the numbers that were tried."""
    torch = require_torch()
    from evomeans.engines.gpu import engine as module

    room, tried = {"for": 100}, []

    class Batch(module.Batch):
        def __init__(self, samples, n_clusters, capacity):
            tried.append(capacity)
            if capacity > room["for"]:
                raise torch.OutOfMemoryError("tried to allocate 2.00 GiB")
            super().__init__(samples, n_clusters, capacity)

    monkeypatch.setattr(module, "Batch", Batch)
    return room, tried


def test_out_of_memory_fewer_are_refined_together(scarce) -> None:
    """16, 8, 4, then 2, with the same bits; the batch that the search sees stays."""
    problem, (room, tried) = made(300, 4, 6, weighted=True), scarce
    engine = gpu_engine(problem, batch=16)
    mother, father = engine.refine(problem.starts(engine, 2))
    rng = np.random.default_rng(0)
    starts = [offspring(mother, father, rng) for _ in range(7)]
    expected = engine.refine(starts)
    room["for"] = 2
    tried.clear()
    engine = gpu_engine(problem, batch=16)
    for result, other in zip(engine.refine(starts), expected, strict=True):
        assert_same_bits(result, other)
    assert tried == [16, 8, 4, 2]
    assert engine.batch == 16


def test_out_of_memory_for_a_single_solution_is_an_error(scarce) -> None:
    problem, (room, _) = made(300, 4, 6), scarce
    engine = gpu_engine(problem, batch=4)
    starts = problem.starts(engine, 4)
    room["for"] = 0
    with pytest.raises(MemoryError, match="a single solution over 300 samples of 4 features"):
        engine.refine(starts)
    with pytest.raises(MemoryError, match="does not suffice"):
        engine.assign(starts[0].centers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_rows_come_onto_the_device_piece_by_piece(monkeypatch, dtype, offset) -> None:
    """In the bits of the frame, which is that of the CPU engine; the last piece is shorter."""
    require_torch()
    from evomeans.engines.frame import Frame
    from evomeans.engines.gpu import samples as module

    monkeypatch.setattr(module, "STAGED", 1_000)
    X = np.random.default_rng(0).normal(offset, 3.0, size=(301, 4)).astype(dtype)
    X.setflags(write=False)
    engine, frame = gpu_engine(Problem(X, None, 1), n_jobs=3), Frame.around(X)
    assert engine.frame.exponent == frame.exponent
    assert_array_equal(engine.frame.shift, frame.shift)
    assert_array_equal(engine.samples.rows.cpu().numpy(), frame.encode(X))


def test_samples_that_do_not_fit_are_an_error(monkeypatch) -> None:
    torch = require_torch()
    from evomeans.engines.gpu import engine as module

    def fail(*_):
        raise torch.OutOfMemoryError("tried to allocate 2.00 GiB")

    monkeypatch.setattr(module, "upload_rows", fail)
    with pytest.raises(MemoryError, match="300 samples of 4 features do not fit"):
        gpu_engine(made(300, 4, 1))


@pytest.mark.parametrize("on_device", [False, True])
def test_a_sample_is_searched_where_it_is_faster(on_device, monkeypatch) -> None:
    """On both it finds what the other finds; the rows are the same."""
    engine = gpu_engine(made(3000, 4, 6), batch=8)
    centers = engine.samples_at(np.array([0.2, 0.7]))
    from evomeans.engines.gpu import engine as module

    monkeypatch.setattr(module, "WORTH_A_DEVICE", 0 if on_device else 2**60)
    sample = engine.subsample(Drawing(1, 300, centers, 1e3))
    assert type(sample).__name__ == ("GpuEngine" if on_device else "CpuEngine")
    settings = SearchSettings(2, 4, max_offspring=8, patience=8, subsample=300)
    found = search(engine, settings)
    assert found.levels == (3000, 300)
    assert found.history[0].made_by.startswith("sample of ")


def test_samples_of_samples_stay_on_the_device(monkeypatch) -> None:
    """Their rows are those that an engine over the same rows of the host would hold."""
    from evomeans.engines.gpu import engine as module
    from evomeans.engines.gpu.samples import upload_rows

    monkeypatch.setattr(module, "WORTH_A_DEVICE", 0)
    problem = made(3000, 4, 6, dtype=np.float32, weighted=True)
    uploads = []
    monkeypatch.setattr(module, "upload_rows", lambda *a: uploads.append(a) or upload_rows(*a))
    engine = gpu_engine(problem, batch=8)
    centers = engine.samples_at(np.array([0.2, 0.7]))
    sample = engine.subsample(Drawing(1, 900, centers, 1e3)).subsample(
        Drawing(2, 200, centers, 1e3)
    )
    assert len(uploads) == 1
    rows = sample.frame.decode(sample.samples.rows.cpu().numpy().astype(float)).astype(np.float32)
    known = {tuple(row) for row in problem.X.tolist()}
    assert all(tuple(row) in known for row in rows.tolist())
    copied = gpu_engine(Problem(rows, sample.weights, 2), frame=engine.frame)
    assert_array_equal(sample.samples.rows.cpu(), copied.samples.rows.cpu())
    assert sample.frame == engine.frame
    assert_same_bits(*(one.refine([Order(centers)])[0] for one in (sample, copied)))
    # A pilot is on the CPU, with rows of the sample.
    pilot = sample.subsample(Drawing(3, 50))
    known = {tuple(row) for row in rows.tolist()}
    assert all(tuple(row) in known for row in pilot._source.tolist())


def test_a_refinement_that_is_abandoned_says_how_far_it_came() -> None:
    engine = gpu_engine(made(300, 4, 2))
    centers = engine.samples_at(np.array([0.2, 0.7]))
    engine.abandon(True)
    (stopped,) = engine.refine([Order(centers)])
    assert not stopped.is_complete
    np.testing.assert_array_equal(stopped.centers, centers)
    engine.abandon(False)
    assert engine.refine([Order(centers)])[0].inertia < engine.assign(centers)[1]


@pytest.mark.parametrize("count", [1, 2, 7, 64, 1001])
def test_sums_depend_on_nothing_but_their_terms(count, gpu_device) -> None:
    torch = require_torch()
    from evomeans.engines.gpu.course import folded

    values = np.random.default_rng(count).normal(size=(2, 9, count))
    totals = folded(torch.from_numpy(values).to(gpu_device)).cpu().numpy()
    np.testing.assert_allclose(totals, values.sum(axis=-1), rtol=1e-12, atol=1e-12)
    alone = folded(torch.from_numpy(values[1, 4:5]).to(gpu_device)).cpu().numpy()
    assert_array_equal(alone, totals[1, 4:5])
