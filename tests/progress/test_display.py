"""The display of a search on a terminal, and its lines in a log."""

from __future__ import annotations

import io

from rich.console import Console

from evomeans.cli.terminal import Terminal
from evomeans.progress.display import SearchDisplay
from evomeans.progress.verbose import Forecast
from evomeans.search import OffspringRecord


def record(number: int, inertia: float, best: float, seconds: float, since=0) -> OffspringRecord:
    values = (number, inertia, best, 0.5, 3, seconds, 10, True, False)
    return OffspringRecord(*values, since_improvement=since)


def drawn(display: SearchDisplay) -> list[str]:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(display.render())
    return [
        " ".join(line.translate({ord(bar): "" for bar in "━╸╺"}).split())
        for line in console.export_text().splitlines()
    ]


def test_progress_follows_the_search():
    """Gain over the first solution, patience, and the time left by the pace so far."""
    display = SearchDisplay(Terminal(quiet=True), Forecast(100, 50), clock=lambda: 0.0)
    assert drawn(display) == ["preparing; the kernels are compiled on the first use"]
    display(record(0, 200.0, 200.0, 0.1))
    display(record(0, 160.0, 160.0, 0.2))
    assert display.left(0.2) == ""
    for n in range(1, 12):
        best = 150.0 if n >= 4 else 160.0
        display(record(n, 150.0 if n == 4 else 170.0, best, 1.0 + n, since=(n - 4) % 8))
    assert drawn(display) == [
        "best inertia 150",
        "gain over the first solution 25.000 %",
        "offspring 11 of 100",
        "population 1",
        "since it improved 7 of 50",
        "elapsed 12.0 s",
        "left at most 1 min 29 s",
    ]
    display.forecast.max_time = 20.0
    assert display.left(12.0) == "8.0 s"


def test_progress_of_a_search_that_goes_on():
    """What the checkpoint knows is not forgotten; the pace is that of this process."""
    known = [record(0, 200.0, 200.0, 0.1), record(40, 160.0, 150.0, 400.0)]
    display = SearchDisplay(Terminal(quiet=True), Forecast(100, 50), known)
    for n in (41, 42, 43):
        display(record(n, 160.0, 150.0, 360.0 + n))
    assert display.gain() == "25.000 %"
    assert display.left(403.0) == "57.0 s"


def test_a_log_stays_short(capsys):
    """The first line after two seconds; pauses double up to a minute."""
    display = SearchDisplay(Terminal(), Forecast(10**6, 10**6))
    display(record(0, 2.0, 2.0, 0.0))
    for second in range(1, 601):
        display(record(second, 1.0, 1.0, float(second)))
    lines = capsys.readouterr().err.splitlines()
    starts = [line.split("  best")[0].strip() for line in lines[:4]]
    assert starts == ["2.0 s", "6.0 s", "14.0 s", "30.0 s"]
    assert 10 <= len(lines) <= 15
    assert "50.000 % below the first solution" in lines[0]


def test_lines_without_what_is_not_known():
    text = SearchDisplay(Terminal(), Forecast(100, 50)).log_line(record(0, 5.0, 5.0, 3.0), 3.0)
    assert text.split("  ")[-1] == "population 1: 0 of 50 since it improved"
    assert "below" not in text
