"""Damaged and hostile model files and checkpoints: refused, or used without harm.

A file is written by a real fit, some of its members are replaced, and it is used: a checkpoint is
continued, a model predicts and is fitted again from its population.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
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
    KernelHGMeans,
    ModelFileError,
    SphericalHGMeans,
    TrimmedHGMeans,
)
from evomeans.estimators import persistence
from evomeans.storage import checkpoint
from evomeans.storage.archive import Archive, read_archive, write_archive
from tests.fuzz import running

NAME = "tests.fuzz.files"
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
    "kernel": (KernelHGMeans(3), {}),
    "path": (HGMeansPath((2, 4)), {}),
}
FLOATS = (
    *(np.nan, np.inf, -np.inf, 1e308, -1e308, 1e160, 1e150, 1.01e6, -1e6, 1e30, 1e-308, -0.0),
    *(0.0, -1.0, 2.0, 0.5),
)
INTEGERS = (-(2**63), -(2**31), -2, -1, 0, 1, 3, 24, 2**15, 2**31 - 1, 2**40, 2**53, 2**63 - 1)
JSON: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 99, 2**31, 2**53, 2**64, 10**400, -1e308, 1e308, 1e-308, 0.5),
    *("", "x", "\x1b[31m", [], [0], [[0, 1]], [[0, 1, 0, 0]], [[0, 0, 0, 0]], {}, {"a": 1}),
)


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
        change = damage if rng.random() < 0.1 else replace_members
        change(path, rng)
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


def damage(path: Path, rng: np.random.Generator) -> None:
    """Flip bits, cut a file off, or fill a part of it with zeros."""
    data = bytearray(path.read_bytes())
    place = int(rng.integers(len(data)))
    match rng.integers(3):
        case 0:
            data[place] ^= 1 << int(rng.integers(8))
        case 1:
            del data[place:]
        case _:
            data[place : place + 512] = bytes(len(data[place : place + 512]))
    path.write_bytes(data)


def replace_members(path: Path, rng: np.random.Generator) -> None:
    """Replace values, types, shapes and fields of a file; it stays a valid archive."""
    archive = read_any(path)
    kind, version = archive.meta.pop("format"), archive.meta.pop("version")
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.7:
            replace_array(archive.arrays, rng)
        else:
            replace_field(archive.meta, rng)
    write_archive(path, kind, version, archive.meta, archive.arrays)


def read_any(path: Path) -> Archive:
    for kind, version in (
        (checkpoint.FORMAT, checkpoint.VERSION),
        (checkpoint.PATH_FORMAT, checkpoint.PATH_VERSION),
        (persistence.FORMAT, persistence.VERSION),
    ):
        try:
            return read_archive(path, kind, version)
        except ValueError:
            continue
    raise AssertionError("not one of our files")


def replace_array(arrays: dict[str, Any], rng: np.random.Generator) -> None:
    name = str(rng.choice(list(arrays)))
    values = arrays[name].copy()
    match rng.integers(10):
        case 0:
            values = values.astype(rng.choice(["f8", "f4", "i8", "i4", "?"]))
        case 1:
            values = values[: len(values) // 2]
        case 2:
            values = np.concatenate([values, values])
        case 3:
            values = values.reshape(-1) if rng.random() < 0.5 else values[..., None][:, :2]
        case 4:
            values = arrays[str(rng.choice(list(arrays)))]
        case 5:
            values = rng.permutation(values)
        case _ if values.size:
            hostile = hostile_value(values.dtype, rng)
            if rng.random() < 0.3:
                values[...] = hostile
            else:
                values.reshape(-1)[rng.integers(values.size)] = hostile
    if 1 <= values.ndim <= 3:
        arrays[name] = values


def hostile_value(dtype: Any, rng: np.random.Generator) -> Any:
    if dtype.kind == "f":
        return FLOATS[rng.integers(len(FLOATS))]
    if dtype.kind == "b":
        return bool(rng.random() < 0.5)
    limits = np.iinfo(dtype)
    return min(max(INTEGERS[rng.integers(len(INTEGERS))], limits.min), limits.max)


def replace_field(meta: dict[str, Any], rng: np.random.Generator) -> None:
    """Replace a field of the JSON object, or one within it."""
    place: Any = meta
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[rng.integers(len(keys))]
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner and rng.random() < 0.7):
            place[key] = JSON[rng.integers(len(JSON))]
            return
        place = inner


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
    if name == "kernel" or rng.random() < 0.5:
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
    k, labels = model.n_clusters, model.labels_
    assert labels.shape == (24,)
    assert labels.min() >= (-1 if isinstance(model, TrimmedHGMeans) else 0)
    assert labels.max() < k
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)
    if type(model) in (HGMeans, ConstrainedHGMeans):
        squares = ((X - model.cluster_centers_[labels]) ** 2).sum()
        np.testing.assert_allclose(model.inertia_, squares, rtol=1e-6)
    if name == "balanced":
        assert np.bincount(labels, minlength=3).tolist() == [8, 8, 8]
    if name == "linked":
        assert all(labels[a] == labels[b] for a, b in LINKS["must_link"])
        assert all(labels[a] != labels[b] for a, b in LINKS["cannot_link"])
        assert np.bincount(labels, minlength=3).min() >= 2


run = partial(running.run, NAME)

if __name__ == "__main__":
    sys.exit(running.main(NAME))
