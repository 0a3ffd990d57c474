"""The page in a real browser."""

from __future__ import annotations

import base64
import csv
import io
import re
import time

import numpy as np
import pytest
from reports import HOSTILE, data_of, fitted, samples

from evomeans.report import render_report

VISIBLE = "e.checkVisibility()"
CLUSTER = "Number(e.dataset.cluster)"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 27)"


def order(tab, table="table"):
    """Clusters in the order of a table, but for those that the filter hides."""
    return tab.all(f"#{table} tbody tr", CLUSTER, VISIBLE)


def sorted_by(tab):
    return tab.all("#table thead th[aria-sort]", "[e.textContent, e.ariaSort]")


def header(number):
    return f"#table thead th:nth-child({number}) button"


def background(tab):
    return tab.evaluate("getComputedStyle(document.body).backgroundColor")


def marked(tab, where=""):
    """Clusters that stand out."""
    return sorted(set(tab.all(f"{where} .on", CLUSTER)))


def test_it_opens_in_silence_and_asks_for_nothing(show, page):
    """No message on the console, no request but for the file itself."""
    tab = show(page)
    assert tab.evaluate("document.title") == "clouds.csv · evomeans report"
    assert len(tab.all("svg.chart")) == 5


def test_a_click_sorts_and_a_second_one_turns_it_round(show, page, data):
    tab = show(page)
    sizes = [cluster["size"] for cluster in data["clusters"]]
    assert sorted_by(tab) == [["Cluster", "ascending"]]
    tab.click(header(2))
    assert order(tab) == sorted(range(5), key=lambda i: -sizes[i])
    assert sorted_by(tab) == [["Samples", "descending"]]
    tab.click(header(2))
    assert order(tab) == sorted(range(5), key=lambda i: sizes[i])
    assert sorted_by(tab) == [["Samples", "ascending"]]
    tab.click(header(1))
    assert order(tab) == [4, 3, 2, 1, 0]


def test_the_keyboard_sorts(show, page, data):
    """Tab reaches the headers, Enter and the space bar sort; text sorts from A to Z."""
    tab = show(page)
    tab.one(header(3), "e.focus()")
    tab.press("Enter", 13, "\r")
    assert sorted_by(tab) == [["Share", "descending"]]
    for _ in range(5):
        tab.press("Tab", 9)
    tab.press(" ", 32, " ")
    assert sorted_by(tab) == [["Most telling columns", "ascending"]]
    first = [cluster["telling"][0]["name"] for cluster in data["clusters"]]
    assert [first[i] for i in order(tab)] == sorted(first)


def test_the_filter_shows_what_fits(show, page, data):
    """Words are looked for in the columns, numbers are clusters; all gone, all come back."""
    tab = show(page)

    def found(text):
        tab.one("#filter", "(e.focus(), e.select())")
        tab.press("Delete", 46)
        tab.write(text)
        return order(tab)

    names = [[told["name"] for told in cluster["telling"]] for cluster in data["clusters"]]
    wanted = [i for i, telling in enumerate(names) if "depth" in telling]
    assert found("DEPTH") == wanted
    assert tab.one("#shown") == f"{len(wanted)} of 5 clusters"
    assert found("3") == [3]
    assert found("nothing like it") == []
    assert found(" ") == [0, 1, 2, 3, 4]


def test_hostile_names_do_not_run(show, hostile_page, hostile_data):
    """They are in the page as text, letter by letter, and nothing has happened."""
    tab = show(hostile_page)
    tab.evaluate("new Promise(done => setTimeout(done, 200))")
    assert tab.evaluate("typeof window.pwned") == "undefined"
    assert tab.evaluate("[document.images.length, document.scripts.length]") == [0, 1]
    shown = tab.one("body")
    for text in HOSTILE:
        assert text in shown
    assert tab.one("h1") == hostile_data["title"]


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
    for dark, own, other in ((False, LIGHT, DARK), (True, DARK, LIGHT)):
        tab = show(page, dark=dark)
        assert background(tab) == own
        assert tab.one("#theme") == ("Light" if dark else "Dark")
        tab.click("#theme")
        assert background(tab) == other
        tab.prefer("dark", media="print")
        assert background(tab) == LIGHT


