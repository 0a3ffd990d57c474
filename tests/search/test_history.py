"""Records and what can be read from them."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pytest

from evomeans.search import History, OffspringRecord, SearchSettings, solve
from evomeans.search.history import COLUMNS
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
