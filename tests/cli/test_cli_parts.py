"""Progress and names: the small parts of the command line."""

from __future__ import annotations

import dataclasses
import io

import pytest

from evomeans import OffspringRecord
from evomeans.cli.progress import Limits, Progress, SearchDisplay, display_rows, log_line
from evomeans.cli.reading import names_in
from evomeans.cli.record import _sizes
from evomeans.cli.terminal import Terminal


def test_sizes_shown():
    assert _sizes([2, 1]) == "2, 1"
    assert _sizes([1] * 20) == "1 row each"
    assert _sizes([1] * 10 + [5] * 10) == "1 to 5 rows, 3 on average"


def test_names():
    assert names_in("--columns", None) is None
    assert names_in("--columns", "a, b ,c") == ("a", "b", "c")
    assert names_in("--columns", '"a,b",größe') == ("a,b", "größe")


def record(number: int, inertia: float, best: float, seconds: float) -> OffspringRecord:
    return OffspringRecord(number, inertia, best, 0.5, 3, seconds, 10, True, False)


LIMITS = Limits(offspring=100, patience=50, seconds=None)


def test_progress_follows_the_search():
    """Gain over the first solution, patience, and the time left by the pace so far."""
    display = SearchDisplay(Terminal(quiet=True), LIMITS)
    display(record(0, 200.0, 200.0, 0.1))
    display(record(0, 160.0, 160.0, 0.2))
    assert display.progress.seconds_left(LIMITS) is None
    for n in range(1, 12):
        display(record(n, 150.0 if n == 4 else 170.0, 150.0 if n >= 4 else 160.0, 1.0 + n))
    progress = display.progress
    assert progress.gain == pytest.approx(25.0)
    assert (progress.offspring, progress.since_improvement) == (11, 7)
    assert progress.seconds_left(LIMITS) == pytest.approx(89.0)
    assert progress.seconds_left(Limits(100, 50, 20.0)) == pytest.approx(8.0)
    shown = {name: value for name, value, _ in display_rows(progress, LIMITS)}
    assert shown == {
        "best inertia": "150",
        "gain over the first solution": "25.000 %",
        "offspring": "11 of 100",
        "since improvement": "7 of 50",
        "elapsed": "12.0 s",
        "left at most": "1 min 29 s",
    }


def test_progress_of_a_search_that_goes_on():
    """What the checkpoint knows is not forgotten; the pace is that of this process."""
    known = Progress(first=200.0, best=150.0, offspring=40, since_improvement=30, seconds=400.0)
    display = SearchDisplay(Terminal(quiet=True), LIMITS, known)
    for n in (41, 42, 43):
        display(record(n, 160.0, 150.0, 360.0 + n))
    assert display.progress.gain == pytest.approx(25.0)
    assert display.progress.since_improvement == 33
    assert display.progress.seconds_left(LIMITS) == pytest.approx(57.0)


def test_a_new_population_has_its_own_patience():
    """Its founders count as its improvements, whatever the best of all is."""
    display = SearchDisplay(Terminal(quiet=True), LIMITS)
    for n, inertia in ((0, 20.0), (1, 10.0), (2, 15.0), (3, 15.0)):
        display(record(n, inertia, min(inertia, 10.0) if n else 20.0, float(n)))
    assert display.progress.since_improvement == 2
    display(dataclasses.replace(record(3, 18.0, 10.0, 4.0), population_size=1))
    assert display.progress.since_improvement == 0
    display(record(4, 19.0, 10.0, 5.0))
    assert display.progress.since_improvement == 1
    display(record(5, 17.0, 10.0, 6.0))
    assert display.progress.since_improvement == 0
    assert display.progress.best == 10.0


def test_a_log_stays_short(capsys):
    """The first line after two seconds; pauses double up to a minute."""
    display = SearchDisplay(Terminal(), Limits(10**6, 10**6, None))
    display(record(0, 2.0, 2.0, 0.0))
    for second in range(1, 601):
        display(record(second, 1.0, 1.0, float(second)))
    lines = capsys.readouterr().err.splitlines()
    starts = [line.split("  best")[0].strip() for line in lines[:4]]
    assert starts == ["2.0 s", "6.0 s", "14.0 s", "30.0 s"]
    assert 10 <= len(lines) <= 15
    assert "50.000 % below the first solution" in lines[0]


def test_lines_without_what_is_not_known():
    text = log_line(Progress(best=5.0, seconds=3.0), LIMITS)
    assert text.split("  ")[-1] == "0 of 50 since the population improved"
    assert "below" not in text


def test_the_live_display_draws():
    """In all states, from nothing to the end."""
    rich = pytest.importorskip("rich.console")
    display = SearchDisplay(Terminal(), LIMITS, clock=lambda: 0.0)
    console = rich.Console(width=80, record=True, file=io.StringIO())
    console.print(display.render())
    display(record(0, 200.0, 200.0, 0.1))
    display(record(1, 150.0, 150.0, 0.2))
    console.print(display.render())
    text = console.export_text()
    assert "compiled on the first use" in text
    assert "since improvement" in text
    assert "1 of 100" in text