def test_the_axis_of_the_convergence_can_be_time(show, page):
    tab = show(page)
    assert tab.all("[data-chart]", "e.dataset.chart", VISIBLE) == ["offspring"]
    tab.click("[data-axis=seconds]")
    assert tab.all("[data-chart]", "e.dataset.chart", VISIBLE) == ["seconds"]


@pytest.mark.parametrize(
    "row", ["#table tbody tr:nth-child(3) td:last-child", ".words li + li + li"]
)
def test_a_cluster_under_the_pointer_stands_out(show, page, row):
    tab = show(page)
    tab.hover(row)
    assert marked(tab, "svg") == [2]
    tab.hover("h1")
    assert marked(tab) == []


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_it_fits_every_screen(show, hostile_page, width):
    """Nothing makes the page wider than the window, is cut off, or squeezes names of settings."""
    tab = show(hostile_page, width=width)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    box = "e.getBoundingClientRect()"
    cut = f"{box}.left < 0 || {box}.right > {width}"
    assert tab.all(".chart:not([width]) text", where=cut) == []
    assert max(tab.all(".settings dt", "e.offsetHeight")) < 30


def test_texts_of_a_chart_do_not_overlap(show):
    """Ticks and names keep clear of each other on wide and narrow screens, with many clusters."""
    X = samples()
    page = render_report(data_of(fitted(30, X, max_offspring=2), X))
    overlaps = """(() => {
        const texts = [...e.querySelectorAll('text')].filter(t => t.checkVisibility());
        const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
        return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
          p.left < q.right && q.left < p.right && p.top + 3 < q.bottom && q.top + 3 < p.bottom
        ).map(([b]) => a + ' / ' + b));
    })()"""
    for width in (400, 1400):
        assert not any(show(page, width=width).all("svg.chart", overlaps, VISIBLE))


def test_it_can_be_read_without_a_script(browser, page, tmp_path):
    """Controls that would do nothing are hidden, the rest is there."""
    path = tmp_path / "report.html"
    path.write_text(page[: page.rindex("<script>")], encoding="utf-8")
    tab = browser.open(path)
    assert order(tab) == [0, 1, 2, 3, 4]
    for selector in ("#theme", ".switch", ".filter", ".copy", ".naming", "#legend"):
        assert not any(tab.all(selector, VISIBLE))
    tab.close()


@pytest.mark.parametrize("n_clusters", [5, 10])
def test_it_prints_to_two_pages(show, n_clusters):
    X = samples()
    page = render_report(data_of(fitted(n_clusters, X), X, ["height", "width", "depth", "cost"]))
    content = base64.b64decode(show(page).call("Page.printToPDF")["data"])
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
    tab.one(f'{where} [data-cluster="{cluster}"] .name', "(e.focus(), e.select())")
    tab.press("Delete", 46)
    tab.write(name)
    tab.press(*end)


def typed(tab):
    """Names in all fields, those of the words and those of the table."""
    return tab.all(".words .name, #table tbody tr .name", "e.value")


def named(tab):
    """Names in the table of centres."""
    return tab.all("#profile tbody .named")


def test_names_of_clusters_are_shown_wherever_a_cluster_is(show, page, data):
    """In both lists of fields, in the tables, in the legend, in the pictures and in the filter."""
    tab = show(page)
    type_name(tab, 1, "loyal")
    type_name(tab, 3, " new ones ", where="#table")
    names = ["", "loyal", "", "new ones", ""]
    assert (typed(tab), named(tab)) == (names * 2, names)
    rows = [row["cluster"] for row in data["examples"]["rows"]]
    first = [" ".join(text.split()) for text in tab.all("#samples tbody th", "e.innerText")]
    assert first == [f"{cluster} {names[cluster]}".strip() for cluster in rows]
    assert set(tab.all('[data-near="3"]')) <= {"3 new ones"}
    assert tab.one("#legend", "e.innerText.split(/\\s*\\n\\s*/)") == ["1 loyal", "3 new ones"]
    assert set(tab.all('svg [data-cluster="1"] > title')) == {"1: loyal"}
    tab.one("#filter", "e.focus()")
    tab.write("LOYAL")
    assert order(tab) == [1]


