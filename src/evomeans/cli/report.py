"""``evomeans report``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from evomeans.cli.failures import CommandError
from evomeans.cli.run_folder import (
    REPORT,
    REPORT_DATA,
    check_new_file,
    damaged,
    read_json,
    read_record,
)
from evomeans.files import write_atomically
from evomeans.wording import how_to_install

NO_ROWS = "No report is written with --engine dask, because a report needs the rows in memory."


def can_report() -> bool:
    """Return whether the packages are installed that the page needs."""
    return all(find_spec(name) for name in ("jinja2", "matplotlib"))


def write_report(folder: Path, output: Path | None, *, force: bool) -> int:
    """Write the page of a run again; no other file is replaced unless that is forced."""
    if not can_report():
        raise CommandError(f"The report needs jinja2 and matplotlib: {how_to_install('report')}.")
    target = output or folder / REPORT
    if output is not None or target.is_symlink():
        check_new_file(target, force)
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}; name the --output of a run.")
    files = read_record(folder).get("files")
    # A run is written without this file only if its rows stayed on disk.
    had_rows = not isinstance(files, list) or REPORT_DATA in files
    reason = "Run the fit again." if had_rows else NO_ROWS
    path = folder / REPORT_DATA
    data = read_json(path, f"{folder} has no {REPORT_DATA}. {reason}")
    from evomeans.report import render_report

    try:
        page = render_report(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    write_atomically(target, page.encode("utf-8", errors="backslashreplace"))
    print(target)
    return 0
