"""Records and what can be read from them; observers see each, and may end the search."""

from __future__ import annotations

import csv
import dataclasses
import re
from itertools import repeat
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scripted_search import FOUNDERS, restarting, run, small

from evomeans.search import History, OffspringRecord, SearchSettings, StopReason, solve
from evomeans.search.history import COLUMNS, HIGH, WIDE, SearchObserver, line_svg
from fakes import ScriptedClock, ScriptedEngine, ScriptedRandom, breeding, refinement

TYPES = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: {"True": True, "False": False}[text],
}


def record(number: int = 1, **changes) -> OffspringRecord:
    values = {
        "number": number,
        "inertia": 1.0 / 3.0 + number,
        "best": 0.1 + 0.2,
        "alpha": 1e-17,
        "n_iter": 7,
        "seconds": 1e-5,
        "population_size": 11,
        "accepted": True,
        "clone": False,
    }
    return OffspringRecord(**{**values, **changes})


def test_every_field_of_a_record_tells_what_happened() -> None:
    """Two founders, two children; the second child is a clone and improves nothing."""
    script = [5.0, 4.0, refinement(3.0, 2, weights=[1, 2]), refinement(3.0, 3, weights=[2, 1])]
    uniforms = [
        [0.1, 0.5],
        [0.3, 0.5],
        breeding(coins=[0.9, 0.9], first=(0.6, 0.6), second=(0.0, 0.0), step=0.75),
        breeding(coins=[0.9, 0.9], first=(0.0, 0.0), second=(0.0, 0.0), step=0.5),
    ]
    clock = ScriptedClock(50.0)
    engine = ScriptedEngine(script, clock=clock, seconds=0.5)
    settings = SearchSettings(2, 2, max_offspring=2)
    history = solve(engine, 2, settings, ScriptedRandom(uniforms), clock=clock).history
    rows = [
        (0, 5.0, 5.0, 0.1, 1, 0.5, 1, True, False, 1, True, "random samples", 0),
        (0, 4.0, 4.0, 0.3, 2, 1.0, 2, True, False, 1, True, "random samples", 0),
        (1, 3.0, 3.0, pytest.approx(0.3), 3, 1.5, 2, True, False, 1, False, "matching", 0),
    ]
    assert [dataclasses.astuple(r)[:13] for r in history[:3]] == rows
    populations = [(5.0, 5.0, 5.0, 1), (4.0, 4.5, 5.0, 2), (3.0, 3.5, 4.0, 2)]
    assert [dataclasses.astuple(r)[13:17] for r in history[:3]] == populations
    last = history[3]
    assert (last.number, last.inertia, last.best, last.n_iter) == (2, 3.0, 3.0, 4)
    assert (last.seconds, last.population_size, last.clone) == (2.0, 2, True)
    assert (last.since_improvement, last.population_distinct) == (1, 2)


