"""Best known values: as printed, never overwritten in silence, proposed from many processes."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lab import best_known as module
from lab.best_known import (
    COLUMNS,
    TABLE,
    Known,
    Printed,
    accept,
    all_known,
    best_known,
    main,
    proposals,
    propose,
    record_proofs,
)
from lab.data import DATASETS, PARTIAL, MissingDataError, reference_runs
from lab.data.registry import is_listed

ROOT = Path(__file__).parents[2]
SETUPS = {(dataset.name, m) for dataset in DATASETS for m in dataset.clusters}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "proposals"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Use a small table of its own."""
    path = tmp_path / "best_known.csv"
    rows = [
        ("iris", "3", "78.85144142614601", "best known", "HG-means", "", ""),
        ("iris", "2", "152.348", "upper bound", "K-means", "", ""),
        ("skin", "25", "1.0228e8", "best known", "Somebody", "1.0228e8", "A paper"),
    ]
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    monkeypatch.setattr(module, "TABLE", path)
    monkeypatch.setattr(module, "all_known", lambda table=path: all_known(table))
    return path


@pytest.mark.parametrize(
    ("text", "value", "rounding"),
    [
        ("152.348", 152.348, 5e-4),
        ("0.64491e11", 6.4491e10, 5e5),
        ("7.2194e5", 721940.0, 5.0),
        ("80044.7338391421", 80044.7338391421, 5e-11),
        ("8423750573", 8423750573.0, 0.5),
        ("1e3", 1000.0, 500.0),
    ],
)
def test_printed_numbers_have_their_rounding(text, value, rounding):
    assert Printed.parse(text) == Printed(value, pytest.approx(rounding))


@pytest.mark.parametrize("text", ["nan", "inf"])
def test_only_finite_numbers(text):
    with pytest.raises(ValueError, match=f"'{text}' is no finite number"):
        Printed.parse(text)


def test_lower_means_by_more_than_rounding():
    """Half a unit of the last digit, and a billionth for sums in another order."""
    printed = Printed.parse("100.0")
    assert not printed.is_above(99.95)
    assert printed.is_above(99.9499)
    exact = Printed.parse("100.00000000000000")
    assert not exact.is_above(100 * (1 - 9e-10))
    assert exact.is_above(100 * (1 - 2e-9))


def test_gaps_in_percent():
    """As the paper defines them; rounding is no gap."""
    known = Known("iris", 3, Printed.parse("100.0"), "HG-means")
    assert known.gap(101) == pytest.approx(1.0)
    assert known.gap(98) == pytest.approx(-2.0)
    assert known.gap(100.05) == known.gap(99.95) == 0.0


def test_the_table():
    """Data sets in the order of the paper, clusters ascending; a few problems go beyond it."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    setups = [(row["dataset"], int(row["m"])) for row in rows]
    order = [dataset.name for dataset in DATASETS]
    assert setups == sorted(set(setups), key=lambda setup: (order.index(setup[0]), setup[1]))
    assert set(all_known()) == set(setups)
    assert {name for name, m in set(setups) - SETUPS if m not in (40, 50, 100)} == set()
    for known in all_known().values():
        assert known.found_by
        assert known.value > 0
        assert (known.literature is None) == (known.literature_source == "")
        # What is published is worse, or the same number in fewer digits.
        assert known.literature is None or known.value <= (
            known.literature.value + known.literature.rounding
        )


def test_the_table_knows_the_reference_runs():
    """Nothing in it is worse than what the authors' program, or anything else, reached there."""
    for run in reference_runs():
        if is_listed(run.dataset):
            known = best_known(run.dataset, run.m)
            assert known.value <= run.best_found * (1 + 1e-9) + 5e-5
            assert not known.is_upper_bound


def test_more_clusters_cost_less():
    """The values of a data set fall with m: no row is in the wrong place."""
    for dataset in DATASETS:
        values = [k.value for m in dataset.clusters if (k := best_known(dataset.name, m))]
        assert values == sorted(values, reverse=True)


def test_values_below_the_literature_are_marked():
    """Published values that our runs beat by more than rounding."""
    beaten = {setup for setup, known in all_known().items() if known.beats_literature}
    assert ("skin", 25) in beaten
    assert ("pla85900", 5) in beaten
    assert ("d15112", 2) not in beaten
    assert not best_known("iris", 3).beats_literature


def test_what_nobody_knows():
    assert best_known("gisette", 2) is None
    assert best_known("iris", 149) is None


@pytest.mark.parametrize("name", [*PARTIAL, "irs"])
def test_partial_copies_have_no_known_values(name, folder):
    """Asking for one, and proposing one, is an error."""
    with pytest.raises(MissingDataError, match=name):
        best_known(name, 15)
    with pytest.raises(MissingDataError, match=name):
        propose(name, 15, 1.0, "test", folder=folder)
    assert not folder.exists()


def test_a_lower_value_is_proposed_once(table, folder):
    """Not if it is known, not if as low a one is proposed; the table stays as it is."""
    before = table.read_bytes()
    assert not propose("iris", 3, 78.85144142614601, "HG-means", folder=folder)
    assert not propose("iris", 3, 78.8514414, "HG-means", folder=folder)
    assert not propose("iris", 2, 152.34795, "HG-means", folder=folder)
    assert propose("iris", 3, 78.0, "HG-means", folder=folder)
    assert not propose("iris", 3, 78.0, "HG-means", folder=folder)
    assert not propose("iris", 3, 78.5, "HG-means", folder=folder)
    assert propose("iris", 3, 77.0, "SAGA", folder=folder)
    assert propose("gisette", 2, 1e12, "HG-means", folder=folder)
    assert {(p.dataset, p.m, p.value, p.by) for p in proposals(folder)} == {
        ("iris", 3, 78.0, "HG-means"),
        ("iris", 3, 77.0, "SAGA"),
        ("gisette", 2, 1e12, "HG-means"),
    }
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("m", "value", "message"),
    [
        (0, 1.0, "m=0 should be at least 1"),
        (151, 1.0, "m=151 .* at most the samples of iris"),
        (3, 0.0, "value=0.0 should be a positive number"),
        (3, -1.0, "value=-1.0"),
        (3, math.nan, "value=nan"),
    ],
)
def test_nonsense_is_not_proposed(table, folder, m, value, message):
    with pytest.raises(ValueError, match=message):
        propose("iris", m, value, "test", folder=folder)


