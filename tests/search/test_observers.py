"""What `verbose` prints."""

from __future__ import annotations

import pytest

from evomeans.search import OffspringRecord
from evomeans.search.observers import ProgressPrinter, notify

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
    monkeypatch.setattr("evomeans.search.observers.time.perf_counter", lambda: now)
    printer = ProgressPrinter(verbose, every=2.0)
    for number, (clock, best) in enumerate(TRAJECTORY):
        now = clock
        assert printer(record(number, best)) is None
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split("offspring")[1].split()[0]) for line in lines] == printed
    assert [float(line.split()[-1]) for line in lines] == [TRAJECTORY[i][1] for i in printed]


def test_notify_asks_everyone_and_hears_only_true() -> None:
    seen = []
    assert not notify([], record(1, 2.0))
    assert not notify([seen.append, lambda r: 1], record(1, 2.0))
    assert notify([lambda r: None, lambda r: True, seen.append], record(2, 2.0))
    assert [r.number for r in seen] == [1, 2]