def test_csv_round_trip_keeps_every_digit(tmp_path) -> None:
    """A header with the field names, and one line per record that reads back to equal values."""
    history = History([record(0, inertia=1e300), record(1), record(2, clone=True, accepted=False)])
    history.to_csv(tmp_path / "history.csv")
    with (tmp_path / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    fields = {
        field.name: TYPES[str(field.type)] for field in dataclasses.fields(OffspringRecord)[:-1]
    }
    assert list(rows[0]) == list(fields)
    read = [OffspringRecord(**{name: fields[name](row[name]) for name in row}) for row in rows]
    assert History(read) == history


def test_csv_of_a_real_search_has_no_numpy_reprs(tmp_path) -> None:
    """Numbers stand in the file as numbers, also if an engine returns NumPy scalars."""
    engine = ScriptedEngine([np.float64(2.0), np.float64(1.0)])
    settings = SearchSettings(1, 1, max_offspring=1)
    solve(engine, 2, settings, np.random.default_rng(0)).history.to_csv(str(tmp_path / "h.csv"))
    lines = (tmp_path / "h.csv").read_text().splitlines()
    assert len(lines) == 3
    assert "np." not in "".join(lines)


def test_a_column_is_one_field_of_all_records() -> None:
    history = History([record(i) for i in range(3)])
    assert history.column("number").tolist() == [0, 1, 2]
    assert history.column("inertia").dtype == np.float64
    assert history.column("accepted").dtype == np.bool_
    with pytest.raises(KeyError, match=r"'speed'.*number, inertia, best"):
        history.column("speed")


def test_a_history_is_a_list_of_its_own() -> None:
    records = [record(i) for i in range(4)]
    history = History(records)
    assert history == records
    assert history[1:3].column("number").tolist() == [1, 2]
    records.clear()
    assert [one.number for one in history] == [0, 1, 2, 3]


def test_the_repr_says_how_far_the_search_came() -> None:
    assert repr(History([record(12, best=3.25)])) == "History(12 offspring, best inertia 3.25)"
    assert repr(History()) == "History(empty)"


def test_pandas_gets_every_field() -> None:
    history = History([record(1), record(2, founder=True)])
    frame = history.to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    for name in COLUMNS:
        assert frame[name].tolist() == history.column(name).tolist()
    assert History().to_pandas().shape == (0, len(COLUMNS))


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    """An older file stays as it was."""
    engine = ScriptedEngine([9.0, 8.0, 7.0])
    settings = SearchSettings(1, 2, max_offspring=1)
    history = solve(engine, 2, settings, np.random.default_rng(0)).history
    path = tmp_path / "history.csv"
    history.to_csv(path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        history.to_csv(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["history.csv"]


# ---- observers -----------------------------------------------------------------------------------


class Diary(SearchObserver):
    """Writes down what it is told."""

    def __init__(self):
        self.told = []

    def on_start(self, state):
        self.told.append(("start", len(state.history)))

    def on_solution(self, record):
        self.told.append(("solution", record.inertia))

    def on_best(self, record):
        self.told.append(("best", record.best))

    def on_settled(self, population):
        self.told.append(("settled", population.number, len(population)))

    def on_end(self):
        self.told.append(("end",))


def test_an_observer_is_told_what_its_verbs_say() -> None:
    diary = Diary()
    script = [9.0, 8.0, 8.5, 8.6, *[30.0] * 3, 7.0]
    run(script, restarting(max_offspring=4, target_inertia=7.0), observers=[diary])
    assert diary.told[:5] == [
        ("start", 0),
        ("solution", 9.0),
        ("best", 9.0),
        ("solution", 8.0),
        ("best", 8.0),
    ]
    assert diary.told[-4:] == [("settled", 1, 4), ("solution", 7.0), ("best", 7.0), ("end",)]


def test_verbs_that_an_observer_lacks_are_not_missed() -> None:
    """A function is told of solutions, and a plain object of what it has."""

    class Ending:
        ended = 0

        def __call__(self, record):
            return None

        def on_end(self):
            self.ended += 1

    ending = Ending()
    run(repeat(1.0), small(max_offspring=1), observers=[ending, lambda record: None])
    assert ending.ended == 1


def test_an_observer_can_tidy_up_after_an_error() -> None:
    diary = Diary()
    with pytest.raises(AssertionError, match="not in the script"):
        run([1.0], small(), observers=[diary])
    assert diary.told[-1] == ("end",)


def test_an_observer_sees_the_state_after_every_round_and_at_the_end() -> None:
    """The last round is told once, and not at all if an error has ended the search."""

    class Keeper(SearchObserver):
        def __init__(self):
            self.rounds = []

        def on_round(self, state, is_last):
            self.rounds.append((len(state.history), is_last))

    keeper = Keeper()
    script = [*FOUNDERS, 1.0, 2.0, 3.0, 4.0]
    run(script, small(max_offspring=4), batch=4, observers=[keeper])
    assert keeper.rounds == [(4, False), (8, False), (8, True)]
    failing = Keeper()
    with pytest.raises(AssertionError, match="not in the script"):
        run([1.0], small(), observers=[failing])
    assert failing.rounds == [(1, False)]


def test_an_observer_sees_every_record_and_stops_with_true() -> None:
    seen = []

    def stop_at_third(record):
        seen.append(record)
        return record.number == 3

    _, result = run(repeat(1.0), observers=[stop_at_third])
    assert result.stop_reason is StopReason.OBSERVER
    assert result.n_offspring == 3
    assert seen == list(result.history)


@pytest.mark.parametrize("answer", [None, False, np.False_, 1, "stop", [True]])
def test_only_true_stops(answer) -> None:
    """A value that an observer returns by accident, such as a length, does not end the search."""
    _, result = run(repeat(1.0), small(max_offspring=3), observers=[lambda record: answer])
    assert result.stop_reason is StopReason.MAX_OFFSPRING


def test_the_true_of_numpy_stops_too() -> None:
    """Comparing the NumPy scalars of an own computation gives one."""
    _, result = run(repeat(1.0), observers=[lambda record: np.float64(record.inertia) < 2.0])
    assert result.stop_reason is StopReason.OBSERVER


def test_observers_see_the_centres_in_data_units_and_the_history_does_not_keep_them() -> None:
    seen = []
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), observers=[seen.append])
    for record, answer in zip(seen, engine.answers, strict=True):
        assert_array_equal(record.centers, engine.frame.decode(answer.centers))
    assert all(record.centers is None for record in result.history)


def test_all_observers_see_the_record_at_which_one_of_them_stops() -> None:
    seen = []
    observers = [lambda record: True, seen.append]
    run(repeat(1.0), observers=observers)
    assert len(seen) == 1


def test_an_error_in_an_observer_is_not_swallowed() -> None:
    def broken(record):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(repeat(1.0), observers=[broken])


# The picture in a notebook


def picture_of(*best: float) -> str:
    return History([record(i, best=lowest) for i, lowest in enumerate(best)])._repr_html_()


def line_of(html: str) -> str:
    return ElementTree.fromstring(html).findall("svg/path")[1].get("d")


def test_a_falling_line_from_top_left_to_bottom_right() -> None:
    path = line_of(picture_of(4.0, 4.0, 3.0, 2.0, 2.0))
    assert path.startswith("M1 3.0H")
    assert path.endswith(f"V{HIGH - 3:.1f}H{WIDE - 1}")
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert heights == sorted(heights)
    assert len(heights) == 2


@pytest.mark.parametrize("best", [(1.0,), (1.0, 1.0, 1.0), (0.0,), (3.0, 0.0)])
def test_searches_with_little_to_show(best) -> None:
    html = picture_of(*best)
    assert "nan" not in html
    assert "inf" not in line_of(html)


def test_an_empty_history_says_so() -> None:
    html = History()._repr_html_()
    assert "History(empty)" in html
    assert "<svg" not in html


def test_a_long_search_has_a_small_picture() -> None:
    """Only improvements are drawn, not each of 20,000 solutions."""
    assert len(line_svg([3.0] * 10_000 + [2.0] * 10_000)) < 1000
