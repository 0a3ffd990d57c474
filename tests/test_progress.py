"""The displays of searches, paths and proofs on a terminal, and their lines in a log."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from evomeans.cli.terminal import Terminal
from evomeans.path import PathRecord
from evomeans.progress import PathDisplay, Printer, ProofDisplay, SearchDisplay
from evomeans.search import OffspringRecord, SearchSettings

LIMITS = SearchSettings(max_offspring=100, patience=50), 3
"""Settings, and a number of clusters that does not make them more patient."""


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
    display = SearchDisplay(Terminal(quiet=True), *LIMITS, clock=lambda: 0.0)
    assert drawn(display) == ["preparing; the kernels are compiled on the first use"]
    display(record(0, 200.0, 200.0, 0.1))
    display(record(0, 160.0, 160.0, 0.2))
    assert display.left(0.2) == ""
    for n in range(1, 12):
        best = 150.0 if n >= 4 else 160.0
        display(record(n, 150.0 if n == 4 else 170.0, best, 1.0 + n, since=(n - 4) % 8))
    assert drawn(display) == [
        "best inertia 150",
        "below the first solution 25.000 %",
        "offspring 11 of 100",
        "population 1",
        "since it improved 7 of 50",
        "elapsed 12.0 s",
        "left at most 1 min 29 s",
    ]
    display.max_time = 20.0
    assert display.left(12.0) == "8.0 s"
    assert display.left(21.0) == "0.00 s"


def test_progress_of_a_search_that_goes_on():
    """It does not know the first solution; the pace is that of this process.

    A line leaves out what is not known.
    """
    display = SearchDisplay(Terminal(quiet=True), *LIMITS)
    for n in (41, 42, 43):
        display(record(n, 160.0, 150.0 - n, 360.0 + n))
    assert "below" not in display.log_line()
    assert display.left(403.0) == "57.0 s"


def test_a_log_stays_short(capsys):
    """The first line after two seconds; pauses double up to a minute."""
    display = SearchDisplay(Terminal(), SearchSettings(max_offspring=10**6), 3)
    display(record(0, 2.0, 2.0, 0.0))
    for second in range(1, 601):
        display(record(second, 1.0, 1.0, float(second)))
    lines = capsys.readouterr().err.splitlines()
    starts = [line.split("  best")[0].strip() for line in lines[:4]]
    assert starts == ["2.0 s", "6.0 s", "14.0 s", "30.0 s"]
    assert 10 <= len(lines) <= 15
    assert "below the first solution 50.000 %" in lines[0]


# (seconds, best inertia)
TRAJECTORY = [(0.0, 9.0), (0.5, 8.0), (1.0, 8.0), (2.5, 8.0), (2.6, 7.0), (2.7, 7.0)]


@pytest.mark.parametrize(
    ("verbose", "printed"), [(1, [3]), (2, [0, 1, 3, 4]), (3, [0, 1, 2, 3, 4, 5])]
)
def test_verbose_prints_now_and_then_improvements_or_always(verbose, printed, capsys):
    """1: at growing intervals; 2: at improvements as well; 3: every record."""
    display = SearchDisplay(Printer("HGMeans"), *LIMITS, verbose=verbose)
    for number, (seconds, best) in enumerate(TRAJECTORY):
        assert display(record(number, best + 1, best, seconds)) is None
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[HGMeans]  ") for line in lines)
    assert [int(line.split("offspring ")[1].split()[0]) for line in lines] == printed
    bests = [float(line.split("best inertia")[1].split()[0]) for line in lines]
    assert bests == [TRAJECTORY[i][1] for i in printed]


def step(number: int, k: int, improvement: float = 0.0, best: float = 8.0) -> PathRecord:
    values = (number, "up", k, 0, 9.0, best, improvement, 1, 5, 2, 3, 4, 1.5)
    return PathRecord(*values)


@pytest.mark.parametrize(("verbose", "printed"), [(1, []), (2, [2, 3, 2]), (3, [2, 3, 3, 2])])
def test_a_path_prints_news_or_every_step(verbose, printed, capsys):
    display = PathDisplay(Printer("HGMeansPath"), [2, 3], verbose=verbose)
    for one in (step(1, 2), step(2, 3), step(3, 3), step(4, 2, 0.01)):
        display(one)
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split("k = ")[1].split(",")[0]) for line in lines] == printed
    assert all(line.endswith("inertia 8") for line in lines)


def test_a_path_shows_how_many_k_it_has_solved():
    display = PathDisplay(Terminal(quiet=True), range(1, 7))
    display(step(1, 4))
    assert drawn(display)[:3] == [
        "k with a solution 2 of 6",
        "k with agreement 0 of 6",
        "now k = 4, first sweep, to larger k",
    ]


def test_a_proof_prints_its_bounds(capsys):
    now = 0.0
    display = ProofDisplay(Printer("certify"), clock=lambda: now)
    for now in (1.0, 1.9, 2.0, 4.0, 6.5):
        display(9.0, 10.0, int(now))
    assert capsys.readouterr().out.splitlines() == [
        "[certify]       2.0 s  bounds 9 <= optimum <= 10  gap 10 %  nodes 2",
        "[certify]       6.5 s  bounds 9 <= optimum <= 10  gap 10 %  nodes 6",
    ]
