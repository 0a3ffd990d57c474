"""The lowest objectives known of the paper's problems, and proposals of lower ones.

``best_known.csv`` has a row per problem: the value, who found it, and what the literature prints.
Values are kept as they were printed; half a unit of the last digit is their rounding, and no run
is said to beat a value, or to miss it, by less. A run that finds a lower value proposes it, which
leaves a small file; ``python -m lab best_known`` shows the proposals, and ``--accept``
merges them into the table. ``--list`` shows all of it.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from evomeans.files import write_atomically
from lab.data.errors import exit_on_data_errors
from lab.data.locking import exclusive
from lab.data.registry import DATASETS, dataset_named
from lab.measure import parser_for

TABLE = Path(__file__).with_name("best_known.csv")
PROPOSALS = Path(__file__).parent / "results" / "proposals"
COLUMNS = (
    "dataset",
    "m",
    "value",
    "status",
    "found_by",
    "literature",
    "literature_source",
    "beats_literature",
    "proven_bound",
)
BEST, UPPER_BOUND = "best known", "upper bound"
# Sums of squares in another order differ by less.
EQUAL = 1e-9
# The relative gap within which a value counts as optimal.
SETTLED = 1e-6


@dataclass(frozen=True)
class Printed:
    """A number as it was printed.

    Parameters
    ----------
    value : float
    rounding : float
        Half a unit of its last digit.
    """

    value: float
    rounding: float

    @classmethod
    def parse(cls, text: str) -> Printed:
        """Read a number; ``0.64491e11`` is known to 5e5."""
        number = Decimal(text)
        exponent = number.as_tuple().exponent
        if not isinstance(exponent, int):
            raise ValueError(f"{text!r} is no finite number.")
        return cls(float(number), float(Decimal(5).scaleb(exponent - 1)))

    def is_above(self, value: float) -> bool:
        """Whether a value is lower, by more than the rounding of both."""
        return value < self.value * (1 - EQUAL) - self.rounding


@dataclass(frozen=True)
class Known:
    """What is known of a problem.

    Parameters
    ----------
    dataset : str
    m : int
    printed : Printed
        The lowest objective known.
    found_by : str
    is_upper_bound : bool
        Whether it comes from a few runs of K-means, and nobody has looked further.
    literature : Printed or None
        The lowest published objective.
    literature_source : str
        Where it is published.
    proven_bound : float or None
        No clustering has a lower objective; ``python -m lab proof`` proves it.
    """

    dataset: str
    m: int
    printed: Printed
    found_by: str
    is_upper_bound: bool = False
    literature: Printed | None = None
    literature_source: str = ""
    proven_bound: float | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the value is proven to be optimal."""
        if self.proven_bound is None:
            return False
        room = SETTLED * self.value + self.printed.rounding
        return self.value - self.proven_bound <= room

    @property
    def value(self) -> float:
        """The lowest objective known."""
        return self.printed.value

    @property
    def beats_literature(self) -> bool:
        """Whether the value is lower than what is published."""
        return self.literature is not None and self.literature.is_above(self.value)

    def gap(self, value: float) -> float:
        """Percent above the best known value, section 4.3; 0 for what rounding can explain."""
        if abs(value - self.value) <= self.printed.rounding + EQUAL * self.value:
            return 0.0
        return 100.0 * (value - self.value) / self.value


@dataclass(frozen=True)
class Proposal:
    """A lower value, and who found it."""

    dataset: str
    m: int
    value: float
    by: str


def best_known(dataset: str, m: int) -> Known | None:
    """Return what is known of a problem, None if nothing is.

    Raises
    ------
    MissingDataError
        If it is no data set of the paper; partial copies have nothing to be compared with.
    """
    return all_known().get((dataset_named(dataset).name, m))


def all_known(table: Path = TABLE) -> Mapping[tuple[str, int], Known]:
    """Return all problems of the table."""
    return _parsed(table, table.stat().st_mtime_ns)


def propose(dataset: str, m: int, value: float, by: str, *, folder: Path = PROPOSALS) -> bool:
    """Propose a value, if it is lower than the best known one and all that are proposed.

    Any number of processes may do so at once: each proposal is a file of its own.

    Parameters
    ----------
    dataset : str
    m : int
    value : float
    by : str
        The method that found it.
    folder : Path
        Of the proposals.

    Returns
    -------
    proposed : bool
    """
    known = best_known(dataset, m)
    if not 1 <= m <= dataset_named(dataset).n:
        raise ValueError(f"m={m} should be at least 1, and at most the samples of {dataset}.")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"value={value} should be a positive number.")
    if known is not None and not known.printed.is_above(value):
        return False
    if any(
        (other.dataset, other.m) == (dataset, m) and value >= other.value * (1 - EQUAL)
        for other in proposals(folder)
    ):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(asdict(Proposal(dataset, m, float(value), by))).encode()
    write_atomically(folder / f"{dataset}-{m}-{secrets.token_hex(6)}.json", content)
    return True


def proposals(folder: Path = PROPOSALS) -> list[Proposal]:
    """Return what has been proposed and not been decided, in the order of the names."""
    return [proposal for _, proposal in _proposal_files(folder)]


