"""What `verbose` prints."""

from __future__ import annotations

import pytest

from evomeans.path.state import PathRecord
from evomeans.progress.verbose import Forecast, PathPrinter, ProofPrinter, SearchPrinter
from evomeans.search import OffspringRecord

# (seconds on the clock, best inertia)
TRAJECTORY = [(0.0, 9.0), (0.5, 8.0), (1.0, 8.0), (2.5, 8.0), (2.6, 7.0), (2.7, 7.0)]


def record(number: int, best: float) -> OffspringRecord:
    return OffspringRecord(number, best + 1, best, 0.5, 3, 0.1, 10, True, False)


@pytest.mark.parametrize(
    ("verbose", "printed"), [(1, [0, 3]), (2, [0, 1, 3, 4]), (3, [0, 1, 2, 3, 4, 5])]
)
def test_verbose_prints_at_intervals_improvements_or_always(
    verbose, printed, monkeypatch, capsys
) -> None:
    """1: every two seconds; 2: at improvements as well; 3: every record."""
    now = 0.0
    monkeypatch.setattr("evomeans.progress.verbose.time.perf_counter", lambda: now)
    printer = SearchPrinter(verbose, Forecast(100, 50), every=2.0)
    for number, (clock, best) in enumerate(TRAJECTORY):
        now = clock
        assert printer(record(number, best)) is None
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split("offspring")[1].split()[0]) for line in lines] == printed
    assert [float(line.split()[-1]) for line in lines] == [TRAJECTORY[i][1] for i in printed]


def step(number: int, k: int, improvement: float = 0.0) -> PathRecord:
    values = (number, "up", k, 0, 9.0, 8.0, improvement, 1, 5, 2, 3, 4, 1.5)
    return PathRecord(*values)


@pytest.mark.parametrize(("verbose", "printed"), [(1, [2, 3, 2]), (2, [2, 3, 3, 2])])
def test_a_path_prints_news_or_every_step(verbose, printed, capsys) -> None:
    printer = PathPrinter(verbose)
    for record in (step(1, 2), step(2, 3), step(3, 3), step(4, 2, 0.01)):
        printer(record)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[HGMeansPath]      1.5 s  up     k = 2    inertia 8  3 of 4 still open"
    assert [int(line.split("k = ")[1].split()[0]) for line in lines] == printed


def test_a_proof_prints_its_bounds_every_five_seconds(monkeypatch, capsys) -> None:
    now = 0.0
    monkeypatch.setattr("evomeans.progress.verbose.time.monotonic", lambda: now)
    printer = ProofPrinter()
    for now in (1.0, 4.9, 5.0, 9.0, 10.5):
        printer(9.0, 10.0, int(now))
    assert capsys.readouterr().out.splitlines() == [
        "[certify] 5 nodes: 9 <= optimum <= 10, gap 10 %",
        "[certify] 10 nodes: 9 <= optimum <= 10, gap 10 %",
    ]