def test_enter_accepts_a_name_and_escape_takes_it_back(show, page):
    tab = show(page)
    assert tab.one(".words .name", "e.getAttribute('aria-label')") == "Name of cluster 0"
    type_name(tab, 0, "kept")
    assert tab.one("body", "document.activeElement === e")
    type_name(tab, 0, "typed by mistake", end=("Escape", 27))
    assert tab.one("body", "document.activeElement === e")
    assert named(tab)[0] == "kept"
    type_name(tab, 0, "")
    assert named(tab)[0] == ""
    assert not tab.one("#legend", VISIBLE)


def test_names_come_back_with_the_page_and_only_with_this_run(show, page, data):
    type_name(show(page), 2, "known")
    assert named(show(page))[2] == "known"
    # The proof of a run does not make it another one.
    data["run"]["certificate"] = "Proven optimal."
    assert named(show(render_report(data)))[2] == "known"
    data["created"] = "another time"
    assert named(show(render_report(data))) == [""] * 5


def test_without_storage_names_last_as_long_as_the_page(show, page):
    """Browsers may forbid storage to files: the page says so, and works."""
    spoil = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }});"
    assert show(page).one("#kept") == "in this browser"
    tab = show(page, script=spoil)
    assert tab.one("#kept") == "until you close this page"
    type_name(tab, 2, "short-lived")
    assert named(tab)[2] == "short-lived"


def test_what_is_stored_by_others_does_no_harm(show, page):
    key = "'evomeans names of ' + e.dataset.run"
    show(page).one("main", f"localStorage.setItem({key}, '{{broken')")
    again = show(page)
    assert named(again) == [""] * 5
    assert again.one("#kept") == "in this browser"


def test_hostile_names_of_clusters_stay_text(show, page):
    tab = show(page)
    for cluster, name in enumerate(HOSTILE):
        type_name(tab, cluster, name[:60])
    tab.evaluate("new Promise(done => setTimeout(done, 200))")
    assert tab.evaluate("typeof window.pwned") == "undefined"
    assert tab.evaluate("document.images.length") == 0
    assert named(tab)[:3] == [name[:60].strip() for name in HOSTILE[:3]]


def test_names_are_a_column_of_the_labels(show, download, model):
    """Whatever the samples are called, and whatever is typed."""
    odd = ["plain", 'say "so"', "a, b", "two\nlines,3\n", '",7\n', ""]
    called = [f"{odd[i % len(odd)]}{i}" for i in range(200)]
    data = data_of(model, samples(), sample_names=called, sample_label='a\n,"b"')
    tab = show(render_report(data))
    names = ["", 'the "best", so far', "", "plain", "x;y"]
    for cluster, name in enumerate(names):
        type_name(tab, cluster, name)
    header, *rows = csv.reader(io.StringIO(download(tab), newline=""))
    assert header == ['a\n,"b"', "cluster", "name"]
    expected = zip(called, model.labels_.tolist(), strict=True)
    assert rows == [[name, str(label), names[label]] for name, label in expected]


def test_names_can_be_typed_on_a_phone(show, page):
    tab = show(page, width=390, height=800, dark=True)
    type_name(tab, 0, "a rather long name of a cluster, of 60 letters, more or less")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    assert tab.one(".words .name", "getComputedStyle(e).color") == "rgb(232, 234, 237)"


def test_the_centres_sort_by_a_column(show, page, data):
    tab = show(page)
    tab.click("#profile thead th:nth-child(2) button")
    places = np.argsort([-row[0] for row in data["profiles"]["centers"]])
    assert order(tab, "profile") == [data["profiles"]["clusters"][i] for i in places]
    # The mean of all samples stays below.
    assert tab.one("#profile tfoot").split()[0] == "all"
