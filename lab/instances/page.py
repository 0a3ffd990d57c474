"""The table of the page docs/laboratory/instances.md, rendered from the files."""

from __future__ import annotations

from pathlib import Path

from lab.instances import library
from lab.instances.catalogue import sources

PAGE = Path(__file__).parents[2] / "docs" / "laboratory" / "instances.md"
BEGIN, END = "<!-- table: python -m lab instances table -->", "<!-- end of the table -->"
MARKS = {library.PROVEN: "■", library.GAP: "◧", library.OPEN: "□"}


def table(folder: Path = library.FOLDER) -> str:
    """Return the summary, the picture and the table in Markdown."""
    order = [name for name in sources() if name in library.names(folder)]
    files = [library.read(name, folder) for name in order]
    every = [one for data in files for one in data.instances.values()]
    counts = {status: sum(one.status == status for one in every) for status in MARKS}
    lines = [
        f"{len(files)} data sets, {len(every)} instances: {counts['proven']} proven, "
        f"{counts['gap']} with a gap, {counts['open']} open.",
        "",
        "| data set | samples | features | proven ■, gap ◧, open □; k from the smallest |",
        "|---|---|---|---|",
    ]
    for data in files:
        ks = list(data.instances)
        marks = "".join(MARKS[one.status] for one in data.instances.values())
        span = f"k = {ks[0]} … {ks[-1]}"
        lines.append(f"| {data.title} | {data.samples:,} | {data.features} | `{marks}` {span} |")
    lines += ["", "| data set | k | inertia | status | gap % | method | found by |"]
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
    """Return the text of the page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(folder)}\n\n{END}{after}"
