"""A label that is called certain is right, and few are not."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines.frame import Frame
from optional import require_torch
from oracles import squared_distances
from problems import KINDS, make_samples


def proposed(X, centers, terms):
    """Labels by half precision, −1 for those that are not certain."""
    torch = require_torch()
    from evomeans.engines.gpu import torch_ops
    from evomeans.engines.gpu.batch import Batch
    from evomeans.engines.gpu.samples import hold_samples

    frame = Frame.around(X)
    samples = hold_samples(torch.from_numpy(frame.encode(X)), None, terms)
    batch = Batch(samples, len(centers), 1)
    batch.load([centers])
    batch.activate([0])
    torch_ops.prepare(samples, batch, 1)
    torch_ops.propose(samples, batch, 1)
    return batch.labels[0].numpy()


@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_certain_labels_are_right(dtype, kind, terms) -> None:
    """On all kinds of samples, with centres near, far, doubled and out of half precision."""
    rng = np.random.default_rng([KINDS.index(kind), terms])
    for d in (1, 3, 40):
        X = make_samples(kind, 300, d, dtype, rng)
        encoded = Frame.around(X).encode(X).astype(float)
        near = encoded[rng.choice(300, 12)] + 1e-4 * rng.normal(size=(12, d))
        for centers in (near, near[rng.integers(0, 12, 12)], near * 1e3, 1e6 * near):
            labels = proposed(X, centers, terms)
            certain, expected = labels >= 0, squared_distances(encoded, centers).argmin(axis=1)
            np.testing.assert_array_equal(labels[certain], expected[certain])


@pytest.mark.parametrize(("d", "terms", "most"), [(5, 1, 0.03), (5, 2, 1e-3), (100, 1, 0.01)])
def test_few_labels_are_doubtful(d, terms, most) -> None:
    """Twenty overlapping clouds: without few doubts the bound would be of no use."""
    rng = np.random.default_rng(0)
    means = rng.uniform(0.0, 5.0, (20, d))
    X = means[rng.integers(20, size=4000)] + 1.5 * rng.normal(size=(4000, d))
    labels = proposed(X, Frame.around(X).encode(means), terms)
    assert np.mean(labels < 0) < most


def test_scores_stay_within_the_bound() -> None:
    """Half of the doubt bounds the error of every single score, with room to spare."""
    torch = require_torch()
    from evomeans.engines.gpu.samples import doubt, hold_samples, split

    rng = np.random.default_rng(1)
    for d in (3, 30, 200):
        X = rng.normal(size=(500, d))
        centers = rng.normal(size=(30, d))
        samples = hold_samples(torch.from_numpy(Frame.around(X).encode(X)), None, 1)
        true_rows = (samples.rows - samples.middle) * samples.factor
        values = torch.from_numpy(centers) * samples.factor
        (first,), rest = split(values, 1)
        products = samples.planes[:500, :d].float() @ first.float().T
        squares = values.square().sum(dim=1)
        scores = squares.float() - 2.0 * products
        truth = squares - 2.0 * true_rows @ values.T
        reach = torch.tensor([float(squares.max().sqrt()), float(rest.norm(dim=1).max()), 0.0])
        allowed = 0.5 * doubt(samples.spans[:, :500], reach, samples.width)
        error = (scores.double() - truth).abs().amax(dim=1)
        assert (error <= allowed).all()
        assert (error > allowed / 100).any()
