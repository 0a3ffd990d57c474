"""Tables 2 to 9 as printed in the paper, in CSV files next to this module.

Times are in seconds of one thread of an Intel Xeon X5675 at 3.07 GHz; those of other authors were
scaled to it by the paper. Gaps are in percent of the best value known before the paper.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lab.measure import read_rows

FOLDER = Path(__file__).parent / "printed"
POWER_IN_M = {"eeg_eye_state": 2.09, "miniboone": 1.38}
"""Exponents of m that section 4.4 prints; all other sets have at most LARGEST_OTHER_POWER."""
LARGEST_OTHER_POWER = 1.29
POWER_IN_N, POWER_IN_D = 1.08, 0.88
"""Exponents of n and d for m = 10 (section 4.4)."""

Row = dict[str, object]


@cache
def printed_table(number: int) -> tuple[Row, ...]:
    """Return the rows of a table of the paper, numbers as numbers."""
    path = FOLDER / f"table{number}.csv"
    if not path.exists():
        raise ValueError(f"Table {number} is not among the printed ones, 2 to 9.")
    return tuple(read_rows(path))


def printed(number: int, measure: str, **where: object) -> float | None:
    """Return the value in the one row of a table that has these entries, None if there is none."""
    rows = [
        row
        for row in printed_table(number)
        if all(row[column] == value for column, value in where.items())
    ]
    if not rows:
        return None
    [row] = rows
    value = row[measure]
    assert isinstance(value, int | float)
    return float(value)
