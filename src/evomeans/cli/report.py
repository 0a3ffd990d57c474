"""``evomeans report``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from evomeans.cli.failures import CommandError
from evomeans.cli.run_folder import REPORT, REPORT_DATA, damaged, read_json, read_record
from evomeans.storage.files import write_atomically


def missing_for_report() -> str | None:
    """Return a package that the report needs and that is not installed, if there is one."""
    return next((name for name in ("jinja2", "matplotlib") if not find_spec(name)), None)


def write_report(folder: Path, output: Path | None) -> int:
    """Write the page of a run again."""
    if missing := missing_for_report():
        raise CommandError(f"The report needs {missing}: pip install 'evomeans[report]'")
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}; name the --output of a run.")
    read_record(folder)
    path = folder / REPORT_DATA
    data = read_json(path, f"{folder} has no {REPORT_DATA}; run the fit again.")
    from evomeans.report import render_report

    target = output or folder / REPORT
    try:
        page = render_report(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    write_atomically(target, page.encode("utf-8", errors="backslashreplace"))
    print(target)
    return 0
