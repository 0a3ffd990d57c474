"""A small table with an obvious clustering."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evomeans.cli.tables.table import Table, TableRequest

FIT = ("fit", "blobs.csv", "-k", 3, "--id", "name", "--exclude", "w", "--seed", 1, "--fast")
"""A fit of blobs.csv."""


def names(folder: str | Path = ".") -> set[str]:
    """Return what is in a folder."""
    return {path.name for path in Path(folder).iterdir()}


def contents(folder: str | Path = ".") -> dict[Path, bytes]:
    """Return the files below a folder and what they hold."""
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def read_table(*args, **more) -> Table:
    """Read a table into memory."""
    return TableRequest(*args, **more).table()


def write_blobs(path: Path, seed: int = 0) -> np.ndarray:
    """Write 60 rows around (0, 0), (10, 0) and (0, 10), named r1, r2, …, with weights."""
    rng = np.random.default_rng(seed)
    means = np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], 20, axis=0)
    X = np.round(means + rng.normal(size=(60, 2)), 3)
    lines = [f"r{i},{a},{b},{1 + i % 2}" for i, (a, b) in enumerate(X, 1)]
    path.write_text("name,größe (m),b,w\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return X
