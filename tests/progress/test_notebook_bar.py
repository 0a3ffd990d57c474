"""Bars in notebooks, and lines elsewhere."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from evomeans import HGMeans, OffspringRecord
from evomeans.progress import verbose
from evomeans.progress.verbose import Forecast, NotebookBar, RichBar, TqdmBar

X = np.random.default_rng(0).normal(size=(40, 2))


class FakeBar:
    """Remembers what it is told."""

    made: list[FakeBar] = []  # noqa: RUF012

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.shown, self.closed = name, total, [], False
        FakeBar.made.append(self)

    def show(self, done: int, text: str) -> None:
        self.shown.append((done, text))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def notebook(monkeypatch):
    """Pretend to be the kernel of a notebook."""
    shell = type("ZMQInteractiveShell", (), {})()
    fake = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    FakeBar.made = []
    return monkeypatch


def record(number: int, seconds: float, population: int = 1, since: int = 0) -> OffspringRecord:
    return OffspringRecord(
        number, 2.0, 1.5, 0.5, 3, seconds, 10, True, False, population, since_improvement=since
    )


def test_a_fit_in_a_notebook_moves_one_bar(notebook, capsys):
    notebook.setattr(verbose, "bar_maker", lambda: FakeBar)
    model = HGMeans(3, max_offspring=12, random_state=0, verbose=1).fit(X)
    (bar,) = FakeBar.made
    assert (bar.name, bar.total, bar.closed) == ("HGMeans", 12, True)
    assert bar.shown[-1][0] == model.n_iter_
    assert "population 1" in bar.shown[-1][1]
    assert "offspring 0" not in capsys.readouterr().out


def test_the_bar_is_closed_if_the_fit_fails(notebook):
    notebook.setattr(verbose, "bar_maker", lambda: FakeBar)

    def fail(record):
        # The bar comes after the observers of the user, and exists from the first record on.
        if record.number > 2:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        HGMeans(3, random_state=0, verbose=1, observers=fail).fit(X)
    assert [bar.closed for bar in FakeBar.made] == [True]


def test_elsewhere_and_with_more_verbosity_there_are_lines(notebook, capsys):
    notebook.setattr(verbose, "bar_maker", lambda: FakeBar)
    HGMeans(3, max_offspring=5, random_state=0, verbose=2).fit(X)
    notebook.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    HGMeans(3, max_offspring=5, random_state=0, verbose=1).fit(X)
    assert FakeBar.made == []
    out = capsys.readouterr().out
    assert "[HGMeans]" in out
    assert "of 5  population 1: 0 of 150 since it improved" in out


def test_the_text_of_a_bar_knows_limits_and_the_time_left():
    bar = NotebookBar("x", Forecast(100, 50), FakeBar)
    FakeBar.made = []
    bar(record(0, 0.5))
    bar(record(1, 1.0))
    bar(record(11, 2.0, population=2, since=7))
    assert FakeBar.made[0].shown[0] == (
        0,
        "best inertia 1.5, population 1: 0 of 50 since it improved",
    )
    assert FakeBar.made[0].shown[-1] == (
        11,
        "best inertia 1.5, population 2: 7 of 50 since it improved, at most 8.9 s left",
    )


def test_tqdm_is_preferred_and_rich_is_next(monkeypatch):
    there = {"tqdm", "rich"}
    monkeypatch.setattr(verbose, "find_spec", lambda name: name if name in there else None)
    assert verbose.bar_maker() is TqdmBar
    there.discard("tqdm")
    assert verbose.bar_maker() is RichBar
    there.discard("rich")
    assert verbose.bar_maker() is None


def test_a_bar_of_tqdm(monkeypatch):
    """Its methods are called as tqdm has them; tqdm need not be installed here."""
    calls = []

    class Tqdm:
        n = 0

        def __init__(self, **options):
            calls.append(options)

        def set_postfix_str(self, text, refresh):
            calls.append(text)

        def update(self, steps):
            self.n += steps
            calls.append(self.n)

        def refresh(self):
            calls.append("refresh")

        def close(self):
            calls.append("close")

    module = ModuleType("tqdm.auto")
    module.tqdm = Tqdm
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    bar = TqdmBar("HGMeans", 9)
    bar.show(2, "a")
    bar.show(5, "b")
    bar.close()
    assert calls == [
        {"total": 9, "desc": "HGMeans", "unit": " offspring"},
        "a",
        2,
        "b",
        5,
        "refresh",
        "close",
    ]


def test_a_bar_of_rich():
    bar = RichBar("HGMeans", 9)
    bar.show(4, "best")
    task = bar._progress.tasks[0]
    bar.close()
    assert (task.completed, task.total, task.fields["text"]) == (4, 9, "best")
