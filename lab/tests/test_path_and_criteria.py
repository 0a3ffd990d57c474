"""The tables of the benchmarks of paths and criteria follow from their rows."""

from __future__ import annotations

import pytest

from lab import criteria, path


def row(method, k, inertia, seconds, seed=0):
    shared = {"dataset": "a", "method": method, "seed": seed}
    return shared | {"k": k, "inertia": inertia, "seconds": seconds}


def test_gaps_are_to_the_best_of_the_fits_and_bumps_are_counted():
    rows = [
        *(row("fits", 2, 100.0, 3.0), row("fits", 3, 50.0, 5.0)),
        *(row("fits", 2, 101.0, 3.0, seed=1), row("fits", 3, 50.0, 5.0, seed=1)),
        *(row("path", 2, 100.0, 1.0), row("path", 3, 50.5, 1.0)),
        *(row("restarts", 2, 110.0, 1.0), row("restarts", 3, 110.0, 1.0)),
    ]
    lines = {line["method"]: line for line in path.summaries(rows)}
    assert lines["fits"]["mean gap"] == pytest.approx(0.25)
    assert lines["path"]["worst gap"] == pytest.approx(1.0)
    assert lines["path"]["of fits"] == pytest.approx(0.25)
    assert [lines[name]["bumps"] for name in ("path", "restarts")] == [0, 1]


def test_hits_and_errors_by_kind_of_samples():
    def choice(samples, truth, chosen):
        return {"samples": samples, "truth": truth, "criterion": "bic", "choice": chosen}

    rows = [
        choice("mixture:5:10:1.0:0", 5, 5),
        choice("mixture:5:10:1.0:1", 5, 7),
        choice("plane:4:2:5.0:0", 4, ""),
        choice("real:iris", 3, 3),
    ]
    (line,) = criteria.summaries(rows)
    assert line["hits 1.0"] == 50.0
    assert line["error 1.0"] == 1.0
    assert line["error plane"] == 16
    assert line["hits real"] == 100.0
    assert line["hits all"] == pytest.approx(100 / 3)


def test_problems_have_their_true_number():
    names = [name for name, X, truth in criteria.planes([0]) if X.shape == (600, 2) and truth]
    assert len(names) == 6
    assert {truth for _, _, truth in criteria.real_sets()} == {2, 3, 10}