def test_accepting(table, folder):
    """The lowest of each problem is merged; what the literature says stays, in paper order."""
    for value, by in [(77.0, "SAGA"), (76.0, "HG-means")]:
        assert propose("iris", 3, value, by, folder=folder)
    assert propose("skin", 25, 1.018887e8, "HG-means", folder=folder)
    assert propose("liver", 2, 423980.9, "HG-means", folder=folder)
    changes = accept(table, folder)
    assert [(after.dataset, after.m, after.value) for _, after in changes] == [
        ("iris", 3, 76.0),
        ("liver", 2, 423980.9),
        ("skin", 25, 101888700.0),
    ]
    assert [before and before.value for before, _ in changes] == [78.85144142614601, None, 1.0228e8]
    known = all_known(table)
    assert list(known) == [("iris", 2), ("iris", 3), ("liver", 2), ("skin", 25)]
    assert known["iris", 2].is_upper_bound
    assert known["iris", 3].found_by == "evomeans: HG-means"
    assert known["skin", 25].literature.value == 1.0228e8
    assert known["skin", 25].beats_literature
    assert proposals(folder) == []
    assert accept(table, folder) == []


def test_a_proposal_that_is_no_longer_lower_is_dropped(table, folder):
    """The table moved on in the meantime: it is not made worse again."""
    assert propose("iris", 3, 77.0, "SAGA", folder=folder)
    waiting = json.loads(next(folder.glob("*.json")).read_text())
    assert accept(table, folder)
    (folder / "late.json").write_text(json.dumps(waiting | {"value": 77.5}))
    content = table.read_bytes()
    assert accept(table, folder) == []
    assert table.read_bytes() == content
    assert proposals(folder) == []


def test_a_full_disk_loses_nothing(table, folder, monkeypatch):
    """If the table cannot be written, it and the proposals stay."""

    def full(*arguments):
        raise OSError("No space left on device")

    propose("iris", 3, 77.0, "SAGA", folder=folder)
    content = table.read_bytes()
    monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        accept(table, folder)
    assert table.read_bytes() == content
    assert len(proposals(folder)) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("iris,3,5,best known,x,,", "two rows for iris and m=3"),
        ("iris,4,5,certain,x,,", "status 'certain' should be 'best known' or 'upper bound'"),
    ],
)
def test_a_damaged_table_is_refused(table, row, message):
    with table.open("a") as file:
        file.write(f"{row}\n")
    with pytest.raises(ValueError, match=message):
        all_known(table)


PROPOSE = """
    import sys
    from pathlib import Path
    from lab.best_known import propose

    for step in range(10):
        propose("iris", 3, 70.0 - step - int(sys.argv[2]) / 10, "test", folder=Path(sys.argv[1]))
"""


def test_many_processes_propose_at_once(table, folder):
    """No proposal is torn, and the lowest of all is accepted."""
    command = [sys.executable, "-c", textwrap.dedent(PROPOSE), str(folder)]
    started = [subprocess.Popen([*command, str(i)], cwd=ROOT) for i in range(3)]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0]
    assert len(proposals(folder)) >= 10
    ((_, after),) = accept(table, folder)
    assert after.value == pytest.approx(60.8)


def test_the_command(table, folder, capsys):
    """Shows what waits; merges on --accept, and says what it changed."""
    propose("iris", 3, 77.0, "SAGA", folder=folder)
    arguments = ["--table", str(table), "--proposals", str(folder)]
    before = table.read_bytes()
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    change = "iris m=3: 78.85144143 (HG-means) -> 77 ("
    assert change in shown
    assert "3 problems are known, 0 lower than published, 0 proven optimal; 1 prop" in shown
    assert table.read_bytes() == before
    assert main([*arguments, "--accept"]) == 0
    shown = capsys.readouterr().out
    assert f"{change}evomeans: SAGA), -2.34801 %" in shown
    assert "1 values of best_known.csv are lower now." in shown
    assert all_known(table)["iris", 3].value == 77.0


def test_the_command_as_a_module():
    command = [sys.executable, "-m", "lab", "best_known"]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert f"{len(all_known())} problems are known" in result.stdout


def test_proven_bounds_only_rise_and_settle_values(table):
    """A bound within a millionth of the value settles it; a lower bound replaces nothing."""
    bounds = {("iris", 3): 78.85144, ("iris", 2): 150.0}
    assert record_proofs(bounds, table) == 2
    assert record_proofs({("iris", 3): 70.0}, table) == 2
    known = all_known(table)
    assert known["iris", 3].proven_bound == 78.85144
    assert known["iris", 3].is_settled
    assert not known["iris", 2].is_settled
    assert known["skin", 25].proven_bound is None


def test_no_proven_bound_is_above_its_value():
    """Each is a proof: a lower value cannot exist."""
    for entry in all_known(TABLE).values():
        if entry.proven_bound is not None:
            assert entry.proven_bound <= entry.value + entry.printed.rounding
