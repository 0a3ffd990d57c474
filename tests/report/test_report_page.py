"""The page as text: what it says, and that the data can add nothing but text."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from reports import HOSTILE, data_of, fitted, samples

from evomeans.plotting.axes import luminance
from evomeans.report import render_report
from evomeans.report.page import COLORS, VARIABLES


class Page(HTMLParser):
    """All elements, attributes and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "link", "img", "br"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        assert self.inside.pop() == tag

    def handle_data(self, data):
        self.texts.setdefault(self.inside[-1] if self.inside else "", []).append(data)

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def test_it_needs_nothing_else(page):
    """No address, no link, no picture from elsewhere; elements close in order."""
    assert Page(page).inside == []
    assert not re.search(r"(?:https?:)?//\w|\burl\((?!#)|@import", page)
    for _, attributes in Page(page).elements:
        assert attributes.get("href", "#").startswith("#")
        assert not {"src", "action", "srcset"} & attributes.keys()


def test_only_its_own_script_and_style_are_allowed(page):
    """The hashes in the policy are those of the only script and the only style."""
    page = Page(page)
    policy = next(m["content"] for m in page.named("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    script = page.texts["script"][-1]
    for kind, text in (("style", "".join(page.texts["style"])), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert len(page.named("script")) == len(page.named("style")) == 1


def test_hostile_texts_are_shown_and_are_nothing_else(hostile_data, hostile_page, page):
    """The page has the elements and the attribute names of a harmless one, and every text."""
    hostile, harmless = Page(hostile_page), Page(page)
    assert {name for name, _ in hostile.elements} == {name for name, _ in harmless.elements}
    used = {key for _, attributes in hostile.elements for key in attributes}
    assert used == {key for _, attributes in harmless.elements for key in attributes}
    assert not any(key.startswith("on") or key == "style" for key in used)
    assert len(hostile.named("script")) == 1
    shown = "".join(text for texts in hostile.texts.values() for text in texts)
    for text in [*HOSTILE, hostile_data["title"]]:
        assert text in shown
    assert hostile.texts["title"][0] == hostile_data["title"] + " · evomeans report"


def test_what_the_reader_wants_to_know(page, data):
    texts = Page(page).texts.values()
    text = " ".join(" ".join(part for parts in texts for part in parts).split())
    for part in (
        *(cluster["words"] for cluster in data["clusters"]),
        "clouds.csv",
        "200 samples with 4 columns in 5 clusters",
        "The search ended because",
        "evomeans fit 'clouds.csv' -k 5",
        "from evomeans import HGMeans",
        "Most telling columns",
        "max time",
    ):
        assert part in text


FLAT = np.repeat([[0.0, 0.0], [9.0, 9.0]], 9, axis=0) + np.arange(18)[:, None] % 2


@pytest.mark.parametrize(
    ("X", "k", "sentence"),
    [(samples()[:, :1], 3, "proven to be optimal"), (FLAT, 2, "Every solution was equally good")],
)
def test_a_sentence_replaces_a_convergence_that_would_say_nothing(X, k, sentence):
    page = render_report(data_of(fitted(k, X), X))
    assert sentence in page
    assert 'data-chart="offspring"' not in page


def test_how_often_the_best_was_found_again_and_how_certain_it_is(data):
    data["run"].update(stop_reason="no_improvement", n_rediscoveries=2, certainty=0.957)
    page = render_report(data)
    assert "<dt>Best found again</dt><dd>2 times</dd>" in page
    assert "<dt>Certainty</dt><dd>95 %</dd>" in page
    assert "The search ended because 3 independent starts led to the same best" in page


def test_charts_have_the_colours_of_the_page(page):
    """Every colour is a variable of the page: nothing stays dark on dark."""
    assert len(VARIABLES) == len(COLORS)
    charts = [
        ElementTree.fromstring(chart)
        for chart in re.findall('<svg [^>]*"chart".*?</svg>', page, re.DOTALL)
    ]
    assert len(charts) == 5
    for chart in charts:
        used = {element.get(name) for element in chart.iter() for name in ("fill", "stroke")}
        assert all(color.startswith("var(--") for color in used - {None, "none"})
        badges = [*chart.iterfind(".//g[@class='c']//text")]
        for text in chart.iter("text"):
            # Those without a colour are black, on the light colours of clusters.
            assert text.get("fill") or text in badges


def test_a_page_is_a_function_of_its_data(data, page):
    """Neither the time nor the settings of matplotlib change it."""
    with matplotlib.rc_context({"font.size": 30, "text.color": "red", "axes.grid": True}):
        assert render_report(data) == page


@pytest.mark.parametrize("name", ["身長", "a\x00b\nc", "$\\frac{1}$", "x" * 5000])
def test_odd_names_can_be_drawn(model, name):
    """Letters that the fonts of matplotlib lack, control characters, mathematics, length."""
    page = render_report(data_of(model, samples(), [name, "b", "c", "d"]))
    assert len(Page(page).named("svg")) == 5 + 2 * 5


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_without_a_package_the_extra_is_named(data, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install '.\[report\]'"):
        render_report(data)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast(theme):
    """Text has the contrast that WCAG asks for, and clusters stand out from the page."""

    def contrast(first: str, second: str) -> float:
        a, b = sorted([luminance(first), luminance(second)], reverse=True)
        return (a + 0.05) / (b + 0.05)

    colors = {name: pair[theme] for name, pair in COLORS.items()}
    for ink in ("ink", "muted"):
        for ground in ("page", "card"):
            assert contrast(colors[ink], colors[ground]) >= 4.5
    assert contrast(colors["c0"], colors["page"]) >= 3
    for i in range(8):
        assert contrast(colors[f"c{i}"], colors["page"]) >= 1.5
