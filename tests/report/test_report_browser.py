"""The page in a real browser."""

from __future__ import annotations

import csv
import io
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
    spoiled = page.replace("<h1>", "<script>window.pwned = 1</script><h1>")
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
    hidden = "['#theme', '.switch', '.filter', '.copy', '.naming', '#legend'].map(s => "
    hidden += "document.querySelector(s).checkVisibility())"
    assert tab.evaluate(hidden) == [False] * 6
    tab.close()


@pytest.mark.parametrize("n_clusters", [5, 10])
def test_it_prints_to_two_pages(show, tmp_path, n_clusters):
    X = samples()
    page = render_report(data_of(fitted(n_clusters, X), X, ["height", "width", "depth", "cost"]))
    show(page).pdf(tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert re.search(rb"/Type /Pages\s.*?/Count (\d+)", content, re.DOTALL)[1] in (b"1", b"2")


@pytest.fixture
def download(tmp_path):
    """Click the button of a page, and return the file that the browser has written."""
    folder = tmp_path / "downloads"
    folder.mkdir()

    def from_tab(tab):
        tab.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        tab.click("[data-download]")
        file, limit = folder / "labels.csv", time.monotonic() + 20
        while not file.exists() and time.monotonic() < limit:
            time.sleep(0.05)
        return file.read_text(encoding="utf-8")

    return from_tab


def test_the_labels_are_downloaded(show, download, model, page):
    header, *rows = download(show(page)).splitlines()
    assert header == "index,cluster"
    assert rows == [f"{i},{label}" for i, label in enumerate(model.labels_)]


def type_name(tab, cluster, name, end=("Enter", 13, "\r"), where=".words"):
    """Type the name of a cluster into one of its fields, instead of what is there."""
    field = f"document.querySelector('{where} [data-cluster=\"{cluster}\"] .name')"
    tab.evaluate(f"{field}.focus(), {field}.select()")
    tab.press("Delete", 46)
    tab.call("Input.insertText", text=name)
    if end:
        tab.press(*end)


NAMES = (
    "[...document.querySelectorAll('.words .name, #table tbody tr .name')].map(f => f.value)",
    "[...document.querySelectorAll('#profile tbody .named')].map(s => s.textContent)",
)
SAID = "document.getElementById('kept').textContent"


def test_names_of_clusters_are_shown_wherever_a_cluster_is(show, page, data):
    """In both lists of fields, in the tables, in the legend, in the pictures and in the filter."""
    tab = show(page)
    type_name(tab, 1, "loyal")
    type_name(tab, 3, " new ones ", where="#table")
    names = ["", "loyal", "", "new ones", ""]
    fields, spans = map(tab.evaluate, NAMES)
    assert (fields, spans) == (names * 2, names)
    first = "[...document.querySelectorAll('#samples tbody th')].map(h => h.innerText.trim())"
    shown = [
        f"{row['cluster']} {names[row['cluster']]}".strip() for row in data["examples"]["rows"]
    ]
    assert [" ".join(text.split()) for text in tab.evaluate(first)] == shown
    near = "[...document.querySelectorAll('[data-near=\"3\"]')].map(h => h.textContent)"
    assert set(tab.evaluate(near)) <= {"3 new ones"}
    legend = "document.getElementById('legend').innerText.split(/\\s*\\n\\s*/)"
    assert tab.evaluate(legend) == ["1 loyal", "3 new ones"]
    titles = "[...new Set([...document.querySelectorAll('svg [data-cluster=\"1\"] > title')]"
    assert tab.evaluate(f"{titles}.map(t => t.textContent))]") == ["1: loyal"]
    tab.evaluate("document.getElementById('filter').focus()")
    tab.call("Input.insertText", text="LOYAL")
    assert tab.evaluate(SHOWN) == [1]


def test_enter_accepts_a_name_and_escape_takes_it_back(show, page):
    tab = show(page)
    label = "document.querySelector('.words .name').getAttribute('aria-label')"
    assert tab.evaluate(label) == "Name of cluster 0"
    type_name(tab, 0, "kept")
    assert tab.evaluate("document.activeElement === document.body")
    type_name(tab, 0, "typed by mistake", end=("Escape", 27))
    assert tab.evaluate("document.activeElement === document.body")
    assert tab.evaluate(NAMES[1])[0] == "kept"
    type_name(tab, 0, "")
    assert tab.evaluate(NAMES[1])[0] == ""
    assert not tab.evaluate("document.getElementById('legend').checkVisibility()")


def test_names_come_back_with_the_page_and_only_with_this_run(show, page, data):
    type_name(show(page), 2, "known")
    assert show(page).evaluate(NAMES[1])[2] == "known"
    # The proof of a run does not make it another one.
    data["run"]["certificate"] = "Proven optimal."
    assert show(render_report(data)).evaluate(NAMES[1])[2] == "known"
    data["created"] = "another time"
    assert show(render_report(data)).evaluate(NAMES[1]) == [""] * 5


def test_without_storage_names_last_as_long_as_the_page(show, page):
    """Browsers may forbid storage to files: the page says so, and works."""
    spoil = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
    assert show(page).evaluate(SAID) == "in this browser"
    tab = show(page, script=spoil)
    assert tab.evaluate(SAID) == "until you close this page"
    type_name(tab, 2, "short-lived")
    assert tab.evaluate(NAMES[1])[2] == "short-lived"


def test_what_is_stored_by_others_does_no_harm(show, page):
    tab = show(page)
    tab.evaluate(
        "localStorage.setItem('evomeans names of ' + "
        "document.querySelector('main').dataset.run, '{broken')"
    )
    again = show(page)
    assert again.evaluate(NAMES[1]) == [""] * 5
    assert again.evaluate(SAID) == "in this browser"


def test_hostile_names_of_clusters_stay_text(show, page):
    tab = show(page)
    for cluster, name in enumerate(HOSTILE):
        type_name(tab, cluster, name[:60])
    tab.evaluate("new Promise(done => setTimeout(done, 200))")
    assert tab.evaluate("typeof window.pwned") == "undefined"
    assert tab.evaluate("document.images.length") == 0
    assert tab.evaluate(NAMES[1])[:3] == [name[:60].strip() for name in HOSTILE[:3]]


def test_names_are_a_column_of_the_labels(show, download, model):
    """Whatever the samples are called, and whatever is typed."""
    odd = ["plain", 'say "so"', "a, b", "two\nlines,3\n", '",7\n', ""]
    called = [f"{odd[i % len(odd)]}{i}" for i in range(200)]
    X = samples()
    page = render_report(data_of(model, X, sample_names=called, sample_label='a\n,"b"'))
    tab = show(page)
    names = ["", 'the "best", so far', "", "plain", "x;y"]
    for cluster, name in enumerate(names):
        type_name(tab, cluster, name)
    header, *rows = csv.reader(io.StringIO(download(tab), newline=""))
    assert header == ['a\n,"b"', "cluster", "name"]
    assert rows == [
        [name, str(label), names[label]] for name, label in zip(called, model.labels_, strict=True)
    ]


def test_names_can_be_typed_on_a_phone(show, page):
    tab = show(page, width=390, height=800, dark=True)
    type_name(tab, 0, "a rather long name of a cluster, of 60 letters, more or less")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    color = "getComputedStyle(document.querySelector('.words .name')).color"
    assert tab.evaluate(color) == "rgb(232, 234, 237)"


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
