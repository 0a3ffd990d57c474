"""The page in a real browser."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from reports import HOSTILE, data_of, fitted, samples

from evomeans.report import render_report

pytest_plugins = ["report_fixtures"]
pytestmark = pytest.mark.slow  # a browser takes seconds to start

ORDER = "[...document.querySelectorAll('#table tbody tr')].map(r => Number(r.dataset.cluster))"
SHOWN = (
    "[...document.querySelectorAll('#table tbody tr')].filter(r => r.checkVisibility())"
    ".map(r => Number(r.dataset.cluster))"
)
SORTED_BY = (
    "[...document.querySelectorAll('#table thead th')].filter(h => h.hasAttribute('aria-sort'))"
    ".map(h => [h.textContent, h.getAttribute('aria-sort')])"
)
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 27)"


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
        complaints, requests = tab.complaints(), tab.requests()
        tab.close()
        assert complaints == []
        assert len(requests) == 1


def header(number: int) -> str:
    return f"#table thead th:nth-child({number}) button"


def test_it_opens_in_silence_and_asks_for_nothing(show, page):
    """No message on the console, no request but for the file itself."""
    tab = show(page)
    assert tab.evaluate("document.title") == "clouds.csv · evomeans report"
    assert tab.evaluate("document.querySelectorAll('svg.chart').length") == 5


def test_a_click_sorts_and_a_second_one_turns_it_round(show, page, data):
    tab = show(page)
    sizes = [cluster["size"] for cluster in data["clusters"]]
    assert tab.evaluate(SORTED_BY) == [["Cluster", "ascending"]]
    tab.click(header(2))
    assert tab.evaluate(ORDER) == sorted(range(5), key=lambda i: -sizes[i])
    assert tab.evaluate(SORTED_BY) == [["Samples", "descending"]]
    tab.click(header(2))
    assert tab.evaluate(ORDER) == sorted(range(5), key=lambda i: sizes[i])
    assert tab.evaluate(SORTED_BY) == [["Samples", "ascending"]]
    tab.click(header(1))
    assert tab.evaluate(ORDER) == [4, 3, 2, 1, 0]


def test_the_keyboard_sorts(show, page, data):
    """Tab reaches the headers, Enter and the space bar sort; text sorts from A to Z."""
    tab = show(page)
    tab.evaluate(f"document.querySelector('{header(3)}').focus()")
    tab.press("Enter", 13, "\r")
    assert tab.evaluate(SORTED_BY) == [["Share", "descending"]]
    for _ in range(5):
        tab.press("Tab", 9)
    tab.press(" ", 32, " ")
    assert tab.evaluate(SORTED_BY) == [["Most telling columns", "ascending"]]
    first = [cluster["telling"][0]["name"] for cluster in data["clusters"]]
    order = tab.evaluate(ORDER)
    assert [first[i] for i in order] == sorted(first)


def test_the_filter_shows_what_fits(show, page, data):
    """Words are looked for in the columns, numbers are clusters; all gone, all come back."""
    tab = show(page)
    tab.evaluate("document.getElementById('filter').focus()")
    tab.call("Input.insertText", text="DEPTH")
    wanted = [
        i
        for i, cluster in enumerate(data["clusters"])
        if any(told["name"] == "depth" for told in cluster["telling"])
    ]
    assert tab.evaluate(SHOWN) == wanted
    told = tab.evaluate("document.getElementById('shown').textContent")
    assert told == f"{len(wanted)} of 5 clusters"

    def type_instead(text):
        tab.evaluate("document.getElementById('filter').select()")
        tab.press("Delete", 46)
        tab.call("Input.insertText", text=text)
        return tab.evaluate(SHOWN)

    assert type_instead("3") == [3]
    assert type_instead("nothing like it") == []
    assert type_instead(" ") == [0, 1, 2, 3, 4]


def test_hostile_names_do_not_run(show, hostile_page, hostile_data):
    """They are in the page as text, letter by letter, and nothing has happened."""
    tab = show(hostile_page)
    tab.evaluate("new Promise(done => setTimeout(done, 200))")
    assert tab.evaluate("typeof window.pwned") == "undefined"
    assert tab.evaluate("document.images.length") == 0
    assert tab.evaluate("document.scripts.length") == 1
    shown = tab.evaluate("document.body.textContent")
    for text in HOSTILE:
        assert text in shown
    assert tab.evaluate("document.querySelector('h1').textContent") == hostile_data["title"]


def test_the_policy_stops_what_escaping_would_miss(page, browser, tmp_path):
    """A script that somebody wrote into the file does not run, and the browser says why."""
    spoiled = page.replace("<main>", "<main><script>window.pwned = 1</script>")
    path = tmp_path / "spoiled.html"
    path.write_text(spoiled, encoding="utf-8")
    tab = browser.open(path)
    assert tab.evaluate("typeof window.pwned") == "undefined"
    assert "Content Security Policy" in "".join(tab.complaints())
    tab.close()


def test_light_and_dark(show, page):
    """As the system is, until the reader chooses; on paper always light."""
    for dark in (False, True):
        tab = show(page, dark=dark)
        assert tab.evaluate(BACKGROUND) == (DARK if dark else LIGHT)
        assert tab.evaluate("document.getElementById('theme').textContent") == (
            "Light" if dark else "Dark"
        )
        tab.click("#theme")
        assert tab.evaluate(BACKGROUND) == (LIGHT if dark else DARK)
        tab.prefer("dark", media="print")
        assert tab.evaluate(BACKGROUND) == LIGHT


def test_the_axis_of_the_convergence_can_be_time(show, page):
    visible = "[...document.querySelectorAll('[data-chart]')].filter(c => c.checkVisibility())"
    visible += ".map(c => c.dataset.chart)"
    tab = show(page)
    assert tab.evaluate(visible) == ["offspring"]
    tab.click("[data-axis=seconds]")
    assert tab.evaluate(visible) == ["seconds"]


def test_a_cluster_under_the_pointer_stands_out(show, page):
    tab = show(page)
    tab.hover("#table tbody tr:nth-child(2) td:last-child")
    marked = "[...new Set([...document.querySelectorAll('.on')].map(m => m.dataset.cluster))]"
    assert tab.evaluate(marked) == ["1"]
    tab.hover("h1")
    assert tab.evaluate(marked) == []


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_it_fits_every_screen(show, hostile_page, width):
    """Nothing makes the page wider than the window, is cut off, or squeezes names of settings."""
    tab = show(hostile_page, width=width)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    cut = f"""
        [...document.querySelectorAll('.chart:not([width]) text')]
        .map(t => [t.textContent, t.getBoundingClientRect()])
        .filter(([_, r]) => r.left < 0 || r.right > {width}).map(([text, _]) => text)
    """
    assert tab.evaluate(cut) == []
    heights = "[...document.querySelectorAll('.settings dt')].map(d => d.offsetHeight)"
    assert max(tab.evaluate(heights)) < 30


def test_texts_of_a_chart_do_not_overlap(show):
    """Ticks and names keep clear of each other on wide and narrow screens, with many clusters."""
    X = samples()
    page = render_report(data_of(fitted(30, X, max_offspring=2), X))
    overlaps = """
        [...document.querySelectorAll('svg.chart')].filter(s => s.checkVisibility()).flatMap(s => {
          const texts = [...s.querySelectorAll('text')].filter(t => t.checkVisibility());
          const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
          return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
            p.left < q.right && q.left < p.right && p.top + 3 < q.bottom && q.top + 3 < p.bottom
          ).map(([b]) => a + ' / ' + b));
        })
    """
    for width in (400, 1400):
        assert show(page, width=width).evaluate(overlaps) == []


def test_it_can_be_read_without_a_script(browser, page, tmp_path):
    """Controls that would do nothing are hidden, the rest is there."""
    path = tmp_path / "report.html"
    path.write_text(page[: page.rindex("<script>")], encoding="utf-8")
    tab = browser.open(path)
    assert tab.evaluate(SHOWN) == [0, 1, 2, 3, 4]
    hidden = "['#theme', '.switch', '.filter', '.copy'].map(s => "
    hidden += "document.querySelector(s).checkVisibility())"
    assert tab.evaluate(hidden) == [False] * 4
    tab.close()


@pytest.mark.parametrize("n_clusters", [5, 10])
def test_it_prints_to_two_pages(show, tmp_path, n_clusters):
    X = samples()
    page = render_report(data_of(fitted(n_clusters, X), X, ["height", "width", "depth", "cost"]))
    show(page).pdf(tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert re.search(rb"/Type /Pages\s.*?/Count (\d+)", content, re.DOTALL)[1] in (b"1", b"2")


def test_the_labels_are_downloaded(show, model, page, tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    tab = show(page)
    tab.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.click("[data-download]")
    file, limit = folder / "labels.csv", time.monotonic() + 20
    while not file.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    header, *rows = file.read_text().splitlines()
    assert header == "index,cluster"
    assert rows == [f"{i},{label}" for i, label in enumerate(model.labels_)]


def test_the_centres_sort_by_a_column(show, page, data):
    tab = show(page)
    profiles = data["profiles"]
    tab.click("#profile thead th:nth-child(2) button")
    order = (
        "[...document.querySelectorAll('#profile tbody tr')].map(r => Number(r.dataset.cluster))"
    )
    first = [row[0] for row in profiles["centers"]]
    expected = [profiles["clusters"][i] for i in np.argsort([-value for value in first])]
    assert tab.evaluate(order) == expected
    # The mean of all samples stays below.
    last = "document.querySelector('#profile tfoot').textContent.trim().slice(0, 3)"
    assert tab.evaluate(last) == "all"


def test_every_cluster_is_described_in_words(show, page, data):
    tab = show(page)
    lines = tab.evaluate("[...document.querySelectorAll('.words li')].map(l => l.innerText)")
    for line, cluster in zip(lines, data["clusters"], strict=True):
        assert cluster["words"] in line
    tab.hover(".words li:nth-child(3)")
    marked = "[...new Set([...document.querySelectorAll('svg .on')].map(m => m.dataset.cluster))]"
    assert tab.evaluate(marked) == ["2"]
