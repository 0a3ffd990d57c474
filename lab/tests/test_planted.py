"""Planted clusters are what they should be, and whole runs are summed up as they were."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from lab.planted import embeddings, genes, missed, texts
from lab.whole_runs import add_gaps, summary


@pytest.mark.parametrize("seed", [0, 1])
def test_centres_of_planted_data_are_near_the_means(seed) -> None:
    rng = np.random.default_rng(seed)
    planted = embeddings(2000, 5, 4, 0.1, rng)
    closest = ((planted.X[:, None] - planted.centers) ** 2).sum(axis=2).argmin(axis=1)
    for j, center in enumerate(planted.centers):
        assert np.allclose(planted.X[closest == j].mean(axis=0), center, atol=0.05)
    assert missed(planted, planted.centers) == 0
    doubled = planted.centers.copy()
    doubled[0] = doubled[1] + 1e-9
    assert missed(planted, doubled) == 1


def test_texts_are_sparse_rows_of_length_one() -> None:
    planted = texts(200, 400, 5, np.random.default_rng(0))
    assert sp.issparse(planted.X)
    assert planted.X.shape == (200, 400)
    assert planted.X.indices.dtype == np.int32
    np.testing.assert_allclose((planted.X**2).sum(axis=1), 1.0)
    np.testing.assert_allclose(planted.centers[0], planted.X[:40].mean(axis=0))


def test_genes_differ_in_few_features() -> None:
    planted = genes(50, 500, 3, np.random.default_rng(0))
    assert planted.X.shape == (50, 500)
    assert (np.count_nonzero(planted.centers, axis=1) == 10).all()


def test_whole_runs_are_summed_up_by_version() -> None:
    """The best of all runs is the reference where no better value is known."""

    def answer(inertia: float, cpu: float) -> dict[str, float]:
        return {"inertia": inertia, "cpu": cpu, "offspring": 100, "rediscoveries": 1}

    found = {
        ("digits:5", 0): [answer(100.0, 4.0), answer(100.0, 1.0)],
        ("digits:5", 1): [answer(100.009, 2.0), answer(101.0, 2.0)],
    }
    add_gaps(found)
    row = summary("digits:5", found)
    assert (row["success 0"], row["success 1"]) == (1.0, 0.5)
    assert row["worst 1"] == pytest.approx(1.0)
    assert (row["cpu 0"], row["cpu 1"], row["ratio"]) == (3.0, 1.5, 0.5)
