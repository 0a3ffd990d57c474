"""Examples of the inside of a search work as they say, in few lines."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from evomeans import HGMeans
from evomeans.engines.cpu import CpuEngine
from evomeans.search import PAPER, SearchSettings, StopReason, solve

INSIDE = Path(__file__).parents[2] / "examples" / "gallery" / "inside"
SHOWN = {
    "own_crossover": "plane_crossover",
    "own_stopping": "Stagnation",
    "own_local_search": "ShakingEngine",
}
X = load_iris().data
pytest.importorskip("matplotlib")


def defined(script: str) -> object:
    """Run the imports and definitions of a script, and return what it is about."""
    path = INSIDE / f"{script}.py"
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if isinstance(node, kinds)]
    names: dict[str, object] = {}
    exec(compile(ast.Module(kept, []), str(path), "exec"), names)
    return names[SHOWN[script]]


@pytest.mark.parametrize("script", SHOWN)
def test_it_takes_at_most_25_lines(script) -> None:
    tree = ast.parse((INSIDE / f"{script}.py").read_text(encoding="utf-8"))
    (node,) = [one for one in tree.body if getattr(one, "name", "") == SHOWN[script]]
    assert node.end_lineno - node.lineno + 1 <= 25


def test_a_rule_of_ones_own_ends_the_search() -> None:
    rule = defined("own_stopping")(n_solutions=5, least_gain=0.5)
    model = HGMeans(6, observers=rule, random_state=0).fit(X)
    assert model.stop_reason_ == StopReason.OBSERVER
    assert len(rule.bests) == len(model.history_) == 6
    patient = defined("own_stopping")(n_solutions=10**6)
    model = HGMeans(6, observers=patient, random_state=0).fit(X)
    assert model.stop_reason_ != StopReason.OBSERVER
    assert patient.converged >= model.n_rediscoveries_ - 1
    assert len(patient.bests) == len(model.history_)


def test_a_local_search_of_ones_own_takes_the_place_of_the_other() -> None:
    """No solution is worse than K-means alone makes it from the same start."""
    shaking = defined("own_local_search")
    settings = SearchSettings(3, 6, max_offspring=20, strategy=PAPER)
    results = [
        solve(engine(X, n_jobs=n_jobs), 6, settings, np.random.default_rng(0))
        for engine, n_jobs in ((CpuEngine, 1), (shaking, 1), (shaking, 2))
    ]
    plain, shaken, threaded = (result.history.column("inertia") for result in results)
    assert (shaken[:6] <= plain[:6]).all()
    assert (shaken[:6] < plain[:6]).any()
    np.testing.assert_array_equal(shaken, threaded)
