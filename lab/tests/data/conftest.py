"""No test of the data needs, or finds, the user's own data and downloads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

GIVEN = os.environ.get("EVOMEANS_DATA")


@pytest.fixture(autouse=True)
def downloads(monkeypatch, tmp_path) -> Path:
    """Give every test no downloads and no folder of data."""
    monkeypatch.delenv("EVOMEANS_DATA", raising=False)
    monkeypatch.setenv("EVOMEANS_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "downloads"


@pytest.fixture
def given_data(monkeypatch) -> Path:
    """Return the folder EVOMEANS_DATA that the tests were started with, if it is set."""
    if not GIVEN:
        pytest.skip("EVOMEANS_DATA is not set: the true data sets are not available")
    monkeypatch.setenv("EVOMEANS_DATA", GIVEN)
    return Path(GIVEN)
