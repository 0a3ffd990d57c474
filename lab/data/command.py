"""Show where the paper's data sets are found, or fetch them.

python -m lab data                    all 29, and where each is found
python -m lab data fetch letters skin
python -m lab data fetch all          all that can be downloaded
python -m lab data markdown           the table of docs/laboratory/data.md

"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab.data.errors import DataError, exit_on_data_errors
from lab.data.loading import Place, data_folder, downloads_folder, fetch, places
from lab.data.records import Dataset
from lab.data.registry import DATASETS, dataset_named
from lab.measure import parser_for


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its status."""
    parser = parser_for("data", __doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="where each data set is found (the default)")
    commands.add_parser("markdown", help="the table of docs/laboratory/data.md")
    fetching = commands.add_parser("fetch", help="download, clean, verify and keep data sets")
    fetching.add_argument("names", nargs="+", metavar="NAME", help="names, or all")
    chosen = parser.parse_args(arguments)
    with exit_on_data_errors():
        if chosen.command == "fetch":
            return fetch_all(chosen.names)
        print(markdown() if chosen.command == "markdown" else listing())
    return 0


def listing() -> str:
    """Tell of each data set where it is found."""
    found = places()
    lines = [f"{'name':<22}{'n':>8}{'d':>6}  {'group':<6}found"]
    lines += [
        f"{d.name:<22}{d.n:>8}{d.d:>6}  {d.group:<6}{found[d.name]}"
        + (f" ({d.missing})" if found[d.name] is Place.MISSING else "")
        for d in DATASETS
    ]
    away = sum(place is Place.DOWNLOADABLE for place in found.values())
    absent = sum(place is Place.MISSING for place in found.values())
    lines += [
        "",
        f"{len(DATASETS) - away - absent} available, {away} to be downloaded, {absent} missing.",
        f"folder:    {data_folder() or 'EVOMEANS_DATA is not set'}",
        f"downloads: {downloads_folder()}",
    ]
    return "\n".join(lines)


def fetch_all(names: Sequence[str]) -> int:
    """Fetch data sets one after the other; go on when one fails, and count that as a failure."""
    chosen = [d.name for d in DATASETS if d.name in _wanted(names)]
    failed = 0
    for name in chosen:
        try:
            place = fetch(name)
        except DataError as error:
            failed += 1
            print(f"{name}: {error}", file=sys.stderr)
            continue
        print(f"{name}: {'downloaded' if place is Place.DOWNLOADABLE else place}, verified")
    if failed:
        print(f"{failed} of {len(chosen)} data sets could not be had.", file=sys.stderr)
    return 1 if failed else 0


def _wanted(names: Sequence[str]) -> set[str]:
    if "all" in names:
        return {name for name, place in places().items() if place is not Place.MISSING}
    return {dataset_named(name).name for name in names}


def markdown() -> str:
    """Return the table of the documentation."""
    head = [
        "| name | in the paper | n | d | group | from | cleaning | checked by |",
        "|---|---|--:|--:|---|---|---|---|",
    ]
    return "\n".join(head + [_markdown_row(dataset) for dataset in DATASETS])


def _markdown_row(dataset: Dataset) -> str:
    cells = (
        f"`{dataset.name}`",
        dataset.title,
        f"{dataset.n:,}",
        f"{dataset.d:,}",
        dataset.group,
        _origin(dataset),
        dataset.cleaning,
        _checked_by(dataset),
    )
    return f"| {' | '.join(cells)} |"


def _origin(dataset: Dataset) -> str:
    if dataset.source is None:
        return "scikit-learn"
    page = dataset.source.page
    kind = "UCI" if "uci.edu" in page else "TSPLIB" if "TSPLIB" in page else "the authors"
    return f"[{kind}]({page})" + (", shipped here" if dataset.shipped else "")


def _checked_by(dataset: Dataset) -> str:
    if dataset.digest is not None:
        return "digest"
    if dataset.value_of_2 is not None:
        return f"shape, m=2: {dataset.value_of_2:.6g}"
    return "shape"
