"""Data of reports, and a browser to look at the pages."""

from __future__ import annotations

import copy
import os

import pytest
from browser import find_browser, open_browser
from reports import HOSTILE, data_of, fitted, samples

from evomeans.report import render_report


@pytest.fixture(scope="session")
def model():
    return fitted()


@pytest.fixture(scope="session")
def _data(model):
    return data_of(model, samples(), ["height", "width", "depth", "cost"])


@pytest.fixture
def data(_data):
    """Give each test data of its own to change."""
    return copy.deepcopy(_data)


@pytest.fixture(scope="session")
def hostile_data(model):
    """Every text in it wants to be more than a text."""
    more = {"settings": {name: name for name in HOSTILE}, "command": HOSTILE[1]}
    return data_of(model, samples(), HOSTILE, "</title>" + HOSTILE[0], **more)


@pytest.fixture(scope="session")
def page(_data):
    return render_report(_data)


@pytest.fixture(scope="session")
def hostile_page(hostile_data):
    return render_report(hostile_data)


@pytest.fixture(scope="session")
def browser():
    program = find_browser()
    if program is None:
        reason = "no chromium here; on Debian it is installed by: apt-get install chromium"
        # Where the tests must not be left out, as in .ci/run.
        if os.environ.get("EVOMEANS_BROWSER_TESTS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with open_browser(program) as running:
        yield running


@pytest.fixture
def show(browser, tmp_path):
    """Open a page; whatever the test did, the console must have stayed silent."""
    tabs = []

    def open_page(page, **how):
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8")
        tabs.append(browser.open(path, **how))
        return tabs[-1]

    yield open_page
    for tab in tabs:
        # Names of clusters must not reach the next test.
        tab.evaluate("try { localStorage.clear(); } catch {}")
        complaints, requests = tab.complaints(), tab.requests()
        tab.close()
        assert complaints == []
        assert len(requests) == 1
