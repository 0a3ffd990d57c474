"""Damaged and hostile model files and checkpoints: refused, or used without harm.

A file is written by a real fit, some of its members are replaced, and it is used: a checkpoint is
continued, a model predicts and is fitted again from its population.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import evomeans
from evomeans import (
    CheckpointError,
    ConstrainedHGMeans,
    HGMeans,
    HGMeansPath,
    ModelFileError,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from tests.fuzz.tampering import check_possible, damage, tamper

X = np.random.default_rng(0).normal(size=(24, 3))
LINKS: dict[str, Any] = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 4), (5, 6)]}
OFFSPRING = 40

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (HGMeans(3), {}),
    "paper": (HGMeans(3, strategy="paper"), {}),
    "reference": (HGMeans(3, engine="reference"), {}),
    "sampled": (HGMeans(2, subsample=8), {}),
    "spherical": (SphericalHGMeans(3), {}),
    "trimmed": (TrimmedHGMeans(3, n_outliers=2), {}),
    "balanced": (ConstrainedHGMeans(3, size_max="balanced"), {}),
    "linked": (ConstrainedHGMeans(3, size_max=12, size_min=2), LINKS),
    "path": (HGMeansPath((2, 4)), {}),
}


def case(rng: np.random.Generator) -> str:
    """Change a file and use it; raise if that does anything but work or refuse."""
    name = str(rng.choice(list(KINDS)))
    is_model = name != "path" and rng.random() < 0.4
    kind = "model" if is_model else "path checkpoint" if name == "path" else "checkpoint"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "file"
        data = written(name, is_model, int(rng.integers(3)))
        path.write_bytes(data)
        if rng.random() < 0.1:
            damage(path, rng)
        else:
            for _ in range(int(rng.integers(1, 4))):
                tamper(path, rng)
        try:
            use_model(path, name, rng) if is_model else continue_search(path, name)
        except (CheckpointError, ModelFileError):
            return f"{kind} refused"
    return f"{kind} used"


@cache
def written(name: str, is_model: bool, variant: int) -> bytes:
    """Return the bytes of a file: of a model, or of a search that was stopped early or later."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        model, links = KINDS[name]
        stop = (1, 6, 25)[variant] if name != "path" else (2, 4, 6)[variant]
        made = iter(range(1, stop + 1))
        observer: Callable[[Any], bool] = lambda record: next(made, stop) == stop  # noqa: E731
        model = sklearn.clone(model).set_params(random_state=variant, observers=observer)
        if not is_model:
            model.set_params(checkpoint=path)
        model.fit(X, **links)
        if is_model:
            model.save(path)
        return path.read_bytes()


def continue_search(path: Path, name: str) -> None:
    model, links = KINDS[name]
    model = sklearn.clone(model).set_params(checkpoint=path)
    if name != "path":
        model.set_params(max_offspring=OFFSPRING)
    model.fit(X, **links)
    if name == "path":
        assert all(np.isfinite(model.inertias_))
        model = model.at(3)
    check_answer(model, name)


def use_model(path: Path, name: str, rng: np.random.Generator) -> None:
    model = evomeans.load(path)
    k = len(model.cluster_centers_)
    labels = model.predict(X)
    assert labels.shape == (24,)
    assert labels.max() < k
    assert model.transform(X).shape == (24, k)
    assert not np.isnan(model.score(X))
    if isinstance(model, ConstrainedHGMeans):
        fill_sizes(model)
    if rng.random() < 0.5:
        return
    # The parameters are the file's own, within limits of time.
    model.set_params(warm_start=True, max_offspring=10, max_time=5.0, n_jobs=1, verbose=0)
    if max(model.min_population, model.max_population) > 100:
        return
    try:
        model.fit(X)
    except (TypeError, ValueError) as error:
        # Parameters of the file that do not suit these samples have to say so.
        if not any(name in str(error) for name in model.get_params()):
            raise
        return
    check_answer(model, name if name != "linked" else "")


def fill_sizes(model: Any) -> None:
    try:
        labels = model.predict(X, fill_sizes=True)
    except (TypeError, ValueError) as error:
        if "size_m" not in str(error):
            raise
        return
    assert labels.min() >= 0


def check_answer(model: Any, name: str) -> None:
    """Compare an answer with what can be told of it without the search."""
    labels = model.labels_
    check_possible(model, 24)
    if type(model) in (HGMeans, ConstrainedHGMeans):
        squares = ((X - model.cluster_centers_[labels]) ** 2).sum()
        np.testing.assert_allclose(model.inertia_, squares, rtol=1e-6)
    if name == "balanced":
        assert np.bincount(labels, minlength=3).tolist() == [8, 8, 8]
    if name == "linked":
        assert all(labels[a] == labels[b] for a, b in LINKS["must_link"])
        assert all(labels[a] != labels[b] for a, b in LINKS["cannot_link"])
        assert np.bincount(labels, minlength=3).min() >= 2
