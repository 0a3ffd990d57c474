"""On a real GPU, at sizes that fill it. Everything else runs there, too, if there is one."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans import HGMeans
from evomeans.engines import Order, create_engine
from optional import require_torch

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _needs_cuda() -> None:
    if not require_torch().cuda.is_available():
        pytest.skip("no CUDA device")


def mixture(n, m, d, dtype, seed):
    rng = np.random.default_rng(seed)
    means = rng.uniform(0, 5, (m, d))
    X = means[rng.integers(m, size=n)] + rng.normal(size=(n, d)) * np.sqrt(rng.uniform(1, 10))
    return X.astype(dtype)


def nearest(X, centers, device="cuda"):
    """Brute force in float64."""
    torch = require_torch()
    rows, centers = torch.tensor(X, device=device).double(), torch.tensor(centers, device=device)
    parts = [((part[:, None] - centers) ** 2).sum(dim=2).argmin(dim=1) for part in rows.split(500)]
    return torch.cat(parts).cpu().numpy()


@pytest.mark.parametrize(
    ("m", "d"), [(7, 2), (20, 20), (65, 50), (100, 100), (300, 200), (200, 500)]
)
def test_labels_equal_the_nearest_centre_in_double_precision(m, d, dtype) -> None:
    """Random centres, centres of K-means, and centres close to each other."""
    X = mixture(20_011, m, d, dtype, m)
    engine = create_engine("gpu", X, None)
    rng = np.random.default_rng(m)
    encoded = engine.frame.encode(X)
    start = encoded[rng.choice(len(X), m, replace=False)].astype(float)
    refined = engine.refine([Order(start)])[0].centers
    close = start[rng.integers(0, m, m)] + 1e-5 * rng.normal(size=start.shape)
    for centers in (start, refined, close):
        labels, _ = engine.assign(centers)
        np.testing.assert_array_equal(labels, nearest(encoded, centers))


def test_two_searches_have_the_same_bits(dtype) -> None:
    X = mixture(20_011, 30, 20, dtype, 5)
    one, two = (HGMeans.fast(30, engine="gpu", random_state=0).fit(X) for _ in range(2))
    assert [r.inertia for r in one.history_] == [r.inertia for r in two.history_]
    assert one.cluster_centers_.tobytes() == two.cluster_centers_.tobytes()
    other = create_engine("cpu", X, None)
    centers = other.frame.encode(one.cluster_centers_.astype(float))
    labels, inertia = other.assign(centers)
    assert one.inertia_ == pytest.approx(inertia, rel=1e-9)
    np.testing.assert_array_equal(one.labels_, labels)


def test_out_of_device_memory_is_survived() -> None:
    """Something else takes nearly all of the memory: the same bits, fewer at a time."""
    torch = require_torch()
    X = mixture(200_000, 10, 8, np.float32, 6)
    engine = create_engine("gpu", X, None)
    slots = np.random.default_rng(3).choice(len(X), (32, 10), replace=False)
    starts = [Order(engine.samples_at((own + 0.5) / len(X))) for own in slots]
    expected = [result.centers.tobytes() for result in engine.refine(starts)]
    engine = create_engine("gpu", X, None)
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    hog = torch.empty(free - 150 * 2**20, dtype=torch.uint8, device="cuda")
    try:
        results = [result.centers.tobytes() for result in engine.refine(starts)]
    finally:
        del hog
        torch.cuda.empty_cache()
    assert engine.together < 32
    assert results == expected
