"""HGMeans on the GPU engine: NumPy and torch in, NumPy out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from evomeans import HGMeans
from optional import require_torch


@pytest.fixture(name="X")
def _samples() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 3)) + 8.0 * rng.integers(0, 4, size=(200, 1))


def fitted(X, **parameters) -> HGMeans:
    given = {"engine": "gpu", "random_state": 0, "max_offspring": 40, **parameters}
    return HGMeans(4, **given).fit(X)


@pytest.mark.usefixtures("gpu_device")
def test_the_answer_is_that_of_the_cpu_engine(X, dtype) -> None:
    """On clusters nobody can miss; labels, predictions and distances are the same."""
    X = X.astype(dtype)
    one, two = fitted(X), fitted(X, engine="cpu")
    assert one.cluster_centers_.dtype == dtype
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.predict(X), one.labels_)
    np.testing.assert_allclose(one.transform(X), two.transform(X), rtol=1e-5)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-9)
    assert one.score(X) == pytest.approx(-two.inertia_, rel=1e-9)


def test_tensors_are_read_like_arrays(X, gpu_device) -> None:
    """From the CPU or the device, with weights; float32 stays float32, bfloat16 is widened."""
    torch = require_torch()
    weights = np.random.default_rng(1).random(200)
    expected = fitted(X).fit(X, sample_weight=weights)
    for device in {"cpu", gpu_device}:
        model = fitted(torch.tensor(X, device=device))
        model.fit(torch.tensor(X, device=device), sample_weight=torch.tensor(weights))
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        assert isinstance(model.cluster_centers_, np.ndarray)
        np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    on_cpu = HGMeans(4, max_offspring=5, random_state=0)
    assert on_cpu.fit(torch.tensor(X, dtype=torch.float32)).cluster_centers_.dtype == np.float32
    assert len(on_cpu.fit(torch.tensor(X).bfloat16()).labels_) == 200
    with pytest.raises(TypeError, match=r"Invalid X: a torch tensor must be dense"):
        on_cpu.fit(torch.tensor(X).to_sparse())


def test_sparse_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="engine='gpu' takes dense X only, got a sparse matrix"):
        HGMeans(2, engine="gpu").fit(csr_array(np.eye(4)))


@pytest.mark.usefixtures("gpu_device")
def test_a_search_goes_on_from_its_checkpoint(X, tmp_path) -> None:
    """Stopped within a round of 32, it ends with the bits of one that was not."""
    parameters = {"max_offspring": 70, "n_iter_no_change": 70, "max_population": 12}
    expected = fitted(X, **parameters)
    path = tmp_path / "search.checkpoint"
    fitted(X, **{**parameters, "max_offspring": 40}, checkpoint=path)
    resumed = fitted(X, **parameters, checkpoint=path)
    assert [r.inertia for r in resumed.history_] == [r.inertia for r in expected.history_]
    assert resumed.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
