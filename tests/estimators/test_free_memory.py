"""Memory maps that do not fit into memory are left to Dask."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans import HGMeans
from evomeans.engines import free_memory as memory
from evomeans.engines import is_dask
from evomeans.engines.free_memory import free_memory
from evomeans.estimators import validation
from evomeans.estimators.validation import exceeds_memory


@pytest.fixture
def mapped(tmp_path) -> np.memmap:
    path = tmp_path / "X.npy"
    np.save(path, np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32))
    return np.load(path, mmap_mode="r")


def test_free_memory_is_between_nothing_and_all_there_is() -> None:
    free = free_memory()
    assert free is None or 0 < free < 2**50


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert free_memory() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() != 600


def test_pages_of_files_are_as_good_as_free(tmp_path, monkeypatch) -> None:
    """A container that has read a large file is not full."""
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("990\n")
    stat = "anon 90\nfile 900\ninactive_file 500\nactive_file 300\nshmem 100\n"
    (tmp_path / "memory.stat").write_text(stat)
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert free_memory() == 810


def test_only_memory_maps_are_asked(mapped, monkeypatch) -> None:
    monkeypatch.setattr(validation, "free_memory", lambda: 1)
    assert exceeds_memory(mapped)
    assert not exceeds_memory(np.asarray(mapped).copy())
    monkeypatch.setattr(validation, "free_memory", lambda: None)
    assert not exceeds_memory(mapped)


def test_auto_takes_dask_where_memory_does_not_suffice(mapped, monkeypatch) -> None:
    pytest.importorskip("dask.array")
    search = {"random_state": 0, "max_offspring": 20}
    in_memory = HGMeans(3, **search).fit(mapped)
    monkeypatch.setattr(validation, "free_memory", lambda: 1)
    in_file = HGMeans(3, **search).fit(mapped)
    assert not is_dask(in_memory.labels_)
    assert is_dask(in_file.labels_)
    assert in_file.inertia_ == pytest.approx(in_memory.inertia_, rel=1e-3)
