"""Many rows are put into order when a refinement needs it; what comes before does without."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order, create_engine
from evomeans.engines.cpu import engine as module
from evomeans.engines.cpu import samples
from evomeans.engines.sampling import Drawing


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch) -> None:
    for place in (module, samples):
        monkeypatch.setattr(place, "MANY_ROWS", 1_000)


def problem(n: int = 3_000, dtype=np.float64):
    """Return an engine over rows, the rows, and some centres in its frame."""
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype) + dtype(100.0)
    X.setflags(write=False)
    engine = create_engine("cpu", X, np.random.default_rng(1).random(n), n_jobs=2)
    return engine, X, engine.frame.encode(X[:5].astype(np.float64))


def is_in_order(engine) -> bool:
    return engine._deferred.samples is not None


def test_labels_are_the_same_before_and_after_rows_are_in_order() -> None:
    engine, _, centers = problem()
    labels, inertia = engine.assign(centers)
    assert not is_in_order(engine)
    engine.refine([Order(centers)])
    assert is_in_order(engine)
    later, again = engine.assign(centers)
    assert_array_equal(labels, later)
    assert again == pytest.approx(inertia, rel=1e-13)


def test_a_sample_has_the_same_bits_before_and_after_rows_are_in_order() -> None:
    """A search that continues from a checkpoint draws before, and the other after."""
    engine, _, centers = problem()
    drawing = Drawing(7, 400, centers, 1000.0)
    before = engine.subsample(drawing)
    assert not is_in_order(engine)
    engine.refine([Order(centers)])
    after = engine.subsample(drawing)
    assert_array_equal(before._source, after._source)
    assert_array_equal(before.weights, after.weights)


def test_workers_put_rows_into_order_once() -> None:
    engine, _, centers = problem()
    first, *others = engine.workers(5, 2)
    first.refine([Order(centers)])
    assert is_in_order(engine)
    assert all(other.samples is engine.samples for other in [first, *others])


def test_order_can_be_abandoned() -> None:
    engine, _, centers = problem()
    engine.abandon(True)
    (stopped,) = engine.refine([Order(centers)])
    assert not stopped.is_complete
    assert not is_in_order(engine)
    engine.abandon(False)
    (result,) = engine.refine([Order(centers)])
    assert result.inertia < engine.assign(centers)[1]
