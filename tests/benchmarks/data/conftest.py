"""No test of the data needs, or finds, the user's own data and cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

GIVEN = os.environ.get("EVOMEANS_DATA")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """Give every test an empty cache and no folder of data."""
    monkeypatch.delenv("EVOMEANS_DATA", raising=False)
    monkeypatch.setenv("EVOMEANS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def given_data(monkeypatch) -> Path:
    """Return the folder EVOMEANS_DATA of whoever runs the tests, if it is set."""
    if not GIVEN:
        pytest.skip("EVOMEANS_DATA is not set: the true data sets are not at hand")
    monkeypatch.setenv("EVOMEANS_DATA", GIVEN)
    return Path(GIVEN)