def accept(table: Path = TABLE, folder: Path = PROPOSALS) -> list[tuple[Known | None, Known]]:
    """Merge the lowest proposal of each problem into the table, and clear the proposals.

    Returns
    -------
    changes : list of (Known or None, Known)
        What was known before, and what is known now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    changes: list[tuple[Known | None, Known]] = []
    with exclusive(folder / "accept.lock"):
        files = _proposal_files(folder)
        known = dict(all_known(table))
        rows = {(row["dataset"], int(row["m"])): row for row in _rows(table)}
        for _, proposal in sorted(files, key=lambda item: item[1].value):
            setup = (dataset_named(proposal.dataset).name, proposal.m)
            before = known.get(setup)
            if before is not None and not before.printed.is_above(proposal.value):
                continue
            rows[setup] = _row(proposal, rows.get(setup))
            known[setup] = _known(rows[setup])
            changes.append((before, known[setup]))
        if changes:
            write_table(rows.values(), table)
        for path, _ in files:
            path.unlink()
    return changes


def record_proofs(bounds: Mapping[tuple[str, int], float], table: Path = TABLE) -> int:
    """Write proven lower bounds into the table, where they are higher; return how many it has."""
    rows = {(row["dataset"], int(row["m"])): row for row in _rows(table)}
    for setup, bound in bounds.items():
        if setup in rows and bound > float(rows[setup].get("proven_bound") or 0.0):
            rows[setup]["proven_bound"] = repr(bound)
    write_table(rows.values(), table)
    return sum(bool(row.get("proven_bound")) for row in rows.values())


def write_table(rows: Iterable[Mapping[str, str]], table: Path) -> None:
    """Write the table anew, in the order of the paper."""
    order = {dataset.name: place for place, dataset in enumerate(DATASETS)}
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in sorted(rows, key=lambda row: (order[row["dataset"]], int(row["m"]))):
        writer.writerow({**row, "beats_literature": "yes" if _known(row).beats_literature else ""})
    write_atomically(table, text.getvalue().encode())


def _row(proposal: Proposal, before: Mapping[str, str] | None) -> dict[str, str]:
    """Return the row of an accepted proposal; what the literature says stays."""
    return {
        "literature": "",
        "literature_source": "",
        **(before or {}),
        "dataset": proposal.dataset,
        "m": str(proposal.m),
        "value": repr(proposal.value),
        "status": BEST,
        "found_by": f"evomeans: {proposal.by}",
    }


@cache
def _parsed(table: Path, _modified: int) -> Mapping[tuple[str, int], Known]:
    """Parse a table once per version of the file."""
    known = {}
    for row in _rows(table):
        setup = (row["dataset"], int(row["m"]))
        if setup in known:
            raise ValueError(f"{table} has two rows for {row['dataset']} and m={row['m']}.")
        known[setup] = _known(row)
    return known


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _known(row: Mapping[str, str]) -> Known:
    if row["status"] not in (BEST, UPPER_BOUND):
        raise ValueError(f"status {row['status']!r} should be {BEST!r} or {UPPER_BOUND!r}.")
    return Known(
        dataset=dataset_named(row["dataset"]).name,
        m=int(row["m"]),
        printed=Printed.parse(row["value"]),
        found_by=row["found_by"],
        is_upper_bound=row["status"] == UPPER_BOUND,
        literature=Printed.parse(row["literature"]) if row["literature"] else None,
        literature_source=row["literature_source"],
        proven_bound=float(row["proven_bound"]) if row.get("proven_bound") else None,
    )


def _proposal_files(folder: Path) -> list[tuple[Path, Proposal]]:
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = path.read_text(encoding="utf-8")
        except FileNotFoundError:  # accepted by another process since it was listed
            continue
        found.append((path, Proposal(**json.loads(content))))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the proposals and what they would change, or merge them."""
    parser = parser_for("best_known", __doc__)
    parser.add_argument("--accept", action="store_true", help="merge the proposals into the table")
    parser.add_argument(
        "--list", action="store_true", help="all problems; * marks values below the published ones"
    )
    parser.add_argument("--table", type=Path, default=TABLE, help=argparse.SUPPRESS)
    parser.add_argument("--proposals", type=Path, default=PROPOSALS, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    with exit_on_data_errors():
        if chosen.accept:
            changes = accept(chosen.table, chosen.proposals)
            for before, after in changes:
                print(_change(before, after.dataset, after.m, after.value, after.found_by))
            print(f"{len(changes)} values of {chosen.table.name} are lower now.")
            return 0
        known = all_known(chosen.table)
        if chosen.list:
            for entry in known.values():
                print(_line(entry))
            return 0
        waiting = proposals(chosen.proposals)
        for p in waiting:
            print(_change(known.get((p.dataset, p.m)), p.dataset, p.m, p.value, p.by))
        beaten = sum(entry.beats_literature for entry in known.values())
        settled = sum(entry.is_settled for entry in known.values())
        print(
            f"{len(known)} problems are known, {beaten} lower than published, {settled} proven "
            "optimal; "
            f"{len(waiting)} proposals wait for --accept."
        )
    return 0


def _line(known: Known) -> str:
    mark = "*" if known.beats_literature else " "
    published = "" if known.literature is None else f", published {known.literature.value:.8g}"
    bound = "an upper bound by " if known.is_upper_bound else ""
    proven = ""
    if known.proven_bound is not None:
        gap = 100 * max(0.0, 1 - known.proven_bound / known.value)
        proven = ", proven optimal" if known.is_settled else f", proven within {gap:.2g} %"
    return (
        f"{known.dataset:<21} m={known.m:<4} {known.value:<17.10g}{mark} {bound}{known.found_by}"
        f"{published}{proven}"
    )


def _change(before: Known | None, dataset: str, m: int, value: float, by: str) -> str:
    was = "none" if before is None else f"{before.value:.10g} ({before.found_by})"
    lower = "" if before is None else f", {before.gap(value):+.5f} %"
    return f"{dataset} m={m}: {was} -> {value:.10g} ({by}){lower}"
