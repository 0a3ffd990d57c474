"""The tables and the picture of the page docs/laboratory/instances.md, rendered from the files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.best_known import all_known
from lab.instances import library
from lab.instances.catalogue import sources
from lab.instances.library import DataFile, Instance
from lab.instances.picture import PICTURE, picture

PAGE = Path(__file__).parents[2] / "docs" / "laboratory" / "instances.md"
BEGIN, END = "<!-- table: python -m lab instances table -->", "<!-- end of the table -->"
STATUSES = (library.PROVEN, library.GAP, library.OPEN)
SEARCH = re.compile(r"HGMeans, strategy='(\w+)', random_state=(\d+)(?:, max_time=([\d.]+))?")


def data_files(folder: Path = library.FOLDER) -> list[DataFile]:
    """Return all files in the order of the catalogue."""
    known = library.names(folder)
    return [library.read(name, folder) for name in sources() if name in known]


def counts(instances: Iterable[Instance]) -> tuple[int, int, int]:
    """Return how many instances are proven, have a gap, and are open."""
    found = Counter(one.status for one in instances)
    return found[library.PROVEN], found[library.GAP], found[library.OPEN]


def _summary(files: list[DataFile]) -> Iterator[str]:
    every = {(data.name, k): one for data in files for k, one in data.instances.items()}
    listed = [every[setup].status for setup in all_known() if setup in every]
    proven, gap, still_open = counts(every.values())
    yield (
        f"{len(files)} data sets, {len(every)} instances: {proven} proven, {gap} with a gap, "
        f"{still_open} open."
    )
    yield ""
    yield (
        f"`lab/best_known.csv` lists {len(all_known())} instances of the data sets of the paper. "
        f"{len(listed)} of them are in the library, and {listed.count(library.PROVEN)} of these "
        "are proven with a certificate."
    )


def _data_sets(files: list[DataFile]) -> Iterator[str]:
    yield "| data set | name | samples | features | instances | proven | gap | open |"
    yield "|:--|:--|--:|--:|--:|--:|--:|--:|"
    for data in files:
        numbers = (data.samples, data.features, len(data.instances))
        cells = [f"{one:,}" for one in (*numbers, *counts(data.instances.values()))]
        link = f'<a href="#set-{data.name}">{data.name}</a>'
        yield f"| {link} | {data.title} | {' | '.join(cells)} |"


def _literature(files: list[DataFile]) -> Iterator[str]:
    yield "| data set | k | printed | library | difference | source |"
    yield "|:--|--:|--:|--:|:--|:--|"
    for data in files:
        for k, one in data.instances.items():
            if one.literature is not None:
                printed = one.literature.removesuffix(".0")
                values = f"{data.name} | {k} | {printed} | {one.inertia!r}"
                yield f"| {values} | {one.literature_why} | {one.literature_source} |"


def _instances(data: DataFile) -> Iterator[str]:
    """Yield a table that unfolds; GitHub and the site show what is in between as Markdown."""
    proven, gap, still_open = counts(data.instances.values())
    yield f'<details id="set-{data.name}">'
    yield (
        f"<summary><strong>{data.name}</strong>, {data.samples:,} × {data.features}: {proven} "
        f"proven, {gap} with a gap, {still_open} open</summary>"
    )
    yield ""
    yield "| k | inertia | lower bound | gap % | status | proof | found by | searches |"
    yield "|--:|--:|--:|--:|:--|:--|:--|--:|"
    for one in data.instances.values():
        bound = gap_text = proof = ""
        if one.bound is not None and one.gap is not None:
            bound, gap_text = repr(one.bound), f"{100 * one.gap:.2g}"
            proof = f"{one.bound_method}, {_seconds(one.bound_seconds or 0.0)}"
        cells = (one.k, repr(one.inertia), bound, gap_text, one.status, proof)
        text = " | ".join(map(str, (*cells, found_by(one), one.searches)))
        yield f"| {text} |"
    yield ""
    yield "</details>"
    yield ""


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def found_by(instance: Instance) -> str:
    """Return who found a solution, a search of this package in a few words."""
    match = SEARCH.fullmatch(instance.found_by)
    if match is None:
        return instance.found_by
    strategy, seed, limit = match.groups()
    return f"{strategy}, seed {seed}" + (f", at most {limit} s" if limit else "")


def table(folder: Path = library.FOLDER) -> str:
    """Return the summary and the tables in Markdown."""
    files = data_files(folder)
    lines = [*_summary(files), "", "![Proven, bounded and open instances](../images/instances.svg)"]
    lines += ["", *_data_sets(files), ""]
    lines += ["### Printed values that differ", "", *_literature(files), ""]
    lines += ["### Values and bounds", ""]
    lines += [line for data in files for line in _instances(data)]
    return "\n".join(lines).rstrip()


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
