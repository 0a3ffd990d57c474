"""``evomeans report``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from evomeans.cli.failures import CommandError
from evomeans.cli.run_folder import (
    REPORT,
    REPORT_DATA,
    damaged,
    read_json,
    read_record,
    refuse_existing,
)
from evomeans.storage.files import write_atomically


def missing_for_report() -> str | None:
    """Return the package that the report needs and that is not installed, if there is one."""
    return None if find_spec("jinja2") else "jinja2"


def write_report(folder: Path, output: Path | None, *, force: bool) -> int:
    """Write the page of a run again; no other file is replaced unless that is forced."""
    if missing := missing_for_report():
        raise CommandError(f"The report needs {missing}: pip install 'evomeans[report]'")
    target = output or folder / REPORT
    if output is not None or target.is_symlink():
        refuse_existing(target, force)
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}; name the --output of a run.")
    read_record(folder)
    path = folder / REPORT_DATA
    data = read_json(path, f"{folder} has no {REPORT_DATA}; run the fit again.")
    from evomeans.report import render_report

    try:
        page = render_report(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    write_atomically(target, page.encode("utf-8", errors="backslashreplace"))
    print(target)
    return 0
