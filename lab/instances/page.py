"""The table and the picture of the page docs/laboratory/instances.md, rendered from the files."""

from __future__ import annotations

from pathlib import Path

from lab.best_known import all_known
from lab.instances import library
from lab.instances.catalogue import sources
from lab.instances.library import DataFile
from lab.instances.picture import PICTURE, picture

PAGE = Path(__file__).parents[2] / "docs" / "laboratory" / "instances.md"
BEGIN, END = "<!-- table: python -m lab instances table -->", "<!-- end of the table -->"
STATUSES = (library.PROVEN, library.GAP, library.OPEN)


def data_files(folder: Path = library.FOLDER) -> list[DataFile]:
    """Return all files in the order of the catalogue."""
    known = library.names(folder)
    return [library.read(name, folder) for name in sources() if name in known]


def _summary(files: list[DataFile]) -> list[str]:
    every = {(data.name, k): one for data in files for k, one in data.instances.items()}
    listed = [every[setup].status for setup in all_known() if setup in every]
    counts = {one: sum(i.status == one for i in every.values()) for one in STATUSES}
    return [
        f"{len(files)} data sets, {len(every)} instances: {counts['proven']} proven, "
        f"{counts['gap']} with a gap, {counts['open']} open.",
        "",
        f"`lab/best_known.csv` lists {len(all_known())} instances of the data sets of the paper. "
        f"{len(listed)} of them are in the library, and {listed.count(library.PROVEN)} of these "
        "are proven with a certificate.",
    ]


def _literature(files: list[DataFile]) -> list[str]:
    lines = ["| data set | k | printed | difference | source |", "|---|---|---|---|---|"]
    lines += [
        f"| {data.name} | {k} | {one.literature} | {one.literature_why} | {one.literature_source} |"
        for data in files
        for k, one in data.instances.items()
        if one.literature is not None
    ]
    return lines


def table(folder: Path = library.FOLDER) -> str:
    """Return the summary and the tables in Markdown."""
    files = data_files(folder)
    lines = _summary(files)
    lines += ["", "![Proven, bounded and open instances](../images/instances.svg)"]
    lines += ["", "Lowest printed values that differ from the library:", "", *_literature(files)]
    lines += ["", "All instances:", ""]
    lines += ["| data set | k | inertia | status | gap % | method | found by |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for data in files:
        for one in data.instances.values():
            gap = "" if one.gap is None else f"{100 * one.gap:.2g}"
            lines.append(
                f"| {data.name} | {one.k} | {one.inertia!r} | {one.status} | {gap} "
                f"| {one.bound_method or ''} | {one.found_by} ({one.found_at}) |"
            )
    return "\n".join(lines)


def rendered(text: str, folder: Path = library.FOLDER) -> str:
    """Return the text of the page with the tables of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(folder)}\n\n{END}{after}"


def is_in_step() -> bool:
    """Whether page and picture are those of the files."""
    text = PAGE.read_text(encoding="utf-8")
    drawn = PICTURE.read_text(encoding="utf-8") if PICTURE.exists() else ""
    return rendered(text) == text and picture(data_files()) == drawn


def write() -> None:
    """Write the page and its picture."""
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(data_files()), encoding="utf-8")
