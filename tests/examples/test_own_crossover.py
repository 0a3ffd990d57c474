"""The operator that the gallery shows works as it says."""

from __future__ import annotations

import ast
import re
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from evomeans import HGMeans, load

SCRIPT = Path(__file__).parents[2] / "examples" / "gallery" / "inside" / "own_crossover.py"


def _definitions(path: Path) -> dict[str, object]:
    """Run the imports and definitions of a script, and leave out what it computes and draws."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    kept = [
        node
        for node in tree.body
        if isinstance(node, kinds)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PLANES")
    ]
    names: dict[str, object] = {}
    exec(compile(ast.Module(kept, []), str(path), "exec"), names)
    return names


pytest.importorskip("matplotlib")
PLANES, plane_crossover = itemgetter("PLANES", "plane_crossover")(_definitions(SCRIPT))


def test_a_crossover_is_passed_in_and_named_in_the_history() -> None:
    X = load_iris().data
    model = HGMeans(6, strategy=PLANES, max_offspring=60, random_state=0).fit(X)
    made_by = set(model.history_.column("made_by").tolist())
    assert made_by == {"random samples", "plane", "squared matching"}
    assert model.missing_operators_ == ()
    assert clone(model).strategy == PLANES


def test_its_children_have_centres_of_both_parents() -> None:
    """Those of one parent on one side of a plane, those of the other on the other side."""
    X = load_iris().data
    model = HGMeans(6, strategy="paper", max_offspring=1, random_state=0).fit(X)
    first, second = model.population_[0], model.population_[-1]
    known = {row.tobytes() for one in (first, second) for row in one.centers}
    children = [plane_crossover(first, second, FakeBreeding(seed)) for seed in range(50)]
    made = [child for child in children if child is not None]
    assert made
    for child in made:
        assert child.centers.shape == first.centers.shape
        assert {row.tobytes() for row in child.centers} <= known
        assert child.parent is first


class FakeBreeding:
    """Only the random numbers are used."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)


def test_a_saved_model_forgets_the_functions(tmp_path) -> None:
    """The clustering is what is kept; the loaded model has the default strategy."""
    X = load_iris().data
    model = HGMeans(3, strategy=PLANES, max_offspring=5, random_state=0).fit(X)
    name = re.escape(repr(PLANES.name))
    with pytest.warns(UserWarning, match=f"The strategy {name} is not stored.* default, 'deep'"):
        model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert twin.strategy == "deep"
    assert twin.predict(X) == pytest.approx(model.labels_)
    assert twin.history_ == model.history_
