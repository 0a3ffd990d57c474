"""Run experiments, write their pages, and propose better values than the best known ones."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from evomeans.files import write_atomically
from lab.best_known import propose
from lab.measure import replace_block
from lab.paper.analysis import own_references, setup_of
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.problems import is_mixture
from lab.paper.runner import complete_rows, run_tasks, task_name


def run_experiment(
    experiment: Experiment, size: Size, folder: Path, processes: int, *, only_render: bool = False
) -> Path:
    """Run what is not there yet, write the page and return its path.

    The page is about all rows of the file, whether their data is available or not.
    """
    rows_path = folder / f"{experiment.name}.csv"
    plan = experiment.plan(size)
    _announce(experiment, plan, size)
    if only_render:
        rows = complete_rows(rows_path)
        if not rows:
            raise SystemExit(f"There are no results in {rows_path} yet.")
        _tell_what_is_left(plan, rows)
    else:
        if not plan.tasks:
            raise SystemExit(_nothing_to_run(plan))
        rows = run_tasks(plan.tasks, rows_path, processes)
    page = folder / f"{experiment.name}.md"
    write_atomically(page, _page(experiment, size, rows, plan, folder).encode())
    print(f"wrote {page}")
    if not only_render:
        try:
            propose_values(rows)
        except OSError as error:
            print(f"warning: no value could be proposed: {error}")
    return page


def insert_pages(document: Path, folder: Path) -> None:
    """Put the tables of all pages in a folder into a document, between the marks of each.

    The text around them is written by people.
    """
    text = document.read_text(encoding="utf-8")
    pages = sorted(folder.glob("*.md"))
    if not pages:
        raise SystemExit(f"There are no pages in {folder} yet.")
    for page in pages:
        if f"<!-- {page.stem} -->\n" in text:
            text = replace_block(text, page.stem, inserted(page, document))
    write_atomically(document, text.encode())


def inserted(page: Path, document: Path) -> str:
    """Return what a page says below its title, with headings and pictures fit for a document."""
    title, _, body = page.read_text(encoding="utf-8").partition("\n")
    assert title.startswith("# ")
    pictures = Path(os.path.relpath(page.parent, document.parent)).as_posix()
    return body.replace("\n## ", "\n### ").replace("](", f"]({pictures}/")


def _announce(experiment: Experiment, plan: Plan, size: Size) -> None:
    print(f"{experiment.name} ({size}): {experiment.title}, {len(plan.tasks)} tasks")
    if plan.missing:
        print(f"not available, left out: {', '.join(plan.missing)}")
        print("python -m lab data fetch all downloads those that can be had")


def _nothing_to_run(plan: Plan) -> str:
    missing = ", ".join(plan.missing) or "all data sets of this experiment"
    return (
        f"nothing to run: {missing} are missing; python -m lab data fetch "
        f"{' '.join(plan.missing) or 'all'} downloads what can be had, and --render writes the "
        "page from the rows that are there."
    )


def _tell_what_is_left(plan: Plan, rows: Sequence[Row]) -> None:
    done = {row["task"] for row in rows}
    left = sum(task_name(task) not in done for task in plan.tasks)
    if left:
        print(f"{left} of {len(plan.tasks)} tasks have no results yet")


def propose_values(rows: Sequence[Row]) -> int:
    """Propose every value that is lower than the best known one; return how many there are."""
    lowest: dict[tuple[str, int], Row] = {}
    for row in rows:
        setup = setup_of(row)
        # The average run of a multi-start is nobody's solution, but never the lowest either.
        if not is_mixture(setup[0]) and (
            setup not in lowest or row["inertia"] < lowest[setup]["inertia"]
        ):
            lowest[setup] = row
    count = 0
    for (dataset, m), row in lowest.items():
        if propose(dataset, m, row["inertia"], row["method"]):
            count += 1
            print(f"new best value: {dataset} m={m}: {row['inertia']:.10g} by {row['method']}")
    return count


def _page(experiment: Experiment, size: Size, rows: Sequence[Row], plan: Plan, folder: Path) -> str:
    machine_path = folder / f"{experiment.name}.json"
    machine = json.loads(machine_path.read_text()) if machine_path.exists() else {}
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    parts = [
        f"# {experiment.title}",
        f"Size `{size}`: {len(rows)} rows in [{experiment.name}.csv]({experiment.name}.csv). "
        f"Written by `python -m lab paper {experiment.name} --size {size}`.",
    ]
    if facts:
        parts.append(f"Measured with: {facts}.")
    # Rows may have been measured where more data is available.
    measured = {row["dataset"] for row in rows}
    missing = [name for name in plan.missing if name not in measured]
    if missing:
        parts.append(f"Not available, left out: {', '.join(missing)}.")
    setups, own = own_references(rows)
    parts.append(
        f"Gaps are measured from the lowest value known of each of {setups} problems; that of "
        f"{own} was found by evomeans, often by these very runs."
    )
    parts.append(experiment.render(rows, size, folder))
    return "\n\n".join(parts)
