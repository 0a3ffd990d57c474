"""The report of a path: its data, its page, and another k in a real browser."""

from __future__ import annotations

import json

import pytest
from reports import HOSTILE, samples

from evomeans import HGMeansPath
from evomeans.report import render_report, report_data


def shown(tab):
    """Return the numbers of clusters whose model is visible."""
    return tab.all(".model", "Number(e.dataset.k)", "e.checkVisibility()")


def background(tab):
    return tab.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.fixture(scope="module")
def path():
    return HGMeansPath((2, 6), random_state=0).fit(samples())


@pytest.fixture(scope="module")
def path_data(path):
    names = ["height", "width", "depth", "cost"]
    command = "evomeans path clouds.csv -k 2:6"
    data = report_data(path, samples(), feature_names=names, title="clouds.csv", command=command)
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.fixture(scope="module")
def page(path_data):
    return render_report(path_data)


def test_the_data_has_every_k(path, path_data):
    assert list(path_data["models"]) == ["2", "3", "4", "5", "6"]
    for k, model in path_data["models"].items():
        assert model["inertia"] == path.at(int(k)).inertia_
        assert sum(cluster["size"] for cluster in model["clusters"]) == 200
    assert path_data["curves"]["best_k"] == path.best_k_


def test_the_page_suggests_what_the_criteria_do(path, page):
    assert "clouds.csv" in page
    for k in path.suggestions_.values():
        said = "k = 6 (end of the range)" if k == 6 else f"k = {k}"
        assert k is None or f"{said}</td>" in page
    assert "the choice of <em>Simplified silhouette</em>" in page
    trusted = f"Trust k = {path.best_k_} (Simplified silhouette) first"
    assert trusted in page.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.slow
def test_choosing_another_k_shows_its_map_sizes_and_centres(show, path, page):
    tab = show(page)
    assert shown(tab) == [path.best_k_]
    for k in (6, 3):
        tab.click(f"[data-choose='{k}']")
        assert shown(tab) == [k]
        assert len(tab.all(".model:not([hidden]) tbody tr")) == k
        assert len(tab.all(".model:not([hidden]) svg.chart")) == 3
        assert tab.all("[data-choose][aria-pressed=true]") == [str(k)]
    tab.press("ArrowRight", 39)
    assert shown(tab) == [4]
    before = background(tab)
    tab.click("#theme")
    assert background(tab) != before


@pytest.mark.slow
def test_it_fits_on_a_phone(show, page):
    """Pictures of many panels keep a size in which they can be read, and scroll."""
    tab = show(page, width=390, height=800)
    assert tab.all(".wide .chart", "e.clientWidth") == [820, 820]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(tab.all("#suggestions td", "e.checkVisibility()"))


@pytest.mark.slow
def test_texts_stay_texts(show, path):
    title, command = HOSTILE[:2]
    more = {"settings": {name: name for name in HOSTILE}, "title": title, "command": command}
    tab = show(render_report(report_data(path, samples(), feature_names=HOSTILE, **more)))
    assert tab.evaluate("window.pwned") is None
    assert tab.one("h1") == title


def test_damaged_and_foreign_data_are_refused(path, path_data):
    with pytest.raises(ValueError, match="has version 99"):
        render_report({**path_data, "version": 99})
    with pytest.raises(ValueError, match="No report can be made from this data"):
        render_report({**path_data, "curves": {}})
    with pytest.raises(ValueError, match="fitted to 200 samples, X has 5"):
        report_data(path, samples()[:5])
