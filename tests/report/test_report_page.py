"""The page as text: what stands in it, and that nothing in it comes from the data but text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser

import pytest
from reports import HOSTILE, data_of, fitted, samples

from evomeans.plotting.palette import OKABE_ITO, luminance
from evomeans.report import render_report
from evomeans.report.svg import Scale, round_ticks, tag, tick_text, words
from evomeans.report.theme import CLUSTERS_DARK, INKS

pytest_plugins = ["report_fixtures"]


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


def test_elements_close_in_order(data):
    assert Page(render_report(data)).inside == []


def test_it_needs_nothing_else(data):
    """No address, no link, no picture from elsewhere."""
    page = render_report(data)
    assert not re.search(r"(?:https?:)?//\w|\burl\(|@import", page)
    for _, attributes in Page(page).elements:
        assert not {"src", "href", "action", "srcset"} & attributes.keys()


def test_only_its_own_script_and_style_are_allowed(data):
    """The hashes in the policy are those of the only script and the only style."""
    page = Page(render_report(data))
    policy = next(m["content"] for m in page.named("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    script = page.texts["script"][-1]
    for kind, text in (("style", "".join(page.texts["style"])), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert [s.get("type") for s in page.named("script")] == ["application/json", None]


def test_hostile_texts_are_shown_and_are_nothing_else(hostile_data, data):
    """The page has the elements and the attribute names of a harmless one, and every text."""
    hostile, harmless = Page(render_report(hostile_data)), Page(render_report(data))
    assert {name for name, _ in hostile.elements} == {name for name, _ in harmless.elements}
    used = {key for _, attributes in hostile.elements for key in attributes}
    assert used == {key for _, attributes in harmless.elements for key in attributes}
    assert not any(key.startswith("on") or key == "style" for key in used)
    assert len(hostile.named("script")) == 2
    shown = "".join(text for texts in hostile.texts.values() for text in texts)
    for text in [*HOSTILE, hostile_data["title"]]:
        assert text in shown
    assert hostile.texts["title"][0] == hostile_data["title"] + " · evomeans report"


def test_json_in_the_page_cannot_end_its_element(hostile_data):
    page = render_report(hostile_data)
    block = re.search(r'<script type="application/json" id="cells">(.*?)</script>', page)[1]
    assert not set("<>&\u2028\u2029") & set(block)
    assert sorted(json.loads(block)["columns"]) == sorted(HOSTILE)


def test_what_the_reader_wants_to_know(data):
    texts = Page(render_report(data)).texts.values()
    text = " ".join(" ".join(part for parts in texts for part in parts).split())
    for part in (
        "clouds.csv",
        "200 samples with 4 columns, parted into 5 clusters",
        "The search ended because",
        "evomeans fit 'clouds.csv' -k 5",
        "from evomeans import HGMeans",
        "Most telling columns",
        "max time",
    ):
        assert part in text


def test_without_a_search_there_is_no_convergence():
    x = samples()[:, :1]
    page = render_report(data_of(fitted(3, x), x))
    assert "proven to be optimal" in page
    assert 'data-chart="offspring"' not in page


def test_without_a_command_there_is_none(model):
    page = render_report(data_of(model, samples(), command=""))
    assert "At a terminal" not in page


def test_a_page_is_a_function_of_its_data(data):
    assert render_report(data) == render_report(data)


def test_without_jinja2_the_extra_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "evomeans\[report\]"'):
        render_report(data)


# Pieces


def test_everything_in_an_element_is_escaped():
    made = tag(
        "text", words("<a> & b"), class_='x" onload="y', data_cluster="1", width=None, x=1.04
    )
    assert made == (
        '<text class="x&quot; onload=&quot;y" data-cluster="1" x="1">&lt;a&gt; &amp; b</text>'
    )


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (-3, 4, [-2, 0, 2, 4]),
        (0, 0.07, [0, 0.02, 0.04, 0.06]),
        (5, 5, []),
        (-1.7e308, 1.7e308, [-1e308, -5e307, 0, 5e307, 1e308]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    got = round_ticks(low, high)
    if high > 1e300:
        assert 3 <= len(got) <= 10
    else:
        assert got == pytest.approx(ticks)


def test_tick_texts():
    assert tick_text(0.5, 0.5) == "0.5"
    assert tick_text(1500, 500) == "1,500"
    assert tick_text(-20, 10) == "−20"
    assert tick_text(2e9, 1e9) == "2e9"


def test_scales():
    assert Scale(0, 10, 100, 200)(5) == 150
    assert Scale(0.01, 100, 0, 4, log=True)(1) == pytest.approx(2)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast(theme):
    """Text has the contrast that WCAG asks for, and clusters stand out from the page."""

    def contrast(first: str, second: str) -> float:
        a, b = sorted([luminance(first), luminance(second)], reverse=True)
        return (a + 0.05) / (b + 0.05)

    colors = {name: pair[theme] for name, pair in INKS.items()}
    for ink in ("ink", "muted"):
        for ground in ("page", "card"):
            assert contrast(colors[ink], colors[ground]) >= 4.5
    assert contrast(colors["accent"], colors["page"]) >= 3
    for cluster in (OKABE_ITO, CLUSTERS_DARK)[theme]:
        assert contrast(cluster, colors["page"]) >= 1.5
